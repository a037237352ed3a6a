"""Rows of facts: which of them are current, and the order in which they are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.store.layout import arguments, width_of

NO_TERM = -1  # no term has this id
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_FULL_SORT_LIMIT = 1 << 20  # rows


def columns_of(rows: pa.Table) -> list[npt.NDArray[np.int64]]:
    """The argument columns of rows; -1 marks a missing argument."""
    return [
        pc.fill_null(rows[name], NO_TERM).to_numpy()
        for name in arguments(width_of(rows.column_names))
    ]


def relation_codes(rows: pa.Table) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Dictionary-encode the relations: the code of each row, and the sorted names."""
    encoded = rows["relation"].combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return rank[codes] if len(names) else codes.astype(np.int64), sorted(names)


def current(rows: pa.Table) -> pa.Table:
    """Keep the newest row of each fact, tombstones included.

    >>> one = {"relation": "p", "arg0": 1, "explicit": True, "deleted": False, "version": 1}
    >>> current(pa.Table.from_pylist([one, one | {"deleted": True, "version": 2}]))["deleted"]
    <pyarrow.lib.ChunkedArray object at ...>
    [
      [
        true
      ]
    ]
    """
    versions = rows["version"].to_numpy()
    if not len(versions) or versions.min() == versions.max():
        return rows  # a commit has one row per fact
    codes, _ = relation_codes(rows)
    columns = [*columns_of(rows), codes]
    newest = _without_older_rows(columns, versions)
    order = np.flatnonzero(~newest)
    order = order[np.lexsort([-versions[order], *(column[order] for column in columns)])]
    newest[order[run_starts(columns, order)]] = True
    return rows.filter(pa.array(newest))


def run_starts(
    columns: Sequence[npt.NDArray[np.int64]], order: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Mark the first of each run of equal rows, in an order that makes them adjacent."""
    starts = np.zeros(len(order), np.bool_)
    starts[:1] = True
    for column in columns:
        ordered = column[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    return starts


def live(rows: pa.Table) -> pa.Table:
    """Keep the newest row of each fact, unless it is a tombstone."""
    newest = current(rows)
    return newest.filter(pc.invert(newest["deleted"]))


def _without_older_rows(
    columns: list[npt.NDArray[np.int64]], versions: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Mark rows that are the only ones of their facts, as far as a hash can tell.

    Most rows come from one commit, which has one row per fact. Of these, only rows whose hash
    also occurs in another commit need an exact comparison.
    """
    numbers, counts = np.unique(versions, return_counts=True)
    common = versions == numbers[counts.argmax()]
    mixed = np.zeros(len(versions), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.view(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    others = np.unique(mixed[~common])
    places = np.minimum(np.searchsorted(others, mixed), len(others) - 1)
    unique: npt.NDArray[np.bool_] = common & (others[places] != mixed)
    return unique


def sort_rows(rows: pa.Table) -> pa.Table:
    """Sort rows by relation, property, class or subject, so that readers skip row groups."""
    codes, _ = relation_codes(rows)
    columns = columns_of(rows)
    if len(codes) > _FULL_SORT_LIMIT:
        # A stable sort preserves the existing order inside each property; a full sort would cost
        # more than it saves readers.
        order = np.argsort((codes << 33) + columns[1], kind="stable")
    else:
        order = np.lexsort([*reversed(columns), columns[1], codes])
    return rows.take(pa.array(order))
