"""Rows of facts: which of them count, and in which order they are written."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.store.layout import arguments, width_of

NO_TERM = -1  # no term has this id


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
    order = np.lexsort([-versions, *columns])
    first = np.zeros(len(order), bool)
    first[0] = True
    for column in columns:
        ordered = column[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    return rows.take(pa.array(np.sort(order[first])))


def in_order(rows: pa.Table) -> pa.Table:
    """Rows by relation, property, class or subject: readers skip what they do not want."""
    codes, _ = relation_codes(rows)
    columns = columns_of(rows)
    keys = [*reversed(columns), codes]
    if len(columns) > 1:
        keys.insert(-1, columns[1])
    return rows.take(pa.array(np.lexsort(keys)))
