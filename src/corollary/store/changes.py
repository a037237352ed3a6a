"""Changes between versions: as a feed, version by version, or composed into one diff.

The state of a fact is absent, derived or explicit. A row of changes determines the states before
and after it. The first row of a fact gives its old state, the last row its new state. Where rows
of changes were not written, or are damaged, two versions are compared fact by fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.errors import CorollaryError, OperationFailed
from corollary.store import layout, parquet
from corollary.store.commits import Commit
from corollary.store.delta import damage
from corollary.store.rows import columns_of, relation_codes, run_starts

if TYPE_CHECKING:
    from corollary.store.store import Store

_NONE, _DERIVED, _EXPLICIT = 0, 1, 2
_NAMES = np.array([layout.INSERTED, layout.DELETED, layout.MADE_EXPLICIT, layout.MADE_DERIVED])
_FIRST = ("change", "version")
States = npt.NDArray[np.int8]


def feed(store: Store, since: int, until: int | None = None) -> Iterator[tuple[Commit, pa.Table]]:
    """The commits after `since`, each with its changes: `change`, `relation`, `arg0`, …

    Versions without changes of facts, such as compactions, yield an empty table.
    """
    last = store.commit(until).version
    store.commit(since)
    for version in range(since + 1, last + 1):
        commit = store.commit(version)
        yield commit, of_version(store, commit)


def of_version(store: Store, commit: Commit) -> pa.Table:
    """The changes from the previous version to this one."""
    if commit.changes == "none":
        return _empty()
    if commit.changes == "table":
        try:
            rows = _read_changes(store, [commit])
        except OperationFailed as error:
            return _compare_instead(store, commit.version - 1, commit.version, error)
        return rows.select(["change", *(n for n in rows.column_names if n not in _FIRST)])
    if commit.changes == "facts":
        return _all_inserted(store.snapshot(commit.version).facts())
    return _compare(store, commit.version - 1, commit.version)


def between(store: Store, first: int, second: int) -> pa.Table:
    """The changes from the first version to the second, which may be the older one.

    The columns are `change` (inserted, deleted, explicit, derived), `relation`, `arg0`, … and
    `explicit`: the new state of the fact, or the old one if it is deleted.
    """
    low, high = sorted((first, second))
    store.commit(high), store.commit(low)  # raises if one does not exist
    commits = [store.commit(version) for version in range(low + 1, high + 1)]
    kinds = {commit.changes for commit in commits} - {"none"}
    if not kinds:
        return _empty()
    if kinds <= {"table", "facts"}:
        try:
            rows = compose(list(_recorded_changes(store, commits)))
        except OperationFailed as error:
            rows = _compare_instead(store, low, high, error)
    else:
        rows = _compare(store, low, high)
    return rows if first <= second else inverted(rows)


def _recorded_changes(store: Store, commits: Sequence[Commit]) -> Iterator[pa.Table]:
    """The changes of versions that have rows of changes, or only new facts."""
    recorded = [commit for commit in commits if commit.changes == "table"]
    if recorded:
        yield _read_changes(store, recorded)
    for commit in commits:
        if commit.changes == "facts":
            yield _all_inserted(store.snapshot(commit.version).facts()).append_column(
                "version", pa.array(np.full(commit.statistics.facts, commit.version))
            )


def _compare_instead(store: Store, low: int, high: int, error: OperationFailed) -> pa.Table:
    """Compare two versions because rows of changes are damaged."""
    try:
        return _compare(store, low, high)
    except CorollaryError:  # a version is damaged too, or was removed by a vacuum
        raise error from None


def _read_changes(store: Store, commits: Sequence[Commit]) -> pa.Table:
    """Read the rows of these commits from the table of changes."""
    low, high = commits[0].version, commits[-1].version
    files = store.changes.files_between(low, high)
    names = store.changes.columns()
    rows = parquet.read(store.changes, files, layout.changes_schema(layout.width_of(names)))
    # Failed commit attempts leave rows as well.
    rows = rows.filter(pc.is_in(rows["commit"], pa.array([commit.id for commit in commits])))
    _refuse_missing(store, commits, rows)
    return rows.drop(["commit"])


def _refuse_missing(store: Store, commits: Sequence[Commit], rows: pa.Table) -> None:
    """Fail unless every commit has at least one row, and as many as it counts."""
    counts: dict[str, dict[str, int]] = {}
    grouped = rows.group_by(["commit", "change"]).aggregate([("version", "count")])
    for row in grouped.to_pylist():
        counts.setdefault(row["commit"], {})[row["change"]] = row["version_count"]
    for commit in commits:
        rows_by_change = counts.get(commit.id, {})
        expected = (commit.statistics.inserted, commit.statistics.deleted)
        actual = (rows_by_change.get(layout.INSERTED, 0), rows_by_change.get(layout.DELETED, 0))
        if not rows_by_change or actual != expected:
            raise damage(store.changes.folder, f"changes of version {commit.version} are missing")


def check(store: Store, until: int) -> None:
    """Fail unless the recorded changes up to a version are complete."""
    commits = [store.commit(version) for version in range(until + 1)]
    recorded = [commit for commit in commits if commit.changes == "table"]
    if recorded:
        _read_changes(store, recorded)


def _all_inserted(facts: pa.Table) -> pa.Table:
    change = pa.array([layout.INSERTED] * facts.num_rows, pa.string())
    return facts.add_column(0, "change", change)


def _compare(store: Store, low: int, high: int) -> pa.Table:
    """Compare the facts of two versions."""
    parts = []
    for version, change in ((low, layout.DELETED), (high, layout.INSERTED)):
        facts = store.snapshot(version).facts()
        names = pa.array([change] * facts.num_rows, pa.string())
        number = pa.array(np.full(facts.num_rows, version, np.int64))
        parts.append(facts.add_column(0, "change", names).append_column("version", number))
    return compose(parts)


def compose(parts: Sequence[pa.Table]) -> pa.Table:
    """Compose changes with their `version`: one row per fact whose state differs."""
    rows = _concatenate(parts) if parts else _empty()
    if not rows.num_rows:
        return _empty()
    versions = rows["version"].to_numpy()
    codes, _ = relation_codes(rows)
    keys = [*columns_of(rows), codes]
    order = np.lexsort([versions, *keys])
    starts = np.flatnonzero(run_starts(keys, order))
    ends = np.append(starts[1:], len(order)) - 1
    before, after = _states(rows)
    old, new = before[order[starts]], after[order[ends]]
    changed = old != new
    return _change_rows(rows, order[ends][changed], old[changed], new[changed])


def _states(rows: pa.Table) -> tuple[States, States]:
    """The states of the facts before and after each row of changes."""
    change = np.asarray(rows["change"].to_pylist(), object)
    flag = np.where(rows["explicit"].to_numpy(zero_copy_only=False), _EXPLICIT, _DERIVED)
    kinds = [change == kind for kind in (layout.INSERTED, layout.DELETED, layout.MADE_EXPLICIT)]
    before = np.select(kinds, [_NONE, flag, _DERIVED], _EXPLICIT)
    after = np.select(kinds, [flag, _NONE, _EXPLICIT], _DERIVED)
    return before.astype(np.int8), after.astype(np.int8)


def _change_rows(
    rows: pa.Table, places: npt.NDArray[np.int64], old: States, new: States
) -> pa.Table:
    kind = np.select([old == _NONE, new == _NONE, new == _EXPLICIT], [0, 1, 2], 3)
    explicit = np.where(new == _NONE, old, new) == _EXPLICIT
    names = ["relation", *layout.arguments(layout.width_of(rows.column_names))]
    facts = rows.select(names).take(pa.array(places))
    change = pa.array(_NAMES[kind].tolist(), pa.string())
    facts = facts.add_column(0, "change", change).append_column("explicit", pa.array(explicit))
    return facts.cast(_schema(layout.width_of(names)).remove(len(names) + 2))


def inverted(rows: pa.Table) -> pa.Table:
    """The changes in the other direction."""
    before, after = _states(rows)
    return _change_rows(rows, np.arange(rows.num_rows), after, before)


def _concatenate(parts: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables of different widths; missing arguments are null."""
    schema = _schema(max(layout.width_of(part.column_names) for part in parts))
    return pa.concat_tables([parquet.conform(part, schema) for part in parts])


def _schema(width: int) -> pa.Schema:
    """The schema of changes with their versions."""
    known = layout.changes_schema(width)
    names = ("change", "relation", *layout.arguments(width), "explicit", "version")
    return pa.schema([known.field(name) for name in names])


def _empty() -> pa.Table:
    return _schema(layout.WIDTH).empty_table().drop(["version"])
