"""Compiled N-Triples: the lines of a chunk as columns of numbers of its own, distinct terms.

No term becomes a Python object. A term is found eight bytes at a time, hashed, and looked for in a
table of the chunk's terms; only one that is not there is checked byte by byte (`rdf.valid`). Two
guesses save most of that: a subject is often that of the line before, and a predicate the one that
followed the same predicate the last time. A line that is not understood is left to others: its
place and number are in `left`.

Named graphs of N-Quads are checked and dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.bits import lowest
from corollary.core.hashing import SLACK, Bytes, Hashes, Places, Slots, hash_of, rehash, same, word
from corollary.core.jit import compiled
from corollary.core.term_store import Spans
from corollary.rdf.valid import CLASSES, LABEL, byte, is_string, valid, valid_iri

_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_BELOW = np.uint64(0x2121212121212121)  # one more than a blank, in every byte
_CLOSE = np.uint64(0x3E3E3E3E3E3E3E3E)  # >
_QUOTE = np.uint64(0x2222222222222222)
_BACKSLASH = np.uint64(0x5C5C5C5C5C5C5C5C)
_NEWLINE = np.uint64(0x0A0A0A0A0A0A0A0A)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_GUESSES = 1024
_FIRST_SLOTS = 1 << 12


class Tokens(NamedTuple):
    """What a chunk holds."""

    spans: Spans  # the distinct terms; labels of blank nodes as they are written
    hashes: Hashes
    triples: npt.NDArray[np.int32]  # three columns of numbers of terms
    left: Places  # of each line that was not understood: start, end and number in the chunk
    lines: int
    named: int = 0  # statements of named graphs


def tokenize(data: Bytes, size: int, *, quads: bool = False) -> Tokens:
    """The triples in the first `size` bytes, which end with a line break; SLACK bytes follow.

    >>> text = b'<urn:s> <urn:p> "o" .\\n\\n<urn:s> <urn:p> <urn:s> .\\n'
    >>> data = np.frombuffer(bytearray(text + bytes(SLACK)), np.uint8)
    >>> tokenize(data, len(text)).triples.tolist()
    [[0, 0], [1, 1], [2, 0]]
    """
    lines = count_lines(data, size)
    triples = np.empty((3, lines), np.int32)
    left = np.empty((lines, 3), np.int64)
    starts, ends = np.empty(3 * lines, np.int64), np.empty(3 * lines, np.int64)
    hashes = np.empty(3 * lines, np.uint32)
    rows, terms, missed, named = _tokenize(data, size, quads, triples, starts, ends, hashes, left)
    return Tokens(
        Spans(data, starts[:terms], ends[:terms]),
        hashes[:terms],
        triples[:, :rows],
        left[:missed],
        lines,
        named,
    )


def scoped(spans: Spans, prefix: bytes) -> Spans:
    """Blank nodes with a prefix before their labels.

    >>> data = np.frombuffer(bytearray(b"_:b" + bytes(SLACK)), np.uint8)
    >>> found = scoped(Spans(data, np.array([0]), np.array([3])), b"d7.")
    >>> bytes(found.data[:6])
    b'_:d7.b'
    """
    lengths = spans.ends - spans.starts + len(prefix)
    ends = np.cumsum(lengths)
    data = np.zeros((int(ends[-1]) if len(ends) else 0) + SLACK, np.uint8)
    _write_scoped(*spans, np.frombuffer(bytearray(prefix), np.uint8), data)
    return Spans(data, ends - lengths, ends)


@compiled
def _write_scoped(data: Bytes, starts: Places, ends: Places, prefix: Bytes, out: Bytes) -> None:
    at = 0
    for i in range(len(starts)):
        out[at], out[at + 1] = 95, 58  # _:
        at += 2
        for k in range(len(prefix)):
            out[at] = prefix[k]
            at += 1
        for k in range(starts[i] + 2, ends[i]):
            out[at] = data[k]
            at += 1


@compiled
def count_lines(data: Bytes, size: int) -> int:
    """The number of line breaks."""
    lines = 0
    for i in range(size):
        lines += data[i] == 10
    return lines


@compiled
def _tokenize(
    data: Bytes,
    size: int,
    quads: bool,
    triples: npt.NDArray[np.int32],
    starts: Places,
    ends: Places,
    hashes: Hashes,
    left: Places,
) -> Any:
    # One long loop: with the places of a line in functions of their own it was slower by a quarter.
    slots = np.zeros(_FIRST_SLOTS, np.uint64)
    guesses = np.full(_GUESSES, -1, np.int64)
    rows = terms = missed = named = 0
    subject = predicate = -1  # of the line before
    graph = graph_end = has_graph = 0
    line = 0
    at = 0
    while at < size:
        begin = at
        line += 1
        if 2 * (terms + 3) > len(slots):
            larger = np.zeros(2 * len(slots), np.uint64)
            rehash(slots, larger)
            slots = larger
        at = _skip(data, at)
        c = byte(data, at)
        if c == 10 or c == 35 or c == 13:  # an empty line or a comment
            at = _end_of_line(data, at)
            if at < 0:
                at = _next_line(data, begin)
                left[missed] = (begin, at, line)
                missed += 1
            continue

        # The subject: that of the line before?
        understood = c != 34
        s, s_start, s_end, s_next, s_hash = -1, at, at, at, np.uint32(0)
        if subject >= 0:
            width = ends[subject] - starts[subject]
            if at + width < size and same(data, starts[subject], ends[subject], data, at):
                after = byte(data, at + width)
                if after == 32 or after == 9:
                    s = subject
                    s_next = at + width
        if s < 0 and understood:
            s_end, s_next = _term(data, at)
            if s_end < 0:
                understood = False
            else:
                s_hash = hash_of(data, at, s_end)
                s = _find(data, at, s_end, s_hash, slots, starts, ends)
                understood = s >= 0 or valid(data, at, s_end)

        # The predicate: the one that followed the one before?
        p, p_start, p_end, p_hash = -1, at, at, np.uint32(0)
        if understood:
            at = _skip(data, s_next)
            p_start = at
            guess = guesses[predicate & (_GUESSES - 1)] if predicate >= 0 else -1
            if guess >= 0:
                width = ends[guess] - starts[guess]
                if at + width < size and same(data, starts[guess], ends[guess], data, at):
                    p = guess
                    p_end = at + width
            if p < 0:
                p_end = _iri(data, at) if byte(data, at) == 60 else -1
                if p_end < 0:
                    understood = False
                else:
                    p_hash = hash_of(data, at, p_end)
                    p = _find(data, at, p_end, p_hash, slots, starts, ends)
                    understood = p >= 0 or valid_iri(data, at, p_end)

        o, o_start, o_end, o_hash = -1, at, at, np.uint32(0)
        if understood:
            at = _skip(data, p_end)
            o_start = at
            o_end, at = _term(data, at)
            if o_end < 0:
                understood = False
            else:
                o_hash = hash_of(data, o_start, o_end)
                o = _find(data, o_start, o_end, o_hash, slots, starts, ends)
                understood = o >= 0 or valid(data, o_start, o_end)
        if understood:
            at = _skip(data, at)
            has_graph = 0
            if quads and byte(data, at) != 46:
                has_graph = 1
                end = _graph(data, at, size, graph, graph_end)
                understood = end >= 0
                if understood:
                    graph, graph_end = at, end
                    at = _skip(data, end)
            if understood and byte(data, at) == 46:  # .
                at = _end_of_line(data, _skip(data, at + 1))
                understood = at >= 0
            else:
                understood = False
        if not understood:
            at = _next_line(data, begin)
            left[missed] = (begin, at, line)
            missed += 1
            continue

        if s < 0:
            s = _add(data, s_start, s_end, s_hash, slots, starts, ends, hashes, terms)
            terms += s == terms
        if p < 0:
            p = _add(data, p_start, p_end, p_hash, slots, starts, ends, hashes, terms)
            terms += p == terms
        if o < 0:
            o = _add(data, o_start, o_end, o_hash, slots, starts, ends, hashes, terms)
            terms += o == terms
        if predicate >= 0:
            guesses[predicate & (_GUESSES - 1)] = p
        subject, predicate = s, p
        triples[0, rows], triples[1, rows], triples[2, rows] = s, p, o
        rows += 1
        named += has_graph
    return rows, terms, missed, named


@compiled
def _graph(data: Bytes, at: int, size: int, before: int, before_end: int) -> int:
    """The end of the name of a graph, which may be that of the line before, else -1."""
    end = at + before_end - before
    if before < before_end and end < size and same(data, before, before_end, data, at):
        return end
    end = _iri(data, at) if byte(data, at) == 60 else -1
    return end if end >= 0 and valid_iri(data, at, end) else -1


@compiled
def _skip(data: Bytes, at: int) -> int:
    """The first place from here on that is neither a blank nor a tab."""
    while byte(data, at) == 32 or byte(data, at) == 9:
        at += 1
    return at


@compiled
def _next_line(data: Bytes, at: int) -> int:
    while byte(data, at) != 10:
        at += 1
    return at + 1


@compiled
def _end_of_line(data: Bytes, at: int) -> int:
    """The next line, if only a comment stands before it; else -1.

    A carriage return alone ends a line for the library; such lines are left to it.
    """
    comment = byte(data, at) == 35
    while True:
        c = byte(data, at)
        if c == 10:
            return at + 1
        if c == 13:
            return at + 2 if byte(data, at + 1) == 10 else -1
        if not comment:
            return -1
        at += 1


@compiled
def _zeros(bits: Any) -> Any:
    """The top bit of each byte that is 0; the lowest one is right, others may be too many."""
    return (bits - _ONES) & ~bits & _TOPS


@compiled
def _stops_iri(bits: Any) -> Any:
    return _zeros(bits ^ _CLOSE) | ((bits - _BELOW) & ~bits & _TOPS)


@compiled
def _iri(data: Bytes, start: int) -> int:
    """The end of an IRI, after its `>`; -1 if there is none before a blank or line break."""
    at = start + 1
    stops = _stops_iri(word(data, at))
    while stops == np.uint64(0):
        at += 8
        stops = _stops_iri(word(data, at))
    place = at + (lowest(stops) >> 3)
    return place + 1 if byte(data, place) == 62 else -1


@compiled
def _stops_literal(bits: Any) -> Any:
    return _zeros(bits ^ _QUOTE) | _zeros(bits ^ _BACKSLASH) | _zeros(bits ^ _NEWLINE)


@compiled
def _closing_quote(data: Bytes, start: int) -> int:
    """The place of the quote that ends a literal; -1 if there is none on the line."""
    at = start + 1
    while True:
        stops = _stops_literal(word(data, at))
        while stops == np.uint64(0):
            at += 8
            stops = _stops_literal(word(data, at))
        place = at + (lowest(stops) >> 3)
        c = byte(data, place)
        if c == 34:
            return place
        if c == 10 or byte(data, place + 1) == 10:
            return -1
        at = place + 2  # after an escaped character


@compiled
def _term(data: Bytes, start: int) -> Any:
    """The end of the text of a term, and where the next one may begin; -1 if it is no term.

    The two differ for a string that is written with its datatype.
    """
    c = byte(data, start)
    if c == 60:  # <
        end = _iri(data, start)
        return end, end
    if c == 34:  # "
        end = _closing_quote(data, start)
        if end < 0:
            return -1, -1
        end += 1
        c = byte(data, end)
        if c == 64:  # @
            after = end + 1
            while (CLASSES[data[np.uint64(after)]] & LABEL) != 0 and byte(data, after) != 46:
                after += 1
            return after, after
        if c == 94:  # ^^<
            if byte(data, end + 1) != 94 or byte(data, end + 2) != 60:
                return -1, -1
            after = _iri(data, end + 2)
            if after >= 0 and is_string(data, end + 2, after):
                return end, after
            return after, after
        return end, end
    if c == 95:  # _
        if byte(data, start + 1) != 58:
            return -1, -1
        end = start + 2
        while (CLASSES[data[np.uint64(end)]] & LABEL) != 0:
            end += 1
        # Whether a full stop belongs to the label, or other letters do, the library knows.
        after = byte(data, end)
        return (end, end) if after == 32 or after == 9 else (-1, -1)
    return -1, -1


@compiled
def _find(
    data: Bytes, start: int, end: int, code: Any, slots: Slots, starts: Places, ends: Places
) -> int:
    """The number of a term that the chunk has had already, else -1."""
    mask = np.uint64(len(slots) - 1)
    slot = np.uint64(code) & mask
    while slots[slot] != np.uint64(0):
        held = slots[slot]
        if held >> _HALF == np.uint64(code):
            number = np.int64((held & _LOW) - _ONE)
            place = starts[number]
            if ends[number] - place == end - start and same(data, start, end, data, place):
                return number  # type: ignore[return-value]
        slot = (slot + _ONE) & mask
    return np.int64(-1)  # type: ignore[return-value]


@compiled
def _add(
    data: Bytes,
    start: int,
    end: int,
    code: Any,
    slots: Slots,
    starts: Places,
    ends: Places,
    hashes: Hashes,
    terms: int,
) -> int:
    """The number of a term, `terms` if the line has not just added it."""
    found = _find(data, start, end, code, slots, starts, ends)
    if found >= 0:
        return found
    mask = np.uint64(len(slots) - 1)
    slot = np.uint64(code) & mask
    while slots[slot] != np.uint64(0):
        slot = (slot + _ONE) & mask
    slots[slot] = (np.uint64(code) << _HALF) | np.uint64(terms + 1)
    starts[terms], ends[terms], hashes[terms] = start, end, code
    return terms
