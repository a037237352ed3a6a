"""The data source `corollary` of Spark: what came and went in the versions of a store.

session.read.format("corollary").option("since", 3).load("univ.store")
session.readStream.format("corollary").load("univ.store")
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from corollary.engines.spark.change_source import Options, VersionSource
from corollary.engines.spark.stored import SparkSession
from corollary.errors import InvalidInput
from corollary.knowledge_base.differences import Differences
from corollary.store import Store
from corollary.store.changes import feed
from corollary.store.layout import arguments, width_of
from corollary.store.opening import open_terms
from corollary.store.places import store_path

_CREDENTIALS = ("aws_", "azure_", "google_")  # options of the object store
_ROWS = 1 << 16  # rows of a batch


class StoreChanges(VersionSource):
    """Reads the changes of facts, explicit and derived, with terms as text.

    The columns are `version`, `change` (`inserted`, `deleted`, `explicit` or `derived`, as in
    `corollary diff`), `relation` (`triples` for triples), `arg0`, `arg1`, … and `explicit`.
    Options: `path` (the folder or address of the store), `since` (a version, default 0: all that
    follow it are read) and, for batches, `until` (default: the newest version).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "corollary"

    def columns(self, options: Options) -> str:
        """Return the schema of the rows; the widest relation determines the arguments."""
        places = ", ".join(f"{name} string" for name in _arguments(_store(options)))
        return f"version long, change string, relation string, {places}, explicit boolean"

    def between(self, options: Options) -> tuple[int, int]:
        """Return the versions of the options."""
        latest = _store(options).latest()
        since, until = _version(options, "since", 0), _version(options, "until", latest)
        if not since <= until <= latest:
            raise InvalidInput(
                "E555",
                f"the store has no changes after version {since} up to {until}",
                f"its newest version is {latest}",
            )
        return since, until

    def begin(self, options: Options) -> int:
        """Return the version of the option."""
        if "until" in options:
            raise InvalidInput("E555", "a stream has no end", "use read instead of readStream")
        return _version(options, "since", 0)

    @staticmethod
    def latest(options: Options) -> int:
        """Return the newest version."""
        return _store(options).latest()

    @staticmethod
    def read(version: int, options: Options) -> Iterator[pa.RecordBatch]:
        """Read the changes of a version, relation by relation."""
        store = _store(options)
        dictionary = open_terms(store.snapshot())
        names = _arguments(store)
        for commit, rows in feed(store, version - 1, version):
            differences = Differences(rows, dictionary, commit.prefixes, str(version))
            width = width_of(rows.column_names)
            for relation in pc.unique(rows["relation"]).to_pylist():
                own = rows.filter(pc.equal(rows["relation"], relation))
                used = [n for n in arguments(width) if own[n].null_count < len(own)]
                table = differences.of_relation(relation, used)
                count = len(table)
                columns = {
                    "version": pa.repeat(pa.scalar(version, pa.int64()), count),
                    "change": table["change"].cast(pa.string()),
                    "relation": pa.repeat(pa.scalar(relation, pa.string()), count),
                }
                for name in names:
                    columns[name] = table[name] if name in used else pa.nulls(count, pa.string())
                found = pa.table(columns | {"explicit": table["explicit"]})
                yield from found.combine_chunks().to_batches(_ROWS)


def register(session: SparkSession) -> None:
    """Register the source with a session."""
    session.dataSource.register(StoreChanges)


def _store(options: Options) -> Store:
    path = options.get("path")
    if not path:
        raise InvalidInput("E555", "the source corollary needs a path", 'load("univ.store")')
    own = {n.upper(): value for n, value in options.items() if n.startswith(_CREDENTIALS)}
    return Store.open(store_path(path, own))


def _arguments(store: Store) -> list[str]:
    return list(arguments(width_of(store.changes.columns())))


def _version(options: Options, name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal():
        raise InvalidInput("E555", f"{name} is a version, not {text}", "corollary log lists them")
    return int(text)
