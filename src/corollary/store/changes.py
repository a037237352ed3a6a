"""What changed from one version to another: as a feed, version by version, and in one.

A fact has a state: there is none, it is derived, it is explicit. A row of changes tells the state
before and the state after; of several rows about a fact the first tells what it was and the last
what it is. Where rows of changes were not written, or are damaged, two versions are compared fact
by fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import CorollaryError, OperationFailed
from corollary.store import parquet
from corollary.store.commits import Commit
from corollary.store.delta import damage
from corollary.store.layout import (
    DELETED,
    INSERTED,
    MADE_DERIVED,
    MADE_EXPLICIT,
    WIDTH,
    arguments,
    changes_schema,
    width_of,
)
from corollary.store.rows import columns_of, relation_codes

if TYPE_CHECKING:
    from corollary.store.store import Store

_NONE, _DERIVED, _EXPLICIT = 0, 1, 2
_NAMES = np.array([INSERTED, DELETED, MADE_EXPLICIT, MADE_DERIVED])
_FIRST = ("change", "version")
States = npt.NDArray[np.int8]


def feed(store: Store, since: int, until: int | None = None) -> Iterator[tuple[Commit, pa.Table]]:
    """The versions after `since`, each with its changes: `change`, `relation`, `arg0`, …

    Versions that change no fact, such as compactions, have an empty table.
    """
    last = store.commit(until).version
    store.commit(since)
    for version in range(since + 1, last + 1):
        commit = store.commit(version)
        yield commit, of_version(store, commit)


def of_version(store: Store, commit: Commit) -> pa.Table:
    """By what a version differs from the one before."""
    if commit.changes == "none":
        return _empty()
    if commit.changes == "table":
        try:
            found = _written(store, [commit])
        except OperationFailed as error:
            return _compared_instead(store, commit.version - 1, commit.version, error)
        return found.select(["change", *(n for n in found.column_names if n not in _FIRST)])
    if commit.changes == "facts":
        return _all_new(store.snapshot(commit.version).facts())
    return _compared(store, commit.version - 1, commit.version)


def between(store: Store, first: int, second: int) -> pa.Table:
    """By what the second version differs from the first one, which may be the newer one.

    The columns are `change` (inserted, deleted, explicit, derived), `relation`, `arg0`, … and
    `explicit`: what the fact is, or was if it is deleted.
    """
    low, high = sorted((first, second))
    store.commit(high), store.commit(low)  # fails if one is not there
    commits = [store.commit(version) for version in range(low + 1, high + 1)]
    kinds = {commit.changes for commit in commits} - {"none"}
    if not kinds:
        return _empty()
    if kinds <= {"table", "facts"}:
        try:
            found = _composed(_alike(list(_told_of(store, commits))))
        except OperationFailed as error:
            found = _compared_instead(store, low, high, error)
    else:
        found = _compared(store, low, high)
    return found if first <= second else _inverted(found)


def _told_of(store: Store, commits: Sequence[Commit]) -> Iterator[pa.Table]:
    """The changes of versions that have rows of changes, or only new facts."""
    written = [commit for commit in commits if commit.changes == "table"]
    if written:
        yield _written(store, written)
    for commit in commits:
        if commit.changes == "facts":
            yield _all_new(store.snapshot(commit.version).facts()).append_column(
                "version", pa.array(np.full(commit.statistics.facts, commit.version))
            )


def _compared_instead(store: Store, low: int, high: int, error: OperationFailed) -> pa.Table:
    """The facts of two versions, compared because rows of changes are damaged."""
    try:
        return _compared(store, low, high)
    except CorollaryError:  # a version is damaged too, or a vacuum has removed it
        raise error from None


def _written(store: Store, commits: Sequence[Commit]) -> pa.Table:
    """The rows of some versions in the table of changes."""
    low, high = commits[0].version, commits[-1].version
    files = store.changes.files_between(low, high)
    names = store.changes.columns()
    rows = parquet.read(store.changes, files, changes_schema(width_of(names)))
    # Attempts that did not become a version left rows as well.
    rows = rows.filter(pc.is_in(rows["commit"], pa.array([commit.id for commit in commits])))
    _refuse_missing(store, commits, rows)
    return rows.drop(["commit"])


def _refuse_missing(store: Store, commits: Sequence[Commit], rows: pa.Table) -> None:
    """Fail unless every commit has the rows that it counts, and at least one."""
    counts: dict[str, dict[str, int]] = {}
    grouped = rows.group_by(["commit", "change"]).aggregate([("version", "count")])
    for row in grouped.to_pylist():
        counts.setdefault(row["commit"], {})[row["change"]] = row["version_count"]
    for commit in commits:
        found = counts.get(commit.id, {})
        counted = (commit.statistics.inserted, commit.statistics.deleted)
        if not found or (found.get(INSERTED, 0), found.get(DELETED, 0)) != counted:
            raise damage(store.changes.folder, f"changes of version {commit.version} are missing")


def check(store: Store, until: int) -> None:
    """Fail unless all changes up to a version are there."""
    commits = [store.commit(version) for version in range(until + 1)]
    written = [commit for commit in commits if commit.changes == "table"]
    if written:
        _written(store, written)


def _all_new(facts: pa.Table) -> pa.Table:
    change = pa.array([INSERTED] * facts.num_rows, pa.string())
    return facts.add_column(0, "change", change)


def _compared(store: Store, low: int, high: int) -> pa.Table:
    """The facts of two versions, compared."""
    parts = []
    for version, change in ((low, DELETED), (high, INSERTED)):
        facts = store.snapshot(version).facts()
        names = pa.array([change] * facts.num_rows, pa.string())
        number = pa.array(np.full(facts.num_rows, version, np.int64))
        parts.append(facts.add_column(0, "change", names).append_column("version", number))
    return _composed(_alike(parts))


def _composed(rows: pa.Table) -> pa.Table:
    """One row for each fact whose state differs."""
    if not rows.num_rows:
        return _empty()
    versions = rows["version"].to_numpy()
    codes, _ = relation_codes(rows)
    keys = [*columns_of(rows), codes]
    order = np.lexsort([versions, *keys])
    first = np.zeros(len(order), bool)
    first[0] = True
    for key in keys:
        ordered = key[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(order)) - 1
    before, after = _states(rows)
    was, now = before[order[starts]], after[order[ends]]
    kept = was != now
    return _told(rows, order[ends][kept], was[kept], now[kept])


def _states(rows: pa.Table) -> tuple[States, States]:
    """The state before and after, for each row of changes."""
    change = np.asarray(rows["change"].to_pylist(), object)
    flag = np.where(rows["explicit"].to_numpy(zero_copy_only=False), _EXPLICIT, _DERIVED)
    before = np.select(
        [change == INSERTED, change == DELETED, change == MADE_EXPLICIT],
        [_NONE, flag, _DERIVED],
        _EXPLICIT,
    )
    after = np.select(
        [change == INSERTED, change == DELETED, change == MADE_EXPLICIT],
        [flag, _NONE, _EXPLICIT],
        _DERIVED,
    )
    return before.astype(np.int8), after.astype(np.int8)


def _told(rows: pa.Table, places: npt.NDArray[np.int64], was: States, now: States) -> pa.Table:
    kind = np.select([was == _NONE, now == _NONE, now == _EXPLICIT], [0, 1, 2], 3)
    explicit = np.where(now == _NONE, was, now) == _EXPLICIT
    names = ["relation", *arguments(width_of(rows.column_names))]
    found = rows.select(names).take(pa.array(places))
    change = pa.array(_NAMES[kind].tolist(), pa.string())
    found = found.add_column(0, "change", change).append_column("explicit", pa.array(explicit))
    return found.cast(_schema(width_of(names)).remove(len(names) + 2))


def _inverted(rows: pa.Table) -> pa.Table:
    before, after = _states(rows)
    return _told(rows, np.arange(rows.num_rows), after, before)


def _alike(parts: Sequence[pa.Table]) -> pa.Table:
    """Tables of different widths, one below the other."""
    width = max(width_of(part.column_names) for part in parts)
    names = ["change", "relation", *arguments(width), "explicit", "version"]
    filled = []
    for part in parts:
        for name in names:
            if name not in part.column_names:
                part = part.append_column(name, pa.nulls(part.num_rows, pa.int64()))
        filled.append(part.select(names).cast(_schema(width)))
    return pa.concat_tables(filled)


def _schema(width: int) -> pa.Schema:
    """The columns of changes with their versions."""
    known = changes_schema(width)
    return pa.schema(
        [known.field(n) for n in ("change", "relation", *arguments(width), "explicit", "version")]
    )


def _empty() -> pa.Table:
    return _schema(WIDTH).empty_table().drop(["version"])
