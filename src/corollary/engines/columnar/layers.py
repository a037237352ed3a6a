"""Zero-copy adjacency for graph searches: a large run, a few more pairs and a few tombstones.

A search that touches little must not merge the relation into one run first, at a cost proportional
to the relation. The large run and its offsets are shared with earlier versions of the relation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.jit import inlined
from corollary.engines.columnar import sets
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import EMPTY, Relation, merge_keys

_NO_OFFSETS = np.zeros(0, np.int64)


class Layers(NamedTuple):
    """A binary relation for compiled searches."""

    keys: Keys  # the largest run
    starts: npt.NDArray[np.int64]  # its offsets by subject; if empty, subjects are searched
    more: Keys  # live pairs of the other runs
    tombstones: Keys  # deleted pairs of the largest run


def layers(relation: Relation, *, offsets: bool = True) -> Layers:
    """The layers of a relation; without `offsets`, for searches from few subjects."""
    if not relation.runs:
        return Layers(EMPTY, _NO_OFFSETS, EMPTY, EMPTY)
    large, *others = relation.runs
    more, tombstones = merge_keys(others), merge_keys(relation.tombstones)
    if len(more) and len(tombstones) and len(both := sets.select(more, tombstones, True)):
        more, tombstones = sets.select(more, both, False), sets.select(tombstones, both, False)
    return Layers(large.keys, large.offsets() if offsets else _NO_OFFSETS, more, tombstones)


def transpose(relation: Relation) -> Relation:
    """The relation with its two columns exchanged."""
    return Relation(
        2,
        tuple(run.transposed for run in relation.runs),
        tuple(run.transposed for run in relation.tombstones),
    )


@inlined
def lower(a: Keys, x: np.uint64) -> int:
    """The position of the first key that is at least x."""
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
    """The position of the first pair of a node in the largest run."""
    if len(starts) > 0:
        return int(starts[min(np.int64(node), np.int64(len(starts) - 1))])
    return lower(keys, node << np.uint64(32))


@inlined
def push(
    keys: Keys,
    starts: npt.NDArray[np.int64],
    more: Keys,
    tombstones: Keys,
    node: np.uint64,
    marks: npt.NDArray[np.uint8],
    queue: npt.NDArray[np.uint32],
    tail: np.uint64,
) -> np.uint64:
    """Mark the unmarked objects of a node and append them to the queue.

    Indexes are unsigned: signed ones are checked for wraparound.
    """
    low32, high32, one = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
    begin = np.uint64(first(keys, starts, node))
    end = np.uint64(first(keys, starts, node + one))
    if len(tombstones) == 0:
        for i in range(begin, end):
            # branch-free: whether it is marked is hard to predict
            z = keys[i] & low32
            queue[tail] = z
            tail += one - np.uint64(marks[z])
            marks[z] = 1
    else:
        d = lower(tombstones, node << high32)
        for i in range(begin, end):
            key = keys[i]
            while d < len(tombstones) and tombstones[d] < key:
                d += 1
            if d < len(tombstones) and tombstones[d] == key:
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
