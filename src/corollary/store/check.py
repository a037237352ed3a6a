"""Integrity checks: files are intact and consistent with each other and with the commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import OperationFailed
from corollary.lang.syntax import TYPE
from corollary.store import cache, changes, chunk_files, layout, parquet, term_hash
from corollary.store.columns import columns
from corollary.store.commits import Count
from corollary.store.delta import Table, damage
from corollary.store.manifest import DataFile
from corollary.store.rows import NO_TERM, columns_of, live
from corollary.store.snapshot import Snapshot

if TYPE_CHECKING:
    from corollary.core.dictionary import Dictionary
    from corollary.store.store import Store


def check_files(
    snapshot: Snapshot, on_file: Callable[[str], None] | None = None
) -> list[OperationFailed]:
    """Read all files of a version; returns one error per damaged file."""
    store = snapshot.store
    problems: list[OperationFailed] = []
    try:
        names = store.changes.columns()
        store.rules.files(), snapshot.fact_data, snapshot.term_data
    except OperationFailed as error:
        return [error]
    plans: list[tuple[Table, list[DataFile], pa.Schema]] = [
        (store.facts, snapshot.fact_data, snapshot.schema),
        (store.terms, snapshot.term_data, layout.TERMS_SCHEMA),
        (store.changes, store.changes.files(), layout.changes_schema(layout.width_of(names))),
        (store.rules, store.rules.files(), layout.RULES_SCHEMA),
    ]
    for table, files, schema in plans:
        for file in files:
            if on_file is not None:
                on_file(f"{table.name}/{file.path}")
            try:
                parquet.read(table, [file], schema)
            except OperationFailed as error:
                problems.append(error)
    return problems or _check_contents(snapshot)


def _check_contents(snapshot: Snapshot) -> list[OperationFailed]:
    store = snapshot.store
    problems: list[OperationFailed] = []

    def expect(condition: bool, table: Table, reason: str) -> None:
        if not condition:
            problems.append(damage(table.folder, reason))

    try:
        terms, _ = snapshot.terms(), snapshot.program
    except OperationFailed as error:
        return [error]
    ids = terms["id"].to_numpy()
    expect(np.array_equal(ids, np.arange(len(ids))), store.terms, "ids are not 0, 1, 2, …")
    expect(len(pc.unique(terms["term"])) == len(ids), store.terms, "duplicate term")
    hashes = term_hash.hashes(terms["term"])
    expect(
        pc.all(pc.equal(terms["hash"], hashes)).as_py() is not False, store.terms, "wrong hashes"
    )
    rows = live(parquet.read(store.facts, snapshot.fact_data, snapshot.schema))
    largest = max((int(c.max()) for c in columns_of(rows) if len(c)), default=-1)
    expect(largest < len(ids), store.facts, f"unknown term id {largest:,}")
    newest = rows["version"].to_numpy().max() if rows.num_rows else 0
    expect(newest <= snapshot.version, store.facts, f"a row has version {newest}")
    counted, stated = totals(count_facts(rows)), totals(snapshot.statistics.relations)
    try:
        changes.check(store, snapshot.version)
    except OperationFailed as error:
        problems.append(error)
    expect(counted == stated, store.facts, f"{counted} facts (explicit, all) instead of {stated}")
    return problems


def count_facts(rows: pa.Table) -> dict[str, Count]:
    """Count the facts of each relation; the rows are distinct facts."""
    totals = rows.group_by("relation").aggregate([("explicit", "sum"), ("relation", "count")])
    counts = {}
    for row in totals.to_pylist():
        name = row["relation"]
        first = rows.filter(pc.equal(rows["relation"], name)).slice(0, 1)
        width = sum(bool(column[0] != NO_TERM) for column in columns_of(first))
        counts[name] = Count(width, row["explicit_sum"], row["relation_count"])
    return counts


def totals(counts: Mapping[str, Count]) -> dict[str, tuple[int, int]]:
    """The numbers of explicit facts and of all facts of each relation that has some."""
    return {name: (count.explicit, count.facts) for name, count in counts.items() if count.facts}


def check_caches(store: Store) -> list[OperationFailed]:
    """The damage in caches and chunks, which can be rebuilt from the tables."""
    problems = [*cache.problems(store), *chunk_files.problems(store.chunks_folder)]
    return [
        OperationFailed(
            "E503",
            f"{store.name_of(path)} is damaged: {reason}",
            "answers do not depend on it; 'corollary repair' rebuilds it",
            file=str(path),
        )
        for path, reason in problems
    ]


def cache_differs(snapshot: Snapshot, dictionary: Dictionary) -> bool:
    """Whether the cache of exactly this version disagrees with the tables."""
    cached = cache.read(snapshot.store, snapshot.version)
    if cached is None or cached.version != snapshot.version:
        return False
    rows = live(parquet.read(snapshot.store.facts, snapshot.fact_data, snapshot.schema))
    expected = columns(rows, dictionary.find(TYPE))
    for actual_parts, parts in zip(cached.columns, expected, strict=True):
        if actual_parts.keys() != parts.keys() or any(
            not np.array_equal(actual_parts[label].values, parts[label].values) for label in parts
        ):
            return True
    texts = snapshot.terms()["term"].combine_chunks()
    cached_texts = type(dictionary).of(cached.terms).texts_from(0)
    return not texts.slice(0, len(cached_texts)).cast(pa.large_string()).equals(cached_texts)
