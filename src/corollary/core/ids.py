"""Sets of ids as arrays: in order, each once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Ids


def in_order(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values in order, each once; `np.unique` without an inverse hashes, which takes longer.

    >>> in_order(np.array([3, 1, 3], np.uint32)).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    found: npt.NDArray[Any] = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return found


def together(one: Ids, two: Ids) -> Ids:
    """The ids of both, in order, each once; see `in_order`.

    >>> together(np.array([1, 5], np.uint32), np.array([5, 3], np.uint32)).tolist()
    [1, 3, 5]
    """
    return in_order(np.concatenate([one, two]))


def missing_in(known: Ids, ids: Ids) -> Ids:
    """The ids, in order, each once, that are not among known ones, which are in order.

    >>> missing_in(np.array([1, 5], np.uint32), np.array([7, 5, 3, 7], np.uint32)).tolist()
    [3, 7]
    """
    asked = in_order(ids)
    return asked[~contains(known, asked)]


class Contained:
    """`contains` for the same ids many times: by a table of all ids up to the last, if it pays.

    It takes 3 to 5 ns for a value, and halving 40 to 100.

    >>> ids = np.array([2, 3], np.uint32)
    >>> Contained()(ids, np.array([1, 3, 9], np.uint32)).tolist()
    [False, True, False]
    """

    def __init__(self, room: int = 1 << 26) -> None:
        self._room = room  # bytes for all tables
        self._used = 0
        self._tables: dict[int, tuple[Ids, npt.NDArray[np.bool_]]] = {}

    def __call__(self, ids: Ids, values: Ids) -> npt.NDArray[np.bool_]:
        known = self._tables.get(id(ids))
        if known is None:
            size = int(ids[-1]) + 2 if len(ids) else 0
            if not size or size > self._room or 64 * len(values) < size:
                return contains(ids, values)
            if self._used + size > self._room:
                self._tables, self._used = {}, 0
            table = np.zeros(size, bool)
            table[ids] = True
            known = self._tables[id(ids)] = ids, table
            self._used += size
        table = known[1]
        return np.asarray(table[np.minimum(values, len(table) - 1)])


def contains(ids: Ids, values: Ids) -> npt.NDArray[np.bool_]:
    """Which values are among the ids, which are sorted."""
    if not len(ids):
        return np.zeros(len(values), bool)
    at = np.searchsorted(ids, values)
    at[at == len(ids)] = 0
    return np.asarray(ids[at] == values)
