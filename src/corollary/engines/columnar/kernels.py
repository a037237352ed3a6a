"""Compiled loops over sorted 64-bit keys.

A key is one fact: of a unary predicate the id itself, of a binary one subject << 32 | object.
Arrays called `a` and `b` are sorted and duplicate-free, and so is every result that is called a
set. All kernels release the lock, are compiled once and then come from the cache on disk; with
NUMBA_DISABLE_JIT=1 they run as plain Python. Large results are allocated by numpy, which asks for
huge pages: writing a fresh array of 4 million keys took 3.6 ms, against 12 ms in one that compiled
code had allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.uint32]
Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first use, cache on disk, run without the lock."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))


def inlined(function: Function) -> Function:
    """Compile into the callers: a real call would count references to its arrays each time."""
    return cast(Function, numba.njit(cache=True, nogil=True, inline="always")(function))


def trimmed(out: Keys, size: int) -> Keys:
    """The first `size` keys of a buffer; a copy if most of the buffer would be kept for nothing."""
    return out[:size].copy() if 2 * size < len(out) else out[:size]


def merge(a: Keys, b: Keys) -> Keys:
    """a ∪ b."""
    out = np.empty(len(a) + len(b), np.uint64)
    return trimmed(out, _merge(a, b, out))


@compiled
def _merge(a: Keys, b: Keys, out: Keys) -> int:
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
    """The first place from `start` on whose key is not less than x."""
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


def select(a: Keys, b: Keys, keep: bool) -> Keys:
    """a ∩ b if `keep`, else a \\ b; gallops through b, so that a small a costs little."""
    out = np.empty(len(a), np.uint64)
    return trimmed(out, _select(a, b, keep, out))


@compiled
def _select(a: Keys, b: Keys, keep: bool, out: Keys) -> int:
    n = j = 0
    dense = len(b) < 8 * len(a)
    for i in range(len(a)):
        x = a[i]
        if dense:
            while j < len(b) and b[j] < x:
                j += 1
        else:
            j = gallop(b, x, j)
        if (j < len(b) and b[j] == x) == keep:
            out[n] = x
            n += 1
    return n


@compiled
def member(probes: Keys | Ids, a: Keys, mask: npt.NDArray[np.bool_]) -> None:
    """Set mask[i] where probes[i] ∈ a; sorted stretches of probes are found by galloping."""
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
def bitmap(a: Keys, words: int) -> Keys:
    """The set as bits."""
    bits = np.zeros(words, np.uint64)
    for x in a:
        bits[x >> np.uint64(6)] |= np.uint64(1) << (x & np.uint64(63))
    return bits


@compiled
def member_bitmap(probes: Keys | Ids, bits: Keys, mask: npt.NDArray[np.bool_]) -> None:
    """Set mask[i] where the bit of probes[i] is set."""
    limit = np.uint64(len(bits) * 64)
    for i in range(len(probes)):
        x = np.uint64(probes[i])
        if x < limit and (bits[x >> np.uint64(6)] >> (x & np.uint64(63))) & np.uint64(1):
            mask[i] = True


@compiled
def mark(marks: npt.NDArray[np.uint8], keys: Keys | Ids, shift: np.uint64) -> None:
    """Mark the 32-bit number at `shift` of each key, or ids."""
    for key in keys:
        marks[(np.uint64(key) >> shift) & np.uint64(0xFFFFFFFF)] = 1


@compiled
def list_marked(marks: npt.NDArray[np.uint8], start: int, out: Keys) -> None:
    """Write the numbers that are marked, counted from `start`, in order."""
    n = 0
    for i in range(len(marks)):
        if marks[i]:
            out[n] = start + i
            n += 1


def marked(marks: npt.NDArray[np.uint8]) -> Keys:
    """The numbers that are marked, as a set."""
    out = np.empty(int(np.count_nonzero(marks)), np.uint64)
    list_marked(marks, 0, out)
    return out


@compiled
def largest_low(a: Keys) -> int:
    """The largest object of pairs, 0 if there is none."""
    largest = np.uint64(0)
    for key in a:
        largest = max(largest, key & np.uint64(0xFFFFFFFF))
    return int(largest)


def distinct_high(a: Keys) -> Keys:
    """The subjects of sorted pairs, as a set."""
    out = np.empty(len(a), np.uint64)
    return trimmed(out, _distinct(a, np.uint64(32), out))


def unique(a: Keys) -> Keys:
    """A sorted array without repetitions."""
    out = np.empty(len(a), np.uint64)
    return trimmed(out, _distinct(a, np.uint64(0), out))


@compiled
def _distinct(a: Keys, shift: np.uint64, out: Keys) -> int:
    n = 0
    before = np.uint64(0)
    for i in range(len(a)):
        x = a[i] >> shift
        # without a branch: the place is written again until the next one is different
        n += i == 0 or x != before
        out[n - 1] = x
        before = x
    return n


@compiled
def order(a: Keys) -> int:
    """1 if keys are sorted without repetitions, 0 if they are sorted, -1 if not."""
    strict = 1
    for i in range(1, len(a)):
        if a[i - 1] >= a[i]:
            if a[i - 1] > a[i]:
                return -1
            strict = 0
    return strict


def swap(a: Keys) -> Keys:
    """Pairs with subject and object exchanged, sorted: a stable radix sort by the objects.

    The subjects are in order already, so that only the digits of the largest object need a pass.
    """
    first, second = np.empty(len(a), np.uint64), np.empty(len(a), np.uint64)
    return first if _swap(a, first, second) else second


@compiled
def _swap(a: Keys, first: Keys, second: Keys) -> bool:
    """Whether the result is in `first`."""
    n = len(a)
    largest = np.uint64(0)
    for i in range(n):
        largest = max(largest, a[i] & np.uint64(0xFFFFFFFF))
    digits = 0
    while largest >> np.uint64(11 * digits) and digits < 3:
        digits += 1
    source, target = a, first
    for digit in range(max(1, digits)):
        shift = np.uint64(11 * digit)
        counts = np.zeros(2049, np.int64)
        for i in range(n):
            key = source[i] if digit == 0 else source[i] >> np.uint64(32)
            counts[((key >> shift) & np.uint64(2047)) + np.uint64(1)] += 1
        for d in range(2048):
            counts[d + 1] += counts[d]
        for i in range(n):
            key = source[i]
            if digit == 0:  # the exchange rides along with the first pass
                key = (key << np.uint64(32)) | (key >> np.uint64(32))
            d = (key >> (np.uint64(32) + shift)) & np.uint64(2047)
            target[counts[d]] = key
            counts[d] += 1
        source, target = target, second if digit % 2 == 0 else first
    return max(1, digits) % 2 == 1


def offsets(a: Keys, shift: np.uint64, size: int) -> npt.NDArray[np.int64]:
    """Where the keys with each number at `shift` begin: result[x] … result[x + 1]."""
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
    """For each probe the stretch of `a` whose keys, shifted right, equal it."""
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
    """`ranges` by a table of offsets."""
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
    """Row numbers and places of all entries of the stretches."""
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
    """The low halves of the keys at these places."""
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


@compiled
def compose(
    left: Keys,
    starts: npt.NDArray[np.int64],
    right: Keys,
    stamps: npt.NDArray[np.int64],
    epoch: int,
) -> tuple[Keys, int, int]:
    """{(x, z) | (x, y) ∈ left, (y, z) ∈ right}, each x by itself, with marks instead of sorting.

    `left` is sorted; `starts` are the offsets of `right` by y; `stamps` has a place for each z and
    is used again with a higher epoch. Gives the pairs grouped by x (each once, objects in no
    order), the number of instances, and the next epoch.
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


@compiled
def compose_few(left: Keys, right: Keys) -> Keys:
    """`compose` by searching for each y: for a left side that is small against the right."""
    out = np.empty(16, np.uint64)
    n = 0
    low = np.uint64(0xFFFFFFFF)
    for i in range(len(left)):
        first = (left[i] & low) << np.uint64(32)
        j = gallop(right, first, 0)
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
    """Sort keys that are grouped by ascending high half, each group by itself."""
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
    """Give each key its number, new keys the next ones; open addressing, `table` holds numbers.

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
