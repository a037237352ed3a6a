"""A compiled min-heap of candidates for overdeletion."""

from __future__ import annotations

from corollary.core.jit import compiled
from corollary.core.memory import load64, store64
from corollary.engines.tuples import layout as at


@compiled
def push_candidate(control: int, entry: int) -> None:
    """Add an entry; the heap must have room for it."""
    heap, place = load64(control, at.HEAP), load64(control, at.HEAP_COUNT)
    store64(control, at.HEAP_COUNT, place + 1)
    while place > 0:
        above = (place - 1) >> 1
        other = load64(heap, above)
        if other <= entry:
            break
        store64(heap, place, other)
        place = above
    store64(heap, place, entry)


@compiled
def pop_candidate(control: int) -> int:
    """Remove the least entry; the heap must not be empty."""
    heap, count = load64(control, at.HEAP), load64(control, at.HEAP_COUNT) - 1
    least, entry = load64(heap, 0), load64(heap, count)
    store64(control, at.HEAP_COUNT, count)
    place, below = 0, 1
    while below < count:
        if below + 1 < count and load64(heap, below + 1) < load64(heap, below):
            below += 1
        other = load64(heap, below)
        if entry <= other:
            break
        store64(heap, place, other)
        place, below = below, 2 * below + 1
    store64(heap, place, entry)
    return least
