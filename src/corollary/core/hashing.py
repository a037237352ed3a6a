"""Compiled loops over the texts of terms: hash, compare, find, add.

A *span* is a term's text inside an array of bytes, from its start to its end. Spans are read eight
bytes at a time, so the array must extend `SLACK` bytes beyond the last span. A slot of a hash table
holds the hash of a term and its id + 1, or 0 if it is free. Collisions are resolved by linear
probing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.jit import compiled

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint32]
Ids = npt.NDArray[np.uint32]
Slots = npt.NDArray[np.uint64]

SLACK = 8
NO_ID = np.uint32(2**32 - 1)

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EIGHT = np.uint64(8)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


@compiled
def word(data: Bytes, at: int) -> Any:
    """Eight bytes as a number, the first one lowest; compiled to a single load.

    Offsets are unsigned, because signed ones would be checked for negative values.
    """
    i = np.uint64(at)
    return (
        np.uint64(data[i])
        | (np.uint64(data[i + np.uint64(1)]) << np.uint64(8))
        | (np.uint64(data[i + np.uint64(2)]) << np.uint64(16))
        | (np.uint64(data[i + np.uint64(3)]) << np.uint64(24))
        | (np.uint64(data[i + np.uint64(4)]) << np.uint64(32))
        | (np.uint64(data[i + np.uint64(5)]) << np.uint64(40))
        | (np.uint64(data[i + np.uint64(6)]) << np.uint64(48))
        | (np.uint64(data[i + np.uint64(7)]) << np.uint64(56))
    )


@compiled
def hash_of(data: Bytes, start: int, end: int) -> Any:
    """The hash of a span, 32 bits."""
    state = np.uint64(end - start) * _ODD
    at = start
    while at + 8 <= end:
        state = (state ^ word(data, at)) * _ODD
        state ^= state >> _HALF
        at += 8
    if at < end:
        state = (state ^ (word(data, at) & (_ALL >> (_EIGHT * np.uint64(at + 8 - end))))) * _ODD
        state ^= state >> _HALF
    state *= _ODD
    return np.uint32(state >> _HALF)


@compiled
def same(a: Bytes, start: int, end: int, b: Bytes, other: int) -> bool:
    """Whether b contains the bytes of the span of a at another offset."""
    at = start
    shift = other - start
    while at + 8 <= end:
        if word(a, at) != word(b, at + shift):
            return False
        at += 8
    if at == end:
        return True
    differing = word(a, at) ^ word(b, at + shift)
    differing <<= _EIGHT * np.uint64(at + 8 - end)
    return differing == np.uint64(0)  # type: ignore[no-any-return]


@compiled
def hash_spans(data: Bytes, starts: Places, ends: Places, out: Hashes) -> None:
    """Write the hash of each span."""
    for i in range(len(starts)):
        out[i] = hash_of(data, starts[i], ends[i])


@compiled
def encode_spans(
    data: Bytes,
    starts: Places,
    ends: Places,
    hashes: Hashes,
    limit: int,
    slots: Slots,
    texts: Bytes,
    offsets: Places,
    count: int,
    ids: Ids,
) -> int:
    """Write the ids of spans, adding new terms while there are fewer than `limit`.

    There must be room for all of them; a span that is not added gets NO_ID. Returns the number of
    terms.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(starts)):
        start, end, code = starts[i], ends[i], np.uint64(hashes[i])
        slot = code & mask
        found = NO_ID
        while slots[slot] != np.uint64(0):
            held = slots[slot]
            if held >> _HALF == code:
                number = np.int64((held & _LOW) - _ONE)
                place = offsets[number]
                if offsets[number + 1] - place == end - start and same(
                    data, start, end, texts, place
                ):
                    found = np.uint32(number)
                    break
            slot = (slot + _ONE) & mask
        if found == NO_ID and count < limit:
            place = offsets[count]
            for at in range(end - start):
                texts[np.uint64(place + at)] = data[np.uint64(start + at)]
            offsets[count + 1] = place + end - start
            found = np.uint32(count)
            count += 1
            slots[slot] = (code << _HALF) | np.uint64(count)
        ids[i] = found
    return count


@compiled
def rehash(old: Slots, new: Slots) -> None:
    """Move the terms of a table into a larger, empty one."""
    mask = np.uint64(len(new) - 1)
    for held in old:
        if held != np.uint64(0):
            slot = (held >> _HALF) & mask
            while new[slot] != np.uint64(0):
                slot = (slot + _ONE) & mask
            new[slot] = held
