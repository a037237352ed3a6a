"""Compiled loops over sorted 64-bit keys.

A key is one fact: of a unary predicate the id itself, of a binary one subject << 32 | object.
Arrays called `a` and `b` are sorted and duplicate-free, and so is every result that is called a
set. All kernels release the GIL, are compiled once and then loaded from a cache on disk; with
NUMBA_DISABLE_JIT=1 they run as plain Python. Large results are allocated by numpy, which asks for
huge pages: writing a fresh array of 4 million keys took 3.6 ms, against 12 ms in one that compiled
code had allocated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.bits import lowest, ones
from corollary.core.jit import compiled, inlined, quadratic

Keys = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.uint32]
Array = npt.NDArray[Any]


@compiled
def merge(a: Keys, b: Keys, out: Keys) -> int:
    """Write a ∪ b."""
    i = j = n = 0
    while i < len(a) and j < len(b):
        x, y = a[i], b[j]
        out[n] = min(x, y)
        n += 1
        i += x <= y
        j += y <= x
    while i < len(a):
        out[n] = a[i]
        n += 1
        i += 1
    while j < len(b):
        out[n] = b[j]
        n += 1
        j += 1
    return n


@inlined
def gallop(a: Keys, x: np.uint64, start: int) -> int:
    """The first position from `start` on whose key is at least x."""
    n = len(a)
    if start >= n or a[start] >= x:
        return start
    step = 1
    low = start
    while low + step < n and a[low + step] < x:
        low += step
        step += step
    high = min(low + step, n)
    while low + 1 < high:
        middle = (low + high) >> 1
        if a[middle] < x:
            low = middle
        else:
            high = middle
    return high


@compiled
def merge_by_insertion(a: Keys, b: Keys, out: Keys) -> int:
    """Write a ∪ b; the ranges of a between two keys of b are copied as blocks."""
    i = n = np.uint64(0)  # unsigned: ten times faster, as blocks are copied by words
    size, one = np.uint64(len(a)), np.uint64(1)
    for y in b:
        j = np.uint64(gallop(a, y, int(np.int64(i))))
        for k in range(i, j):
            out[k + n - i] = a[k]
        n += j - i
        i = j + np.uint64(j < size and a[j] == y)
        out[n] = y
        n += one
    for k in range(i, size):
        out[k + n - i] = a[k]
    return int(n + size - i)


@compiled
def select(a: Keys, b: Keys, keep: bool, out: Keys) -> int:
    """Write a ∩ b if `keep`, else a \\ b; gallops through b, so that a small a costs little."""
    n = j = np.uint64(0)  # unsigned: signed indexes are checked for wraparound
    one, size = np.uint64(1), np.uint64(len(b))
    dense = len(b) < 8 * len(a)
    for x in a:
        if dense:
            while j < size and b[j] < x:
                j += one
        else:
            j = np.uint64(gallop(b, x, int(np.int64(j))))
        if (j < size and b[j] == x) == keep:
            out[n] = x
            n += one
    return int(n)


@compiled
def differences(a: Keys, b: Keys, only_a: Keys, only_b: Keys) -> tuple[int, int]:
    """Write a \\ b and b \\ a."""
    i = j = n = m = np.uint64(0)
    one = np.uint64(1)
    size, other = np.uint64(len(a)), np.uint64(len(b))
    while i < size and j < other:
        # branch-free: which is less is hard to predict
        x, y = a[i], b[j]
        only_a[n] = x
        only_b[m] = y
        n += np.uint64(x < y)
        m += np.uint64(y < x)
        i += np.uint64(x <= y)
        j += np.uint64(y <= x)
    while i < size:
        only_a[n] = a[i]
        n += one
        i += one
    while j < other:
        only_b[m] = b[j]
        m += one
        j += one
    return int(n), int(m)


@compiled
def member(probes: Keys | Ids, a: Keys, mask: npt.NDArray[np.bool_]) -> None:
    """Set mask[i] where probes[i] ∈ a; sorted ranges of probes are found by galloping."""
    j = 0
    before = np.uint64(0)
    for i in range(len(probes)):
        x = np.uint64(probes[i])
        if x < before:
            j = 0
        j = gallop(a, x, j)
        before = x
        if j < len(a) and a[j] == x:
            mask[i] = True


@compiled
def set_bits(a: Keys, bits: Keys) -> None:
    """Set the bits of the keys in words that are all zero."""
    if len(a) == 0:
        return
    at, word = a[0] >> np.uint64(6), np.uint64(0)
    for x in a:  # a word is written once: keys are in order
        w = x >> np.uint64(6)
        if w != at:
            bits[at] = word
            at, word = w, np.uint64(0)
        word |= np.uint64(1) << (x & np.uint64(63))
    bits[at] = word


@compiled
def member_bitmap(probes: Keys | Ids, bits: Keys, mask: npt.NDArray[np.bool_]) -> None:
    """Set mask[i] where the bit of probes[i] is set."""
    limit = np.uint64(len(bits) * 64)
    for i in range(len(probes)):
        x = np.uint64(probes[i])
        if x < limit and (bits[x >> np.uint64(6)] >> (x & np.uint64(63))) & np.uint64(1):
            mask[i] = True


@compiled
def select_pairs(a: Keys, subjects: Keys, objects: Keys, out: Keys) -> int:
    """Keep the pairs whose subject and object are in the bitmaps; an empty one accepts all."""
    low, six, low6, one = np.uint64(0xFFFFFFFF), np.uint64(6), np.uint64(63), np.uint64(1)
    none = np.uint64(0)
    left, right = np.uint64(len(subjects)), np.uint64(len(objects))
    n = none
    for i in range(np.uint64(len(a))):
        key = a[i]
        x, z = key >> np.uint64(32), key & low
        # branch-free: which pairs pass is hard to predict
        out[n] = key
        keep = one
        if left > none:
            w = x >> six
            keep = (subjects[w if w < left else none] >> (x & low6)) & np.uint64(w < left)
        if right > none:
            w = z >> six
            keep &= (objects[w if w < right else none] >> (z & low6)) & np.uint64(w < right)
        n += keep
    return int(n)


@compiled
def mark(marks: npt.NDArray[np.uint8], keys: Keys | Ids, shift: np.uint64) -> None:
    """Mark the 32-bit number at `shift` of each key, or ids."""
    for key in keys:
        marks[(np.uint64(key) >> shift) & np.uint64(0xFFFFFFFF)] = 1


@compiled
def clear(marks: npt.NDArray[np.uint8], keys: Keys) -> None:
    """Clear the marks of the keys."""
    for key in keys:
        marks[key] = 0


@compiled
def count_bits(words: Keys) -> int:
    """Count the bits that are set."""
    n = 0
    for word in words:
        n += ones(word)
    return n


@compiled
def list_marked(words: Keys, start: int, out: Keys) -> None:
    """Write the positions of the marks, eight to a word, counted from `start`, and clear them."""
    n = 0
    one, all_ = np.uint64(1), np.uint64(0x0101010101010101)
    for w in range(len(words)):
        word = words[w]
        base = start + 8 * w
        if word != np.uint64(0):
            words[w] = 0
        if word == all_:
            for i in range(8):
                out[n + i] = base + i
            n += 8
        else:
            while word:
                out[n] = base + (lowest(word) >> 3)
                n += 1
                word &= word - one


@compiled
def largest_low(a: Keys) -> int:
    """The largest object of pairs, 0 without pairs."""
    largest = np.uint64(0)
    for key in a:
        largest = max(largest, key & np.uint64(0xFFFFFFFF))
    return int(largest)


@compiled
def distinct(a: Keys, shift: np.uint64, out: Keys) -> int:
    """Write the distinct keys of a sorted array, shifted right."""
    n = 0
    before = np.uint64(0)
    for i in range(len(a)):
        x = a[i] >> shift
        # branch-free: the position is overwritten until the next key differs
        n += i == 0 or x != before
        out[n - 1] = x
        before = x
    return n


@compiled
def count_distinct(a: Keys, shift: np.uint64) -> int:
    """Count the distinct keys of a sorted array, shifted right."""
    n = int(len(a) > 0)
    for i in range(1, len(a)):
        n += (a[i] ^ a[i - 1]) >> shift != np.uint64(0)
    return n


@compiled
def order(a: Keys) -> int:
    """1 if keys are sorted and distinct, 0 if they are sorted, -1 if not."""
    strict = 1
    for i in range(1, len(a)):
        if a[i - 1] >= a[i]:
            if a[i - 1] > a[i]:
                return -1
            strict = 0
    return strict


@compiled
def count_digits(keys: Keys, shift: np.uint64, first: bool, counts: Keys) -> None:
    """Count the keys with each digit at `shift`, transposed in the `first` pass."""
    last = np.uint64(len(counts) - 1)
    if first:
        shift ^= np.uint64(32)
    for key in keys:
        counts[(key >> shift) & last] += np.uint64(1)


@compiled
def prefix_sums(counts: npt.NDArray[np.uint64]) -> None:
    """Turn the digit counts of each part into the first position of each digit."""
    before = np.uint64(0)
    for d in range(counts.shape[1]):
        for part in range(counts.shape[0]):
            number = counts[part, d]
            counts[part, d] = before
            before += number


@compiled
def move_digits(keys: Keys, shift: np.uint64, first: bool, places: Keys, out: Keys) -> None:
    """Move keys to the positions of their digits; the first pass transposes them."""
    last, half = np.uint64(len(places) - 1), np.uint64(32)
    for key in keys:
        moved = (key << half) | (key >> half) if first else key
        d = (moved >> shift) & last
        out[places[d]] = moved
        places[d] += np.uint64(1)


def offsets(a: Keys, shift: np.uint64, size: int) -> npt.NDArray[np.int64]:
    """The offsets of the keys with each number at `shift`: result[x] … result[x + 1]."""
    out = np.zeros(size + 1, np.int64)
    _offsets(a, shift, size, out)
    return out


@compiled
def _offsets(a: Keys, shift: np.uint64, size: int, out: npt.NDArray[np.int64]) -> None:
    for key in a:
        out[(key >> shift) + np.uint64(1)] += 1
    for x in range(size):
        out[x + 1] += out[x]


@compiled
def ranges(
    a: Keys,
    shift: np.uint64,
    probes: Keys,
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
) -> None:
    """For each probe the range of `a` whose keys, shifted right, equal it."""
    j = 0
    before = np.uint64(0)
    one = np.uint64(1)
    for i in range(len(probes)):
        x = probes[i]
        if i and x == before:
            low[i], high[i] = low[i - 1], high[i - 1]
            continue
        if x < before:
            j = 0
        j = gallop(a, x << shift, j)
        low[i] = j
        j = gallop(a, (x + one) << shift, j) if (x + one) << shift else len(a)
        high[i] = j
        before = x


@compiled
def ranges_by_offsets(
    starts: npt.NDArray[np.int64],
    probes: Keys,
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
) -> None:
    """`ranges` with an offset index."""
    size = np.uint64(len(starts) - 1)
    for i in range(len(probes)):
        x = probes[i]
        if x < size:
            low[i], high[i] = starts[x], starts[x + np.uint64(1)]
        else:
            low[i] = high[i] = 0


def expand(
    low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], total: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Row numbers and positions of all entries of the ranges."""
    rows, places = np.empty(total, np.int64), np.empty(total, np.int64)
    _expand(low, high, rows, places)
    return rows, places


@compiled
def _expand(
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
) -> None:
    n = 0
    for i in range(len(low)):
        for j in range(low[i], high[i]):
            rows[n] = i
            places[n] = j
            n += 1


def gather(a: Keys, places: npt.NDArray[np.int64]) -> Ids:
    """The low halves of the keys at these positions."""
    out = np.empty(len(places), np.uint32)
    _gather(a, places, out)
    return out


@compiled
def _gather(a: Keys, places: npt.NDArray[np.int64], out: Ids) -> None:
    for i in range(len(places)):
        out[i] = a[places[i]] & np.uint64(0xFFFFFFFF)


def pack(high: Ids, low: Ids) -> Keys:
    """high << 32 | low."""
    out = np.empty(len(high), np.uint64)
    _pack(high, low, out)
    return out


@compiled
def _pack(high: Ids, low: Ids, out: Keys) -> None:
    for i in range(len(high)):
        out[i] = (np.uint64(high[i]) << np.uint64(32)) | np.uint64(low[i])


def halves(a: Keys) -> tuple[Ids, Ids]:
    """High and low halves of keys."""
    high, low = np.empty(len(a), np.uint32), np.empty(len(a), np.uint32)
    _halves(a, high, low)
    return high, low


@compiled
def _halves(a: Keys, high: Ids, low: Ids) -> None:
    for i in range(len(a)):
        high[i] = a[i] >> np.uint64(32)
        low[i] = a[i] & np.uint64(0xFFFFFFFF)


@compiled
def fan_out(left: Keys, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each (x, y) of `left` the number of pairs that begin with y."""
    out = np.zeros(len(left), np.int64)
    size = np.uint64(len(starts) - 1)
    for i in range(len(left)):
        y = left[i] & np.uint64(0xFFFFFFFF)
        if y < size:
            out[i] = starts[y + np.uint64(1)] - starts[y]
    return out


@quadratic
def compose(
    left: Keys,
    starts: npt.NDArray[np.int64],
    right: Keys,
    stamps: npt.NDArray[np.int64],
    epoch: int,
) -> tuple[Keys, int, int]:
    """{(x, z) | (x, y) ∈ left, (y, z) ∈ right}, per x, with marks instead of sorting.

    `left` is sorted; `starts` are the offsets of `right` by y; `stamps` has an entry per z and is
    reused with a higher epoch. Returns the distinct pairs grouped by x (objects unordered), the
    number of instances and the next epoch.
    """
    out = np.empty(max(16, len(left)), np.uint64)
    n = instances = 0
    size = np.uint64(len(starts) - 1)
    subject = np.uint64(0)
    for i in range(len(left)):
        x, y = left[i] >> np.uint64(32), left[i] & np.uint64(0xFFFFFFFF)
        if i == 0 or x != subject:
            subject = x
            epoch += 1
        if y >= size:
            continue
        first, last = starts[y], starts[y + np.uint64(1)]
        instances += last - first
        if n + last - first > len(out):
            grown = np.empty(max(2 * len(out), n + last - first), np.uint64)
            grown[:n] = out[:n]
            out = grown
        for j in range(first, last):
            z = right[j] & np.uint64(0xFFFFFFFF)
            if stamps[z] != epoch:
                stamps[z] = epoch
                out[n] = (x << np.uint64(32)) | z
                n += 1
    return out[:n].copy(), instances, epoch


@quadratic
def compose_by_search(left: Keys, right: Keys) -> Keys:
    """`compose` by searching for each y: for a left side that is small against the right."""
    out = np.empty(16, np.uint64)
    n = 0
    low = np.uint64(0xFFFFFFFF)
    before, place = np.uint64(0), 0
    for i in range(len(left)):
        first = (left[i] & low) << np.uint64(32)
        if first != before:  # adjacent pairs often have the same or the next y
            place = gallop(right, first, place if first > before else 0)
            before = first
        j = place
        while j < len(right) and right[j] - first <= low:
            if n == len(out):
                grown = np.empty(2 * n, np.uint64)
                grown[:n] = out
                out = grown
            out[n] = (left[i] & ~low) | (right[j] & low)
            n += 1
            j += 1
    return out[:n].copy()


@compiled
def sort_groups(keys: Keys) -> None:
    """Sort each group of keys that are grouped by ascending high half."""
    i = 0
    while i < len(keys):
        j = i + 1
        while j < len(keys) and keys[j] >> np.uint64(32) == keys[i] >> np.uint64(32):
            j += 1
        if j - i > 1:
            keys[i:j].sort()
        i = j


@compiled
def intern(
    table: npt.NDArray[np.int64], known: Keys, count: int, keys: Keys, ids: npt.NDArray[np.uint32]
) -> int:
    """Number keys, new ones consecutively, in an open-addressing hash `table` of numbers.

    `known` has room for all keys, and `table` for twice as many; returns the new count.
    """
    mask = np.uint64(len(table) - 1)
    for i in range(len(keys)):
        key = keys[i]
        h = key * np.uint64(0x9E3779B97F4A7C15)
        place = (h ^ (h >> np.uint64(29))) & mask
        while True:
            at = table[place]
            if at < 0:
                table[place] = count
                known[count] = key
                ids[i] = count
                count += 1
                break
            if known[at] == key:
                ids[i] = at
                break
            place = (place + np.uint64(1)) & mask
    return count
