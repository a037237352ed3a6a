"""Sets of keys: sorted arrays without repetitions, and arrays that become one.

Large arrays are cut into ranges of keys, for all threads of the engine (`together`). Arrays called
`a` and `b` are sets, and so is every result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.atomic import Numbers
from corollary.engines.columnar import kernels, together
from corollary.engines.columnar.kernels import Ids, Keys
from corollary.engines.columnar.spare import Spare
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import current

# Nanoseconds for each key
_MERGE, _SELECT, _UNIQUE, _SWAP, _MARK, _LIST, _LOOK_UP = 2.4, 0.7, 0.5, 4.6, 0.4, 0.2, 0.5
_BITS, _PAIRS = 0.8, 1.5
_LARGEST = 0.25

_DIGIT = 11  # bits of a digit when pairs are sorted: their counts fit into the fastest cache
_marks = Spare(lambda size: np.zeros(size, np.uint64), 1 << 22)  # 32 MiB, all 0
_SAMPLE, _CLOSE = 256, 16  # keys that are looked at; of these, one of so many has another's line
_NONE, _HALF, _LOW, _SIX = np.uint64(0), np.uint64(32), np.uint64(2**32 - 1), np.uint64(6)


def merge(a: Keys, b: Keys) -> Keys:
    """a ∪ b."""
    if len(a) and len(b) and (a[-1] < b[0] or b[-1] < a[0]):  # one after the other
        return np.concatenate([a, b] if a[-1] < b[0] else [b, a])
    out = np.empty(len(a) + len(b), np.uint64)
    if tuning.insertion_merge_ratio * len(b) < len(a) < tuning.insertion_merge_keys_limit:
        return _trimmed(out, kernels.merge_few(a, b, out))
    slot = _slot(_MERGE * len(out))
    if slot is None:
        return _trimmed(out, kernels.merge(a, b, out))
    i, j = _cuts(a, b)
    return _joined(out, i + j, together.merge(slot, a, b, out, i, j))


def select(a: Keys, b: Keys, keep: bool) -> Keys:
    """a ∩ b if `keep`, else a \\ b; gallops through b, so that a small a costs little."""
    out = np.empty(len(a), np.uint64)
    slot = None
    if len(a) >= tuning.radix_sort_pairs_minimum:
        slot = _slot(_SELECT * min(len(a) + len(b), 8 * len(a)))
    if slot is None:
        return _trimmed(out, kernels.select(a, b, keep, out))
    i, j = _cuts(a, b)
    return _joined(out, i, together.select(slot, a, b, keep, out, i, j))


def select_pairs(a: Keys, subjects: Keys, objects: Keys) -> Keys:
    """The pairs of a whose subjects and objects have their bits set, if there are bits for them."""
    out = np.empty(len(a), np.uint64)
    slot = _slot(_PAIRS * len(a))
    if slot is None:
        return _trimmed(out, kernels.select_pairs(a, subjects, objects, out))
    i = _bounds(len(a))
    return _joined(out, i, together.select_pairs(slot, a, subjects, objects, out, i))


def unique(a: Keys, shift: np.uint64 = _NONE) -> Keys:
    """Sorted keys, shifted right, without repetitions."""
    slot = _slot(_UNIQUE * len(a))
    if slot is None:
        out = np.empty(len(a), np.uint64)
        return _trimmed(out, kernels.distinct(a, shift, out))
    i = _bounds(len(a))
    # Keys that are equal when shifted belong to one part.
    i[1:-1] = np.searchsorted(a, (a[i[1:-1]] >> shift) << shift)
    return together.distinct(slot, a, shift, i)


def swap(a: Keys) -> Keys:
    """Pairs with subject and object exchanged: a stable radix sort by the objects.

    The subjects are in order already, so that only the digits of the largest object need a pass.
    """
    if len(a) < tuning.radix_sort_pairs_minimum:
        return np.sort((a << _HALF) | (a >> _HALF))
    source, target, other = a, np.empty(len(a), np.uint64), np.empty(len(a), np.uint64)
    digits = -(-largest(a).bit_length() // _DIGIT)
    slot = _slot(_SWAP * len(a))
    for digit in range(max(1, digits)):
        shift, first = np.uint64(_DIGIT * digit + 32), digit == 0  # which exchanges the halves
        if slot is None:
            counts = np.zeros((1, 1 << _DIGIT), np.uint64)
            kernels.count_digits(source, shift, first, counts[0])
            kernels.add_up(counts)
            kernels.move_digits(source, shift, first, counts[0], target)
        else:
            counts = np.zeros((current().threads, 1 << _DIGIT), np.uint64)
            together.sort_by_digit(slot, source, _bounds(len(a)), shift, first, counts, target)
        source, target, other = target, other, target
    return source


def largest(a: Keys) -> int:
    """The largest object of pairs, 0 if there is none."""
    slot = _slot(_LARGEST * len(a))
    if slot is None:
        return kernels.largest_low(a)
    return together.largest_low(slot, a, _bounds(len(a)))


def numbers(
    sources: Sequence[Keys | Ids],
    most: int,
    *,
    subjects: Sequence[Keys] = (),
    without: Sequence[Keys] = (),
) -> Keys:
    """The low halves of keys in any order, repetitions allowed, that are at most `most`.

    And the high halves of others, `subjects`; but no number of the sets `without`.
    """
    others = [keys[: np.searchsorted(keys, np.uint64(most), "right")] for keys in without]
    parts = [*((keys, _NONE) for keys in sources), *((keys, _HALF) for keys in subjects)]
    room = _marks.take(most // 8 + 1)
    words = room[: most // 8 + 1]
    marks = words.view(np.uint8)  # a byte for each, so that threads may mark the same number
    slot = _slot(_MARK * sum(len(keys) for keys, _ in parts) + _LIST * len(marks))
    if slot is None:
        for keys, shift in parts:
            kernels.mark(marks, keys, shift)
        for keys in others:
            kernels.clear(marks, keys)
        out = np.empty(kernels.count_bits(words), np.uint64)
        kernels.list_marked(words, 0, out)
        _marks.keep(room)
        return out
    for keys, shift in parts:
        if tuning.awake_threads_work_minimum < _MARK * len(keys) and not _are_close(keys, shift):
            together.mark(slot, keys, words, shift, current().threads)
        else:
            kernels.mark(marks, keys, shift)
    for keys in others:
        if tuning.awake_threads_work_minimum < _MARK * len(keys):
            together.clear(slot, keys, words, _bounds(len(keys)))
        else:
            kernels.clear(marks, keys)
    i = _bounds(len(words))
    k = np.zeros(len(i), np.int64)
    np.cumsum(together.count_bits(slot, words, i), out=k[1:])
    out = np.empty(k[-1], np.uint64)
    together.list_marked(slot, words, i, out, k)
    _marks.keep(room)
    return out


def _are_close(keys: Keys | Ids, shift: np.uint64) -> bool:
    """Whether the marks of the keys are in few lines of the cache, by a sample.

    Threads would take these from each other at every mark: the objects of 800,000 pairs with 1,000
    universities took 2.4 ms by two threads, and 0.6 by one.
    """
    if len(keys) < _CLOSE * _SAMPLE:
        return False
    some = keys[:: len(keys) // _SAMPLE][:_SAMPLE]
    lines = np.unique(((some >> shift) & _LOW) >> _SIX)
    return _CLOSE * len(lines) < (_CLOSE - 1) * _SAMPLE


def bitmap(a: Keys) -> Keys:
    """A set that is not empty as bits."""
    bits = np.zeros((int(a[-1]) >> 6) + 1, np.uint64)
    slot = _slot(_BITS * len(a))
    if slot is None:
        kernels.set_bits(a, bits)
        return bits
    i = _bounds(len(a))
    i[1:-1] = np.searchsorted(a, (a[i[1:-1]] >> _SIX) << _SIX)  # a word belongs to one part
    together.set_bits(slot, a, bits, i)
    return bits


def look_up(probes: Keys | Ids, bits: Keys, mask: npt.NDArray[np.bool_]) -> None:
    """Set mask[i] where the bit of probes[i] is set."""
    slot = _slot(_LOOK_UP * len(probes))
    if slot is None:
        kernels.member_bitmap(probes, bits, mask)
    else:
        together.look_up(slot, probes, bits, mask, _bounds(len(probes)))


def _slot(nanoseconds: float) -> Numbers | None:
    """Where parts of the work are handed out, None if that does not pay."""
    if tuning.awake_threads_work_minimum >= nanoseconds:
        return None
    crew = current().crew
    if crew is None:
        return None
    if tuning.asleep_threads_work_minimum < nanoseconds:
        crew.call()
    elif not crew.awake():
        return None
    return crew.slot


def _bounds(size: int) -> Numbers:
    """Where equal parts begin and end."""
    parts = current().threads
    return np.arange(parts + 1) * size // parts


def _cuts(a: Keys, b: Keys) -> tuple[Numbers, Numbers]:
    """Where parts of both begin and end, which have the same ranges of keys."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    bounds, others = _bounds(len(longer)), np.zeros(current().threads + 1, np.int64)
    others[1:-1] = np.searchsorted(shorter, longer[bounds[1:-1]])
    others[-1] = len(shorter)
    return (bounds, others) if longer is a else (others, bounds)


def _joined(out: Keys, begins: Numbers, sizes: Numbers) -> Keys:
    """The parts of a buffer, moved together."""
    size = 0
    for begin, length in zip(begins.tolist(), sizes.tolist(), strict=False):
        if begin > size:
            out[size : size + length] = out[begin : begin + length]
        size += length
    return _trimmed(out, size)


def _trimmed(out: Keys, size: int) -> Keys:
    """The first `size` keys of a buffer; a copy if most of the buffer would be kept for nothing."""
    if size == len(out):
        return out
    return out[:size].copy() if 2 * size < len(out) else out[:size]
