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

NUMBER_DIGITS = 15  # doubles distinguish all decimals of this many digits
_LONGEST_NUMBER = 24  # bytes of a quotation mark, a sign, a zero, a point, the digits of 64 bits
_EXACT_PRODUCT = 2.0**50  # products of doubles and powers of ten below are exact once rounded

NODE, STRING, NUMBER, INTEGER = 1, 2, 3, 5  # the kinds that `classify` recognizes; see `kinds`

_BLOCK = 64  # terms
_QUOTE = np.uint8(34)
_MINUS = np.uint8(45)
_POINT = np.uint8(46)
_ZERO_BYTE, _NINE_BYTE = np.uint8(48), np.uint8(57)
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
    integer: Bytes,
    decimal: Bytes,
    ids: Places,
    kinds: npt.NDArray[np.int8],
    numbers: npt.NDArray[np.float64],
    scales: npt.NDArray[np.int8],
) -> None:
    """Set the kinds of nodes, plain strings and short numbers, and the values of numbers, by id.

    `integer` and `decimal` are what follows the digits, with SLACK bytes. The scale of a decimal is
    its number of digits after the point, at least 1; that of an integer is 0. The kinds of all
    other terms stay as they are.
    """
    for number in ids:
        start, end = offsets[number], offsets[number + 1]
        if texts[np.uint64(start)] != _QUOTE:
            kinds[number] = NODE
            continue
        if texts[np.uint64(end - 1)] == _QUOTE:
            kinds[number] = STRING
            continue
        last, kind = end - (len(integer) - SLACK), INTEGER
        if last <= start or not same(texts, last, end, integer, 0):
            last, kind = end - (len(decimal) - SLACK), NUMBER
            if last <= start or not same(texts, last, end, decimal, 0):
                continue
        at = start + 1
        negative = texts[np.uint64(at)] == _MINUS
        if negative:
            at += 1
        value, digits, point = np.int64(0), 0, np.int64(-1)
        while at < last and digits <= NUMBER_DIGITS:
            byte = texts[np.uint64(at)]
            if byte == _POINT and point < 0 and kind == NUMBER:
                point = np.int64(at)
            elif byte < _ZERO_BYTE or byte > _NINE_BYTE:
                break
            else:
                value = 10 * value + np.int64(byte) - 48
                digits += 1
            at += 1
        if at < last or digits == 0 or digits > NUMBER_DIGITS:
            continue
        fraction = np.int64(0) if point < 0 else np.int64(last - point - 1)
        found = float(value) / 10.0**fraction
        kinds[number] = kind
        numbers[number] = -found if negative else found
        scales[number] = 0 if kind == INTEGER else max(fraction, np.int64(1))


@compiled
def scaled_numbers(
    ids: Ids,
    numbers: npt.NDArray[np.float64],
    scales: npt.NDArray[np.int8],
    scale: int,
    values: Numbers,
    valid: npt.NDArray[np.bool_],
    decimal: npt.NDArray[np.bool_],
) -> Any:
    """Write numbers times a power of ten, and return the largest size.

    Clears `valid` where a term is not a short number, or its product is inexact; sets `decimal`
    where it is a decimal.
    """
    largest: Any = np.int64(0)
    power = 10.0**scale
    for i in range(len(ids)):
        number = np.uint64(ids[i])
        product = np.rint(numbers[number] * power)
        if scales[number] < 0 or abs(product) >= _EXACT_PRODUCT:
            values[i] = 0
            valid[i] = False
            continue
        values[i] = np.int64(product)
        largest = max(largest, abs(values[i]))
        if scales[number] > 0:
            decimal[i] = True
    return largest


@compiled
def encode_numbers(
    values: Numbers,
    scale: int,
    suffix: Bytes,
    limit: int,
    slots: Slots,
    texts: Bytes,
    offsets: Places,
    count: int,
    ids: Ids,
) -> tuple[int, int]:
    """Write the ids of numbers in canonical form, adding new terms while there are fewer than
    `limit`; a term that is not added gets NO_ID.

    Values are integers if the scale is 0, else decimals times this power of ten. The suffix follows
    the digits, and has SLACK bytes after it.
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
            is_full = at + _LONGEST_NUMBER + len(suffix) > len(texts)
            if is_full:
                break
            at = _write_number(values[done + size], scale, texts, at)
            _copy(suffix, 0, len(suffix) - SLACK, texts, at)
            size += 1
            starts[size] = at + len(suffix) - SLACK
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
    """Write the ids of concatenations of plain strings, like `encode_numbers`.

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
def _write_number(value: int, scale: int, texts: Bytes, at: int) -> int:
    """Write a quotation mark and the digits of a number; returns where they end."""
    texts[np.uint64(at)] = _QUOTE
    at += 1
    if value < 0:
        texts[np.uint64(at)] = _MINUS
        at += 1
        value = -value
    rest = np.uint64(value)
    while scale > 1 and rest % _TEN == _NONE:  # a decimal keeps one digit after the point
        rest //= _TEN
        scale -= 1
    digits, power = 1, _TEN
    while digits < 19 and rest >= power:
        digits += 1
        power *= _TEN
    digits = max(digits, scale + 1)
    place = np.uint64(at + digits)
    if scale > 0:
        for _ in range(scale):
            texts[place] = np.uint8(rest % _TEN + _ZERO)
            rest //= _TEN
            place -= _ONE
        texts[place] = _POINT
        at += 1
    for _ in range(digits - scale):
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
