"""Whether the files of a version are whole, and agree with each other and with its commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import OperationFailed
from corollary.store import cache, changes, chunk_files, parquet, term_hash
from corollary.store.columns import columns
from corollary.store.commits import Count
from corollary.store.delta import Table, damage
from corollary.store.layout import (
    CHUNKS,
    RULES_SCHEMA,
    TERMS_SCHEMA,
    changes_schema,
    width_of,
)
from corollary.store.manifest import DataFile
from corollary.store.rows import NO_TERM, columns_of, current
from corollary.store.snapshot import Snapshot

if TYPE_CHECKING:
    from corollary.core.dictionary import Dictionary
    from corollary.store.store import Store


def check_files(
    snapshot: Snapshot, on_file: Callable[[str], None] | None = None
) -> list[OperationFailed]:
    """Read everything that the version needs; returns what is wrong with which file."""
    store = snapshot.store
    problems: list[OperationFailed] = []
    try:
        names = store.changes.columns()
        store.rules.files(), snapshot.fact_data, snapshot.term_data
    except OperationFailed as error:
        return [error]
    plans: list[tuple[Table, list[DataFile], pa.Schema]] = [
        (store.facts, snapshot.fact_data, snapshot.schema),
        (store.terms, snapshot.term_data, TERMS_SCHEMA),
        (store.changes, store.changes.files(), changes_schema(width_of(names))),
        (store.rules, store.rules.files(), RULES_SCHEMA),
    ]
    for table, files, schema in plans:
        for file in files:
            if on_file is not None:
                on_file(f"{table.name}/{file.path}")
            try:
                parquet.read(table, [file], schema)
            except OperationFailed as error:
                problems.append(error)
    return problems or _contents(snapshot)


def _contents(snapshot: Snapshot) -> list[OperationFailed]:
    store = snapshot.store
    problems: list[OperationFailed] = []

    def claim(right: bool, table: Table, reason: str) -> None:
        if not right:
            problems.append(damage(table.folder, reason))

    try:
        terms, _ = snapshot.terms(), snapshot.program
    except OperationFailed as error:
        return [error]
    ids = terms["id"].to_numpy()
    claim(np.array_equal(ids, np.arange(len(ids))), store.terms, "ids are not 0, 1, 2, …")
    claim(len(pc.unique(terms["term"])) == len(ids), store.terms, "a term is there twice")
    right = term_hash.hashes(terms["term"])
    claim(pc.all(pc.equal(terms["hash"], right)).as_py() is not False, store.terms, "wrong hashes")
    rows = current(parquet.read(store.facts, snapshot.fact_data, snapshot.schema))
    rows = rows.filter(pc.invert(rows["deleted"]))
    largest = max((int(c.max()) for c in columns_of(rows) if len(c)), default=-1)
    claim(largest < len(ids), store.facts, f"there is no term {largest:,}")
    newest = rows["version"].to_numpy().max() if rows.num_rows else 0
    claim(newest <= snapshot.version, store.facts, f"a row has version {newest}")
    counted = {name: (count.explicit, count.facts) for name, count in count_facts(rows).items()}
    said = {
        name: (count.explicit, count.facts)
        for name, count in snapshot.statistics.relations.items()
        if count.facts
    }
    try:
        changes.check(store, snapshot.version)
    except OperationFailed as error:
        problems.append(error)
    claim(counted == said, store.facts, f"{counted} facts (explicit, all), but {said} are told of")
    return problems


def count_facts(rows: pa.Table) -> dict[str, Count]:
    """How many facts each relation has, of rows with one for each fact."""
    found = rows.group_by("relation").aggregate([("explicit", "sum"), ("relation", "count")])
    counts = {}
    for row in found.to_pylist():
        name = row["relation"]
        first = rows.filter(pc.equal(rows["relation"], name)).slice(0, 1)
        width = sum(bool(column[0] != NO_TERM) for column in columns_of(first))
        counts[name] = Count(width, row["explicit_sum"], row["relation_count"])
    return counts


def check_caches(store: Store) -> list[OperationFailed]:
    """What is wrong with files that are made again from the tables."""
    damaged = [*cache.problems(store), *chunk_files.problems(store.path / CHUNKS)]
    return [
        OperationFailed(
            "E503",
            f"{path.relative_to(store.path)} is damaged: {reason}",
            "answers do not use it; 'corollary repair' makes it again",
            file=str(path),
        )
        for path, reason in damaged
    ]


def cache_differs(snapshot: Snapshot, dictionary: Dictionary) -> bool:
    """Whether there is a cache of exactly this version that says something else."""
    from corollary.lang.syntax import TYPE

    found = cache.read(snapshot.store, snapshot.version)
    if found is None or found.version != snapshot.version:
        return False
    rows = current(parquet.read(snapshot.store.facts, snapshot.fact_data, snapshot.schema))
    fresh = columns(rows.filter(pc.invert(rows["deleted"])), dictionary.find(TYPE))
    for kept, made in zip(found.columns, fresh, strict=True):
        if kept.keys() != made.keys() or any(
            not np.array_equal(kept[label].values, made[label].values) for label in made
        ):
            return True
    texts = snapshot.terms()["term"].combine_chunks()
    mine = type(dictionary).of(found.terms).texts_from(0)
    return not texts.slice(0, len(mine)).cast(pa.large_string()).equals(mine)
