"""Pairs that a graph search reads where they lie: a large run, a few more pairs, a few dead ones.

A search that touches little must not copy a relation into one run first, which costs as much as the
relation is large. The large run and its offsets are shared with earlier versions of the relation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.jit import inlined
from corollary.engines.columnar import sets
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import EMPTY, Relation, merged_keys

_NO_OFFSETS = np.zeros(0, np.int64)


class Layers(NamedTuple):
    """A binary relation for compiled searches."""

    keys: Keys  # the largest run
    starts: npt.NDArray[np.int64]  # its offsets by subject; empty: they are searched for
    more: Keys  # pairs of the other runs, none of them dead
    dead: Keys  # pairs of the largest run that do not count


def layers(relation: Relation, *, offsets: bool = True) -> Layers:
    """The layers of a relation; without `offsets`, a few subjects are looked up."""
    if not relation.runs:
        return Layers(EMPTY, _NO_OFFSETS, EMPTY, EMPTY)
    large, *others = relation.runs
    more, dead = merged_keys(others), merged_keys(relation.dead)
    if len(more) and len(dead) and len(both := sets.select(more, dead, True)):
        more, dead = sets.select(more, both, False), sets.select(dead, both, False)
    return Layers(large.keys, large.offsets() if offsets else _NO_OFFSETS, more, dead)


def turned(relation: Relation) -> Relation:
    """The pairs with subjects and objects exchanged."""
    return Relation(
        2,
        tuple(run.swapped for run in relation.runs),
        tuple(run.swapped for run in relation.dead),
    )


@inlined
def lower(a: Keys, x: np.uint64) -> int:
    """Where the first key is that is not less than x."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) >> 1
        if a[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def first(keys: Keys, starts: npt.NDArray[np.int64], node: np.uint64) -> int:
    """Where the pairs of a node begin in the largest run."""
    if len(starts) > 0:
        return int(starts[min(np.int64(node), np.int64(len(starts) - 1))])
    return lower(keys, node << np.uint64(32))


@inlined
def push(
    keys: Keys,
    starts: npt.NDArray[np.int64],
    more: Keys,
    dead: Keys,
    node: np.uint64,
    marks: npt.NDArray[np.uint8],
    queue: npt.NDArray[np.uint32],
    tail: np.uint64,
) -> np.uint64:
    """Mark the objects of a node that have no mark, and put them into the queue.

    Places are unsigned: signed ones are checked for being counted from the end.
    """
    low32, high32, one = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
    begin = np.uint64(first(keys, starts, node))
    end = np.uint64(first(keys, starts, node + one))
    if len(dead) == 0:
        for i in range(begin, end):
            # without a branch: whether it has a mark is hard to predict
            z = keys[i] & low32
            queue[tail] = z
            tail += one - np.uint64(marks[z])
            marks[z] = 1
    else:
        d = lower(dead, node << high32)
        for i in range(begin, end):
            key = keys[i]
            while d < len(dead) and dead[d] < key:
                d += 1
            if d < len(dead) and dead[d] == key:
                continue
            z = key & low32
            if marks[z] == 0:
                marks[z] = 1
                queue[tail] = z
                tail += one
    if len(more) > 0:
        j = lower(more, node << high32)
        while j < len(more) and more[j] >> high32 == node:
            z = more[j] & low32
            if marks[z] == 0:
                marks[z] = 1
                queue[tail] = z
                tail += one
            j += 1
    return tail
