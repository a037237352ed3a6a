"""Sets of keys: sorted arrays without repetitions, and arrays that become one.

Large arrays are cut into ranges of keys, one for each thread of the engine. Arrays called `a` and
`b` are sets, and so is every result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from corollary.engines.columnar import kernels
from corollary.engines.columnar.kernels import Ids, Keys
from corollary.engines.columnar.workers import A, current

# Nanoseconds of work from which on it is cut into parts: handing one over takes some 45,000.
_LONG = 250_000
_MERGE, _SELECT, _UNIQUE, _SWAP, _MARK, _LIST, _LOOK_UP = 2.4, 0.7, 0.5, 4.6, 0.4, 0.2, 0.5  # a key

_DIGIT = 11  # bits of a digit when pairs are sorted: their counts fit into the fastest cache
_FEWER = 8  # so many times fewer keys are put between stretches of the others
_FEW = 1 << 10  # pairs that are sorted sooner than all digits are counted
_NONE, _HALF = np.uint64(0), np.uint64(32)

Bounds = list[int]


def merge(a: Keys, b: Keys) -> Keys:
    """a ∪ b."""
    out = np.empty(len(a) + len(b), np.uint64)
    if _FEWER * len(b) < len(a) < _LONG:
        return _trimmed(out, kernels.merge_few(a, b, out))
    if (parts := _parts(_MERGE * len(out))) == 1:
        return _trimmed(out, kernels.merge(a, b, out))
    i, j = _cuts(a, b, parts)
    k = [x + y for x, y in zip(i, j, strict=True)]

    def part(p: int) -> int:
        q = p + 1
        return kernels.merge(a[i[p] : i[q]], b[j[p] : j[q]], out[k[p] : k[q]])

    return _joined(out, k, _each(part, parts))


def select(a: Keys, b: Keys, keep: bool) -> Keys:
    """a ∩ b if `keep`, else a \\ b; gallops through b, so that a small a costs little."""
    out = np.empty(len(a), np.uint64)
    if len(a) < _FEW or (parts := _parts(_SELECT * min(len(a) + len(b), 8 * len(a)))) == 1:
        return _trimmed(out, kernels.select(a, b, keep, out))
    i, j = _cuts(a, b, parts)

    def part(p: int) -> int:
        q = p + 1
        return kernels.select(a[i[p] : i[q]], b[j[p] : j[q]], keep, out[i[p] : i[q]])

    return _joined(out, i, _each(part, parts))


def unique(a: Keys, shift: np.uint64 = _NONE) -> Keys:
    """Sorted keys, shifted right, without repetitions."""
    out = np.empty(len(a), np.uint64)
    if (parts := _parts(_UNIQUE * len(a))) == 1:
        return _trimmed(out, kernels.distinct(a, shift, out))
    i = _bounds(len(a), parts)
    # Keys that are equal when shifted belong to one part.
    i[1:-1] = [int(np.searchsorted(a, (a[at] >> shift) << shift)) for at in i[1:-1]]

    def part(p: int) -> int:
        return kernels.distinct(a[i[p] : i[p + 1]], shift, out[i[p] : i[p + 1]])

    return _joined(out, i, _each(part, parts))


def swap(a: Keys) -> Keys:
    """Pairs with subject and object exchanged: a stable radix sort by the objects.

    The subjects are in order already, so that only the digits of the largest object need a pass.
    """
    if len(a) < _FEW:
        return np.sort((a << _HALF) | (a >> _HALF))
    source, target, other = a, np.empty(len(a), np.uint64), np.empty(len(a), np.uint64)
    i = _bounds(len(a), _parts(_SWAP * len(a)))
    digits = -(-kernels.largest_low(a).bit_length() // _DIGIT)
    for digit in range(max(1, digits)):
        _sort_by_digit([source[low:high] for low, high in pairwise(i)], digit, target)
        source, target, other = target, other, target
    return source


def _sort_by_digit(parts: list[Keys], digit: int, target: Keys) -> None:
    counts = np.zeros((len(parts), 1 << _DIGIT), np.uint64)
    shift = np.uint64(_DIGIT * digit + 32)
    first = digit == 0  # which exchanges the halves
    _each(lambda p: kernels.count_digits(parts[p], shift, first, counts[p]), len(parts))
    kernels.add_up(counts)
    _each(lambda p: kernels.move_digits(parts[p], shift, first, counts[p], target), len(parts))


def numbers(sources: Sequence[Keys | Ids], largest: int) -> Keys:
    """The low halves of keys in any order, repetitions allowed, that are at most `largest`."""
    words = np.zeros(largest // 8 + 1, np.uint64)
    marks = words.view(np.uint8)  # a byte for each, so that threads may mark the same number
    size = sum(map(len, sources))
    parts = _parts(_MARK * size + _LIST * len(marks))

    def mark(p: int) -> None:
        for keys in sources:
            kernels.mark(marks, keys[len(keys) * p // parts : len(keys) * (p + 1) // parts], _NONE)

    _each(mark, parts)
    i = _bounds(len(words), parts)
    counts = _each(lambda p: kernels.count_bits(words[i[p] : i[p + 1]]), parts)
    ends = np.cumsum([0, *counts]).tolist()
    out = np.empty(ends[-1], np.uint64)

    def write(p: int) -> None:
        kernels.list_marked(words[i[p] : i[p + 1]], 8 * i[p], out[ends[p] : ends[p + 1]])

    _each(write, parts)
    return out


def look_up(probes: Keys | Ids, bits: Keys, mask: npt.NDArray[np.bool_]) -> None:
    """Set mask[i] where the bit of probes[i] is set."""
    i = _bounds(len(probes), _parts(_LOOK_UP * len(probes)))
    parts = [slice(low, high) for low, high in pairwise(i)]
    _each(lambda p: kernels.member_bitmap(probes[parts[p]], bits, mask[parts[p]]), len(parts))


def _parts(nanoseconds: float) -> int:
    """Into how many parts work is cut."""
    return current().threads if nanoseconds > _LONG else 1


def _each(work: Callable[[int], A], parts: int) -> list[A]:
    return current().map(work, range(parts))


def _bounds(size: int, parts: int) -> Bounds:
    """Where equal parts begin and end."""
    return [size * at // parts for at in range(parts + 1)]


def _cuts(a: Keys, b: Keys, parts: int) -> tuple[Bounds, Bounds]:
    """Where parts of both begin and end, which have the same ranges of keys."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    bounds = _bounds(len(longer), parts)
    inner = [int(np.searchsorted(shorter, longer[at])) for at in bounds[1:-1]]
    others = [0, *inner, len(shorter)]
    return (bounds, others) if longer is a else (others, bounds)


def _joined(out: Keys, begins: Bounds, sizes: Sequence[int]) -> Keys:
    """The parts of a buffer without the gaps between them."""
    ends = np.cumsum([0, *sizes]).tolist()
    if ends[:-1] == begins[:-1]:
        return _trimmed(out, ends[-1])
    whole = np.empty(ends[-1], np.uint64)

    for begin, (low, high) in zip(begins, pairwise(ends), strict=False):
        whole[low:high] = out[begin : begin + high - low]
    return whole


def _trimmed(out: Keys, size: int) -> Keys:
    """The first `size` keys of a buffer; a copy if most of the buffer would be kept for nothing."""
    if size == len(out):
        return out
    return out[:size].copy() if 2 * size < len(out) else out[:size]
