"""Keep relations of a store equal to Delta tables: read what has changed since the last time.

The explicit facts of a synchronized relation are the rows of its table. Every commit records the
version of each table that it shows, so that a table is read from there on, exactly once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from corollary.core.object_store import ObjectPath, is_service_error, refused_request
from corollary.core.tables import decode
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.transaction import Transaction
from corollary.lang.syntax import TRIPLE, TRIPLE_COLUMNS, TRIPLES_NAME
from corollary.store import Store
from corollary.store.places import Place, storage_options, store_path, table_uri

if TYPE_CHECKING:
    from deltalake import DeltaTable

_BATCH = "sync/"  # begins the batch of a commit that records the versions of tables
_SOURCE = re.compile(r"(?P<relation>[^\W\d]\w*)\s*(?:\((?P<columns>[^()]*)\))?\s*=\s*(?P<table>.+)")


@dataclass(frozen=True)
class TableSource:
    """A Delta table, and the columns of it that are the arguments of a relation."""

    relation: str
    table: str
    columns: tuple[str, ...] = ()  # all of them

    @classmethod
    def parse(cls, text: str) -> TableSource:
        """Parse `relation=TABLE` or `relation(column, …)=TABLE`.

        >>> TableSource.parse("edge(src, dst)=lake/edges")
        TableSource(relation='edge', table='lake/edges', columns=('src', 'dst'))
        """
        match = _SOURCE.fullmatch(text.strip())
        if match is None:
            raise InvalidInput(
                "E552",
                f"expected RELATION=TABLE, found {text}",
                "such as 'edge(src, dst)=lake/edges'",
            )
        names = (match["columns"] or "").split(",")
        return cls(match["relation"], match["table"], tuple(n.strip() for n in names if n.strip()))


@dataclass(frozen=True)
class TableChanges:
    """What was read of a table; `since` is None if all of it was read."""

    table: str
    since: int | None
    version: int
    inserted: int  # rows, before the store leaves out those that it has
    deleted: int


@dataclass(frozen=True)
class Synced:
    """The result of a synchronization."""

    version: int
    tables: Mapping[str, TableChanges]  # by relation
    inserted: int = 0  # facts, derived ones included
    deleted: int = 0

    def to_json(self) -> dict[str, Any]:
        """Convert the result to the JSON that `--json` prints."""
        return asdict(self)


@dataclass(frozen=True)
class _Shown:
    """The version of a table that a store shows."""

    table: str
    columns: tuple[str, ...]
    id: str
    version: int


@dataclass
class _Changes:
    """Rows to insert and to delete; with `everything`, all other facts are deleted."""

    shown: _Shown
    since: int | None
    inserted: pa.Table
    deleted: pa.Table
    everything: bool = False

    def __bool__(self) -> bool:
        return self.everything or bool(len(self.inserted) or len(self.deleted))


@dataclass
class _Reader:
    """Reads a Delta table."""

    source: TableSource
    options: Mapping[str, str] | None
    columns: tuple[str, ...] = field(init=False, default=())

    def changes(self, known: _Shown | None) -> _Changes:
        """Read the changes since a version that the store shows, or everything."""
        with self._failures():
            now = self._open(None)
            self.columns = self._columns(now)
            table_id = str(now.metadata().id)
            shown = _Shown(self.source.table, self.columns, table_id, now.version())
            is_known = known is not None and (known.id, known.columns) == (table_id, self.columns)
            if known is not None and is_known and known.version <= shown.version:
                if known.version == shown.version:
                    nothing = self._rows(now, set())
                    return _Changes(shown, known.version, nothing, nothing)
                try:
                    return self._between(now, shown, known.version)
                except _unreadable():
                    pass  # the older version or its files are gone
            rows = now.to_pyarrow_dataset().to_table(columns=[*self.columns])
            return _Changes(shown, None, rows, rows.slice(0, 0), everything=True)

    def _between(self, now: DeltaTable, shown: _Shown, since: int) -> _Changes:
        """Read the files that differ; rows that only moved to another file have not changed."""
        before = self._open(since)
        files, files_before = (
            {fragment.path for fragment in table.to_pyarrow_dataset().get_fragments()}
            for table in (now, before)
        )
        added = self._rows(now, files - files_before)
        removed = self._rows(before, files_before - files)
        with duckdb.connect() as connection:
            connection.register("added", added)
            connection.register("removed", removed)
            inserted = connection.sql("FROM added EXCEPT FROM removed").to_arrow_table()
            deleted = connection.sql("FROM removed EXCEPT FROM added").to_arrow_table()
            if len(deleted):  # a table may have a row several times
                connection.register("gone", deleted)
                connection.register("others", self._dataset(now, files & files_before).to_table())
                deleted = connection.sql("FROM gone EXCEPT FROM others").to_arrow_table()
        return _Changes(shown, since, inserted, deleted)

    def _dataset(self, table: DeltaTable, paths: set[str]) -> ds.Scanner:
        """Scan the rows of some files; the columns of partitions are not in them."""
        whole = table.to_pyarrow_dataset()
        chosen = [fragment for fragment in whole.get_fragments() if fragment.path in paths]
        parts = (
            batch
            for fragment in chosen
            for batch in fragment.to_batches(schema=whole.schema, columns=[*self.columns])
        )
        schema = pa.schema([whole.schema.field(name) for name in self.columns])
        return ds.Scanner.from_batches(pa.RecordBatchReader.from_batches(schema, parts))

    def _rows(self, table: DeltaTable, paths: set[str]) -> pa.Table:
        return self._dataset(table, paths).to_table()

    def _columns(self, table: DeltaTable) -> tuple[str, ...]:
        names = [f.name for f in table.schema().fields]
        wanted = self.source.columns or (
            TRIPLE_COLUMNS if self.source.relation == TRIPLES_NAME else tuple(names)
        )
        for name in wanted:
            if name not in names:
                raise InvalidInput(
                    "E552",
                    f"{self.source.table} has no column {name}; it has {', '.join(names)}",
                    f"choose the columns: '{self.source.relation}({', '.join(names[:2])})=…'",
                )
        return wanted

    def _open(self, version: int | None) -> DeltaTable:
        from deltalake import DeltaTable

        path = store_path(self.source.table, self.options)
        if isinstance(path, Path) and {*"%\\"} & {*str(path.resolve())}:
            raise InvalidInput(
                "E510",
                f"no Delta table can be read in {path}",
                "use a path without % and backslashes",
            )
        return DeltaTable(table_uri(path), version=version, storage_options=storage_options(path))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except _unreadable() as error:
            path = store_path(self.source.table, self.options)
            if isinstance(path, ObjectPath) and is_service_error(error):
                raise refused_request(path, error) from None
            reason = str(error).partition("\n")[0]
            raise OperationFailed(
                "E553", f"cannot read the Delta table {self.source.table}: {reason}"
            ) from None


def sync(
    path: Place,
    sources: Sequence[TableSource | str] = (),
    *,
    options: Mapping[str, str] | None = None,
    message: str = "",
    full: bool = False,
    threads: int = 1,
    limit_memory: int | None = None,
) -> Synced:
    """Make relations of a store equal to Delta tables, in one commit.

    Without `sources`, the tables of the last synchronization are read again. With `full`, all rows
    are read and compared, otherwise only the files that have come or gone since the version that
    the store shows. Nothing is committed if no row has changed. `options` are those of the object
    stores, `threads` and `limit_memory` those of `KnowledgeBase.open`.

    >>> import tempfile, deltalake, corollary as co
    >>> folder = tempfile.mkdtemp()
    >>> co.KnowledgeBase("reach(?x, ?y) :- edge(?x, ?y) .").save(f"{folder}/store")
    1
    >>> deltalake.write_deltalake(f"{folder}/edges", pa.table({"src": ["a"], "dst": ["b"]}))
    >>> sync(f"{folder}/store", [f"edge(src, dst)={folder}/edges"]).inserted
    2
    >>> sync(f"{folder}/store").tables["edge"].inserted
    0
    """
    place = store_path(path, options)
    known = _shown_tables(Store.open(place))
    chosen = [s if isinstance(s, TableSource) else TableSource.parse(s) for s in sources] or [
        TableSource(relation, shown.table, shown.columns) for relation, shown in known.items()
    ]
    if not chosen:
        raise InvalidInput(
            "E552", "no table has been synchronized with this store", "name one: 'edge=lake/edges'"
        )
    for number, source in enumerate(chosen):
        if source.relation in {other.relation for other in chosen[:number]}:
            raise InvalidInput("E552", f"{source.relation} has two tables", "use one for each")
    changes = {
        source.relation: _Reader(source, options).changes(
            None if full else known.get(source.relation)
        )
        for source in chosen
    }
    tables = {
        relation: TableChanges(
            one.shown.table, one.since, one.shown.version, len(one.inserted), len(one.deleted)
        )
        for relation, one in changes.items()
    }
    kb = KnowledgeBase.open(place, threads=threads, limit_memory=limit_memory)
    if not any(changes.values()):
        return Synced(kb.version, tables)
    shown = {**known, **{relation: one.shown for relation, one in changes.items()}}
    record = json.dumps({relation: asdict(one) for relation, one in shown.items()})
    text = message or ", ".join(f"{r} at version {one.shown.version}" for r, one in changes.items())
    with kb.transaction(message=text, batch=f"{_BATCH}{record}") as tx:
        for relation, one in changes.items():
            _request(kb, tx, relation, one)
    committed = tx.changes
    counts = (part.num_rows for part in (committed.inserted, committed.deleted))
    return Synced(committed.version, tables, *counts)


def _request(kb: KnowledgeBase, tx: Transaction, relation: str, changes: _Changes) -> None:
    """Request the changes of a relation; an insertion wins over a deletion before it."""
    name = None if relation == TRIPLES_NAME else relation
    if changes.everything:
        own = TRIPLE if name is None else relation
        explicit = kb.state.reasoner.explicit
        facts = explicit.only([p for p in explicit.predicates() if p.relation == own])
        tx.delete(list(decode(facts, kb.state.dictionary)))
    for rows, request in ((changes.deleted, tx.delete), (changes.inserted, tx.insert)):
        if len(rows):
            request(rows.rename_columns(TRIPLE_COLUMNS) if name is None else rows, relation=name)


def _shown_tables(store: Store) -> dict[str, _Shown]:
    """The versions of tables that the newest synchronization has recorded, by relation."""
    for commit in store.log():
        if commit.batch is not None and commit.batch.startswith(_BATCH):
            found = json.loads(commit.batch.removeprefix(_BATCH))
            return {
                relation: _Shown(one["table"], tuple(one["columns"]), one["id"], one["version"])
                for relation, one in found.items()
            }
    return {}


def _unreadable() -> tuple[type[Exception], ...]:
    """The errors of tables that cannot be read."""
    from deltalake.exceptions import DeltaError

    return DeltaError, pa.ArrowException, OSError
