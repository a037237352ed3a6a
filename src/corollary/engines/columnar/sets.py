"""Parallel operations on sets of keys: sorted, duplicate-free arrays.

Work of a millisecond or more is split into ranges of keys, one per thread of the engine; kernels
release the GIL. Arrays called `a` and `b` are sets, and so is every result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, repeat
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from corollary.engines.columnar import kernels
from corollary.engines.columnar.buffers import BufferPool
from corollary.engines.columnar.kernels import Array, Ids, Keys
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import current_workers

Counts = npt.NDArray[np.int64]
Result = TypeVar("Result")

# Nanoseconds per key
_MERGE, _SELECT, _UNIQUE, _SWAP, _MARK, _LIST, _LOOK_UP = 2.4, 0.7, 0.5, 4.6, 0.4, 0.2, 0.5
_BITS, _PAIRS = 0.8, 1.5
_LARGEST = 0.25

_DIGIT = 11  # bits per digit of the radix sort: the counts fit into the L1 cache
_marks = BufferPool(lambda size: np.zeros(size, np.uint64), 1 << 22)  # 32 MiB, all 0
_SAMPLE, _CLOSE = 256, 16  # sampled keys; contended if one in this many shares a cache line
_NONE, _HALF, _LOW, _SIX = np.uint64(0), np.uint64(32), np.uint64(2**32 - 1), np.uint64(6)


def merge(a: Keys, b: Keys) -> Keys:
    """Compute a ∪ b."""
    if len(a) and len(b) and (a[-1] < b[0] or b[-1] < a[0]):  # disjoint ranges
        return np.concatenate([a, b] if a[-1] < b[0] else [b, a])
    out = np.empty(len(a) + len(b), np.uint64)
    if tuning.insertion_merge_ratio * len(b) < len(a) < tuning.insertion_merge_keys_limit:
        return _trimmed(out, kernels.merge_by_insertion(a, b, out))
    parts = _parts(_MERGE * len(out))
    if parts == 1:
        return _trimmed(out, kernels.merge(a, b, out))
    i, j = _cuts(a, b, parts)
    return _joined(out, i + j, _map(kernels.merge, _cut(a, i), _cut(b, j), _cut(out, i + j)))


def select(a: Keys, b: Keys, keep: bool) -> Keys:
    """Compute a ∩ b if `keep`, else a \\ b; gallops through b, so that a small a costs little."""
    out = np.empty(len(a), np.uint64)
    parts = _parts(_SELECT * min(len(a) + len(b), 8 * len(a)))
    if parts == 1:
        return _trimmed(out, kernels.select(a, b, keep, out))
    i, j = _cuts(a, b, parts)
    sizes = _map(kernels.select, _cut(a, i), _cut(b, j), repeat(keep), _cut(out, i))
    return _joined(out, i, sizes)


def differences(a: Keys, b: Keys) -> tuple[Keys, Keys]:
    """Compute a \\ b and b \\ a."""
    only_a, only_b = np.empty(len(a), np.uint64), np.empty(len(b), np.uint64)
    parts = _parts(_MERGE * (len(a) + len(b)))
    if parts == 1:
        n, m = kernels.differences(a, b, only_a, only_b)
        return _trimmed(only_a, n), _trimmed(only_b, m)
    i, j = _cuts(a, b, parts)
    ranges = _cut(a, i), _cut(b, j), _cut(only_a, i), _cut(only_b, j)
    of_a, of_b = zip(*_map(kernels.differences, *ranges), strict=True)
    return _joined(only_a, i, of_a), _joined(only_b, j, of_b)


def select_pairs(a: Keys, subjects: Keys, objects: Keys) -> Keys:
    """Keep the pairs whose subject and object are in the bitmaps; an empty one accepts all."""
    out = np.empty(len(a), np.uint64)
    i = _bounds(len(a), _parts(_PAIRS * len(a)))
    ranges = _cut(a, i), repeat(subjects), repeat(objects), _cut(out, i)
    return _joined(out, i, _map(kernels.select_pairs, *ranges))


def unique(a: Keys, shift: np.uint64 = _NONE) -> Keys:
    """Shift sorted keys right and remove duplicates."""
    parts = _parts(_UNIQUE * len(a))
    if parts == 1:
        out = np.empty(len(a), np.uint64)
        return _trimmed(out, kernels.distinct(a, shift, out))
    i = _bounds(len(a), parts)
    # Keys that are equal after shifting belong to one part. Counting the distinct keys of each part
    # first gives the offsets for writing.
    i[1:-1] = np.searchsorted(a, (a[i[1:-1]] >> shift) << shift)
    ends = _ends(_map(kernels.count_distinct, _cut(a, i), repeat(shift)))
    out = np.empty(ends[-1], np.uint64)
    _map(kernels.distinct, _cut(a, i), repeat(shift), _cut(out, ends))
    return out


def transpose(a: Keys) -> Keys:
    """Transpose pairs by a stable radix sort on the objects.

    The subjects are sorted already, so only the digits of the largest object need a pass.
    """
    if len(a) < tuning.radix_sort_pairs_minimum:
        return np.sort((a << _HALF) | (a >> _HALF))
    source, target, other = a, np.empty(len(a), np.uint64), np.empty(len(a), np.uint64)
    digits = -(-largest(a).bit_length() // _DIGIT)
    parts = _parts(_SWAP * len(a))
    for digit in range(max(1, digits)):
        shift, first = np.uint64(_DIGIT * digit + 32), digit == 0  # the first pass transposes
        counts = np.zeros((parts, 1 << _DIGIT), np.uint64)
        if parts == 1:
            kernels.count_digits(source, shift, first, counts[0])
            kernels.prefix_sums(counts)
            kernels.move_digits(source, shift, first, counts[0], target)
        else:
            ranges = _cut(source, _bounds(len(a), parts))
            by_part = ranges, repeat(shift), repeat(first), counts
            _map(kernels.count_digits, *by_part)
            kernels.prefix_sums(counts)
            _map(kernels.move_digits, *by_part, repeat(target))
        source, target, other = target, other, target
    return source


def largest(a: Keys) -> int:
    """Return the largest object of pairs, 0 without pairs."""
    parts = _parts(_LARGEST * len(a))
    if parts == 1:
        return kernels.largest_low(a)
    return max(_map(kernels.largest_low, _cut(a, _bounds(len(a), parts))))


def numbers(
    sources: Sequence[Keys | Ids],
    most: int,
    *,
    subjects: Sequence[Keys] = (),
    without: Sequence[Keys] = (),
) -> Keys:
    """Unite the low halves of keys and the high halves of `subjects`, minus the sets `without`.

    The keys may be unsorted and have duplicates; `most` is the largest number.
    """
    others = [keys[: np.searchsorted(keys, np.uint64(most), "right")] for keys in without]
    sized = [*((keys, _NONE) for keys in sources), *((keys, _HALF) for keys in subjects)]
    room = _marks.acquire(most // 8 + 1)
    words = room[: most // 8 + 1]
    marks = words.view(np.uint8)  # one byte per number, so that threads may mark the same number
    for keys, shift in sized:
        parts = _parts(_MARK * len(keys))
        if parts == 1 or _are_close(keys, shift):
            kernels.mark(marks, keys, shift)
        else:
            ranges = _cut(keys, _bounds(len(keys), parts))
            _map(kernels.mark, repeat(marks), ranges, repeat(shift))
    for keys in others:
        kernels.clear(marks, keys)
    parts = _parts(_LIST * len(marks))
    if parts == 1:
        out = np.empty(kernels.count_bits(words), np.uint64)
        kernels.list_marked(words, 0, out)
    else:
        i = _bounds(len(words), parts)
        ends = _ends(_map(kernels.count_bits, _cut(words, i)))
        out = np.empty(ends[-1], np.uint64)
        _map(kernels.list_marked, _cut(words, i), (8 * i).tolist(), _cut(out, ends))
    _marks.release(room)
    return out


def _are_close(keys: Keys | Ids, shift: np.uint64) -> bool:
    """Test on a sample whether the marks of the keys share few cache lines.

    Threads would contend for these lines (false sharing): marking the objects of 800,000 pairs with
    1,000 universities took 2.4 ms with two threads, and 0.6 ms with one.
    """
    if len(keys) < _CLOSE * _SAMPLE:
        return False
    some = keys[:: len(keys) // _SAMPLE][:_SAMPLE]
    lines = np.unique(((some >> shift) & _LOW) >> _SIX)
    return _CLOSE * len(lines) < (_CLOSE - 1) * _SAMPLE


def bitmap(a: Keys) -> Keys:
    """Convert a nonempty set to a bitmap."""
    bits = np.zeros((int(a[-1]) >> 6) + 1, np.uint64)
    parts = _parts(_BITS * len(a))
    if parts == 1:
        kernels.set_bits(a, bits)
        return bits
    i = _bounds(len(a), parts)
    i[1:-1] = np.searchsorted(a, (a[i[1:-1]] >> _SIX) << _SIX)  # a word belongs to one part
    _map(kernels.set_bits, _cut(a, i), repeat(bits))
    return bits


def look_up(probes: Keys | Ids, bits: Keys, mask: npt.NDArray[np.bool_]) -> None:
    """Set mask[i] where the bit of probes[i] is set."""
    parts = _parts(_LOOK_UP * len(probes))
    if parts == 1:
        kernels.member_bitmap(probes, bits, mask)
        return
    i = _bounds(len(probes), parts)
    _map(kernels.member_bitmap, _cut(probes, i), repeat(bits), _cut(mask, i))


def _parts(nanoseconds: float) -> int:
    """Choose the number of parts for work that takes one thread this long."""
    if tuning.parallel_work_minimum >= nanoseconds:
        return 1
    return current_workers().threads


def _map(kernel: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
    """Map a kernel over parts with the threads of the engine."""
    parts = list(zip(*arguments, strict=False))
    return current_workers().map(lambda part: kernel(*part), parts)


def _bounds(size: int, parts: int) -> Counts:
    """Return the boundaries of equal parts."""
    return np.arange(parts + 1) * size // parts


def _ends(sizes: Sequence[int]) -> Counts:
    """Return the boundaries of parts of these sizes."""
    return np.cumsum([0, *sizes])


def _cut(array: Array, bounds: Counts) -> list[Array]:
    """Split an array into views."""
    return [array[begin:end] for begin, end in pairwise(bounds.tolist())]


def _cuts(a: Keys, b: Keys, parts: int) -> tuple[Counts, Counts]:
    """Split both sets at the same keys; returns the boundaries of the parts."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    bounds, others = _bounds(len(longer), parts), np.zeros(parts + 1, np.int64)
    others[1:-1] = np.searchsorted(shorter, longer[bounds[1:-1]])
    others[-1] = len(shorter)
    return (bounds, others) if longer is a else (others, bounds)


def _joined(out: Keys, begins: Counts, sizes: Sequence[int]) -> Keys:
    """Move the parts of a buffer together."""
    size = 0
    for begin, length in zip(begins.tolist(), sizes, strict=False):
        if begin > size:
            out[size : size + length] = out[begin : begin + length]
        size += length
    return _trimmed(out, size)


def _trimmed(out: Keys, size: int) -> Keys:
    """Return the first `size` keys of a buffer; copy them if most of the buffer is unused."""
    if size == len(out):
        return out
    return out[:size].copy() if 2 * size < len(out) else out[:size]
