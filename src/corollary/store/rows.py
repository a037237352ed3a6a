"""Rows of facts: which of them count, and in which order they are written."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.store.layout import arguments, width_of

NO_TERM = -1  # no term has this id
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_MANY = 1 << 20  # rows


def columns_of(rows: pa.Table) -> list[npt.NDArray[np.int64]]:
    """The arguments of rows, -1 where there is none."""
    return [
        pc.fill_null(rows[name], NO_TERM).to_numpy()
        for name in arguments(width_of(rows.column_names))
    ]


def relation_codes(rows: pa.Table) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The relation of each row as a number, and the names of the numbers, in order."""
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
    """Of the rows of each fact the one with the highest version, tombstones included.

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
        return rows  # a commit has one row for each fact
    codes, _ = relation_codes(rows)
    columns = [*columns_of(rows), codes]
    alone = _alone(columns, versions)
    order = np.flatnonzero(~alone)
    order = order[np.lexsort([-versions[order], *(column[order] for column in columns)])]
    first = np.zeros(len(order), bool)
    first[:1] = True
    for column in columns:
        ordered = column[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    kept = alone
    kept[order[first]] = True
    return rows.filter(pa.array(kept))


def _alone(
    columns: list[npt.NDArray[np.int64]], versions: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Rows that are the only ones of their facts, as far as that is cheap to tell.

    Most rows come from one commit, which has one for each fact; only those of them need a closer
    look whose fact another commit has too, and a hash tells that of nearly all of them.
    """
    numbers, counts = np.unique(versions, return_counts=True)
    common = versions == numbers[counts.argmax()]
    mixed = np.zeros(len(versions), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.view(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    others = np.unique(mixed[~common])
    places = np.minimum(np.searchsorted(others, mixed), len(others) - 1)
    alone: npt.NDArray[np.bool_] = common & (others[places] != mixed)
    return alone


def in_order(rows: pa.Table) -> pa.Table:
    """Rows by relation, property, class or subject: readers skip what they do not want."""
    codes, _ = relation_codes(rows)
    columns = columns_of(rows)
    if len(codes) > _MANY:
        # What was in order before stays so inside of a property; to sort all would take longer
        # than it saves readers.
        order = np.argsort((codes << 33) + columns[1], kind="stable")
    else:
        order = np.lexsort([*reversed(columns), columns[1], codes])
    return rows.take(pa.array(order))
