"""Compiled loops over the texts of values that rules compute: read, write, number.

A computed term is written once, behind the last text of the store that numbers it. If the store has
the term already, the next one takes its place; otherwise it stays where it is. Terms are computed
in blocks, so that the memory accesses of a block overlap: most probes of a large hash table miss
the processor's caches.

Texts are read and copied eight bytes at a time, so arrays of texts extend `SLACK` bytes beyond the
last text, also beyond the texts that a loop writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.bits import fetch
from corollary.core.hashing import NO_ID, SLACK, Bytes, Ids, Slots, hash_of, same, word
from corollary.core.jit import compiled

Numbers = npt.NDArray[np.int64]
Places = npt.NDArray[Any]  # 64-bit numbers

INTEGER_DIGITS = 15  # doubles distinguish all integers of this many digits
_LONGEST_INTEGER = 21  # bytes of a quotation mark, a sign and the digits of 64 bits
NODE, STRING, INTEGER = 1, 2, 5  # the kinds of terms that `classify` recognizes; see `kinds`

_BLOCK = 64  # terms
_QUOTE = np.uint8(34)
_MINUS = np.uint8(45)
_ZERO = np.uint64(48)
_TEN = np.uint64(10)
_EIGHT = np.uint64(8)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_NONE = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def classify(
    texts: Bytes,
    offsets: Places,
    suffix: Bytes,
    suffix_length: int,
    ids: Places,
    kinds: npt.NDArray[np.int8],
    numbers: npt.NDArray[np.float64],
) -> None:
    """Set the kinds of nodes, plain strings and short integers, and the values of integers, by id.

    The suffix is what follows the digits of an integer. The kinds of all other terms stay as they
    are.
    """
    for number in ids:
        start, end = offsets[number], offsets[number + 1]
        if texts[np.uint64(start)] != _QUOTE:
            kinds[number] = NODE
            continue
        if texts[np.uint64(end - 1)] == _QUOTE:
            kinds[number] = STRING
            continue
        at, last = start + 1, end - suffix_length
        negative = texts[np.uint64(at)] == _MINUS
        if negative:
            at += 1
        if last <= at or last - at > INTEGER_DIGITS or not same(texts, last, end, suffix, 0):
            continue
        value = np.int64(0)
        while at < last:
            digit = np.int64(texts[np.uint64(at)]) - 48
            if digit < 0 or digit > 9:
                break
            value = 10 * value + digit
            at += 1
        if at == last:
            kinds[number] = INTEGER
            numbers[number] = -value if negative else value


@compiled
def integers_of(
    ids: Ids,
    kinds: npt.NDArray[np.int8],
    numbers: npt.NDArray[np.float64],
    values: Numbers,
    valid: npt.NDArray[np.bool_],
) -> Any:
    """Write the values of integers, and return the largest size; clear `valid` for other terms."""
    largest: Any = np.int64(0)
    for i in range(len(ids)):
        number = np.uint64(ids[i])
        if kinds[number] == INTEGER:
            value = np.int64(numbers[number])
            values[i] = value
            largest = max(largest, abs(value))
        else:
            values[i] = 0
            valid[i] = False
    return largest


@compiled
def encode_integers(
    values: Numbers,
    suffix: Bytes,
    suffix_length: int,
    limit: int,
    slots: Slots,
    texts: Bytes,
    offsets: Places,
    count: int,
    ids: Ids,
) -> tuple[int, int]:
    """Write the ids of integers in canonical form, adding new terms while there are fewer than
    `limit`; a term that is not added gets NO_ID.

    There must be room for all of them in the slots and offsets. Returns the number of terms, and
    that of the rows that are done: less than all if the room for texts ends.
    """
    starts = np.empty(_BLOCK + 1, np.int64)
    work = np.empty((2, _BLOCK), np.uint64)
    done, is_full = 0, False
    while done < len(values) and not is_full:
        size = 0
        starts[0] = offsets[count]
        while size < min(_BLOCK, len(values) - done):
            at = starts[size]
            is_full = at + _LONGEST_INTEGER + suffix_length + SLACK > len(texts)
            if is_full:
                break
            at = _write_integer(values[done + size], texts, at)
            _copy(suffix, 0, suffix_length, texts, at)
            size += 1
            starts[size] = at + suffix_length
        count = _number(starts, size, work, limit, slots, texts, offsets, count, ids, done)
        done += size
    return count, done


@compiled
def encode_joined(
    columns: npt.NDArray[np.uint32],
    constants: Bytes,
    ends: Places,
    limit: int,
    slots: Slots,
    texts: Bytes,
    offsets: Places,
    count: int,
    ids: Ids,
) -> tuple[int, int]:
    """Write the ids of concatenations of plain strings, like `encode_integers`.

    A result consists of the first constant, a string of the first column, the second constant, and
    so on, inside quotation marks; `ends` are the ends of the constants. Columns are ids of strings.
    """
    starts = np.empty(_BLOCK + 1, np.int64)
    work = np.empty((2, _BLOCK), np.uint64)
    parts, rows = len(columns), columns.shape[1]
    done, is_full = 0, False
    while done < rows and not is_full:
        most = min(_BLOCK, rows - done)
        for part in range(parts):
            for i in range(done, done + most):
                fetch(offsets, np.int64(columns[part, i]))
        for part in range(parts):
            for i in range(done, done + most):
                fetch(texts, offsets[np.int64(columns[part, i])])
        size = 0
        starts[0] = offsets[count]
        while size < most:
            at = starts[size]
            length = ends[parts] + 2
            for part in range(parts):
                number = np.int64(columns[part, done + size])
                length += offsets[number + 1] - offsets[number] - 2
            is_full = at + length + SLACK > len(texts)
            if is_full:
                break
            texts[np.uint64(at)] = _QUOTE
            at += 1
            start = 0
            for part in range(parts):
                _copy(constants, start, ends[part] - start, texts, at)
                at += ends[part] - start
                start = ends[part]
                number = np.int64(columns[part, done + size])
                length = offsets[number + 1] - offsets[number] - 2
                _copy(texts, offsets[number] + 1, length, texts, at)
                at += length
            _copy(constants, start, ends[parts] - start, texts, at)
            at += ends[parts] - start
            texts[np.uint64(at)] = _QUOTE
            size += 1
            starts[size] = at + 1
        count = _number(starts, size, work, limit, slots, texts, offsets, count, ids, done)
        done += size
    return count, done


@compiled
def _number(
    starts: Places,
    size: int,
    work: npt.NDArray[np.uint64],
    limit: int,
    slots: Slots,
    texts: Bytes,
    offsets: Places,
    count: int,
    ids: Ids,
    first: int,
) -> int:
    """Number the texts of a block that have been written behind the texts of all terms.

    Every access to memory is announced for the whole block before the next one depends on it.
    """
    mask = np.uint64(len(slots) - 1)
    codes, found = work[0], work[1]
    for i in range(size):
        code = np.uint64(hash_of(texts, starts[i], starts[i + 1]))
        codes[i] = code
        fetch(slots, np.int64(code & mask))
    for i in range(size):
        held = slots[codes[i] & mask]
        found[i] = held
        if held != _NONE:
            fetch(offsets, np.int64((held & _LOW) - _ONE))
    for i in range(size):
        if found[i] != _NONE:
            fetch(texts, offsets[np.int64((found[i] & _LOW) - _ONE)])
    for i in range(size):
        start, length, code = starts[i], starts[i + 1] - starts[i], codes[i]
        slot = code & mask
        known = NO_ID
        while slots[slot] != _NONE:
            held = slots[slot]
            if held >> _HALF == code:
                number = np.int64((held & _LOW) - _ONE)
                place = offsets[number]
                if offsets[number + 1] - place == length and same(
                    texts, start, start + length, texts, place
                ):
                    known = np.uint32(number)
                    break
            slot = (slot + _ONE) & mask
        if known == NO_ID and count < limit:
            place = offsets[count]
            if place != start:
                for at in range(length):
                    texts[np.uint64(place + at)] = texts[np.uint64(start + at)]
            offsets[count + 1] = place + length
            known = np.uint32(count)
            count += 1
            slots[slot] = (code << _HALF) | np.uint64(count)
        ids[first + i] = known
    return count


@compiled
def _write_integer(value: int, texts: Bytes, at: int) -> int:
    """Write a quotation mark and the digits of a number; returns where they end."""
    texts[np.uint64(at)] = _QUOTE
    at += 1
    if value < 0:
        texts[np.uint64(at)] = _MINUS
        at += 1
        value = -value
    rest = np.uint64(value)
    digits, power = 1, _TEN
    while digits < 19 and rest >= power:
        digits += 1
        power *= _TEN
    place = np.uint64(at + digits)
    for _ in range(digits):
        place -= _ONE
        texts[place] = np.uint8(rest % _TEN + _ZERO)
        rest //= _TEN
    return at + digits


@compiled
def _copy(source: Bytes, start: int, length: int, target: Bytes, at: int) -> None:
    """Copy bytes, eight at a time, to a place behind all of them."""
    for done in range(0, length, SLACK):
        held = word(source, start + done)
        place = np.uint64(at + done)
        for k in range(8):
            target[place + np.uint64(k)] = np.uint8(
                (held >> (_EIGHT * np.uint64(k))) & np.uint64(255)
            )
