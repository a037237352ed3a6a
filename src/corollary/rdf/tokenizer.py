"""A compiled N-Triples tokenizer: a chunk of lines to columns of chunk-local term numbers.

No term becomes a Python object. The tokenizer scans a term eight bytes at a time, hashes it, and
probes the hash table of the chunk; it validates new terms byte by byte (`rdf.valid`). Two guesses
avoid most of this: a subject often repeats that of the previous line, and a predicate often follows
the same predicate as before. Rejected lines are left to the library: `left` contains their
positions and numbers.

The statements of N-Quads have a fourth column: the name of the graph, or -1 for the default graph.
"""

from __future__ import annotations

from typing import NamedTuple

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
    """The content of a chunk."""

    spans: Spans  # the distinct terms; blank nodes with their labels as written
    hashes: Hashes
    triples: npt.NDArray[np.int32]  # three columns of term numbers; of N-Quads four
    left: Places  # the rejected lines: start, end and number in the chunk
    lines: int
    named: int = 0  # statements of named graphs


def tokenize(data: Bytes, size: int, *, quads: bool = False) -> Tokens:
    """Tokenize the first `size` bytes, which end with a line break; SLACK bytes must follow.

    >>> text = b'<urn:s> <urn:p> "o" .\\n\\n<urn:s> <urn:p> <urn:s> .\\n'
    >>> data = np.frombuffer(bytearray(text + bytes(SLACK)), np.uint8)
    >>> tokenize(data, len(text)).triples.tolist()
    [[0, 0], [1, 1], [2, 0]]
    """
    lines = count_lines(data, size)
    width = 4 if quads else 3
    triples = np.empty((width, lines), np.int32)
    left = np.empty((lines, 3), np.int64)
    starts, ends = np.empty(width * lines, np.int64), np.empty(width * lines, np.int64)
    hashes = np.empty(width * lines, np.uint32)
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
    """Prefix the labels of blank nodes.

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
    """Count the line breaks."""
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
) -> tuple[int, int, int, int]:
    # One long loop: with separate functions for the parts of a line it took a quarter longer.
    slots = np.zeros(_FIRST_SLOTS, np.uint64)
    guesses = np.full(_GUESSES, -1, np.int64)
    rows = terms = missed = named = 0
    subject = predicate = -1  # of the previous line
    graph = graph_end = has_graph = 0
    known_graph = -1  # the number of the last graph
    line = 0
    at = 0
    while at < size:
        begin = at
        line += 1
        if 2 * (terms + 4) > len(slots):
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

        # The subject: does it repeat that of the previous line?
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

        # The predicate: is it the one that followed the previous predicate before?
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
                    if end - at != graph_end - graph or not same(data, graph, graph_end, data, at):
                        known_graph = -1
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
        if quads:
            if has_graph and known_graph < 0:
                g_hash = hash_of(data, graph, graph_end)
                known_graph = _add(
                    data, graph, graph_end, g_hash, slots, starts, ends, hashes, terms
                )
                terms += known_graph == terms
            triples[3, rows] = known_graph if has_graph else -1
        rows += 1
        named += has_graph
    return rows, terms, missed, named


@compiled
def _graph(data: Bytes, at: int, size: int, before: int, before_end: int) -> int:
    """Return the end of a graph name, which often repeats the previous line's; -1 if malformed."""
    end = at + before_end - before
    if before < before_end and end < size and same(data, before, before_end, data, at):
        return end
    end = _iri(data, at) if byte(data, at) == 60 else -1
    return end if end >= 0 and valid_iri(data, at, end) else -1


@compiled
def _skip(data: Bytes, at: int) -> int:
    """Skip blanks and tabs."""
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
    """Return the start of the next line if at most a comment precedes it; else -1.

    The library treats a bare carriage return as a line end; such lines are left to it.
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
def _zeros(bits: np.uint64) -> np.uint64:
    """Flag zero bytes by their top bit; the lowest flag is exact, higher ones may be false."""
    return (bits - _ONES) & ~bits & _TOPS


@compiled
def _stops_iri(bits: np.uint64) -> np.uint64:
    return _zeros(bits ^ _CLOSE) | ((bits - _BELOW) & ~bits & _TOPS)


@compiled
def _iri(data: Bytes, start: int) -> int:
    """Return the end of an IRI, after its `>`; -1 if a blank or line break comes first."""
    at = start + 1
    stops = _stops_iri(word(data, at))
    while stops == np.uint64(0):
        at += 8
        stops = _stops_iri(word(data, at))
    place = at + (lowest(stops) >> 3)
    return place + 1 if byte(data, place) == 62 else -1


@compiled
def _stops_literal(bits: np.uint64) -> np.uint64:
    return _zeros(bits ^ _QUOTE) | _zeros(bits ^ _BACKSLASH) | _zeros(bits ^ _NEWLINE)


@compiled
def _closing_quote(data: Bytes, start: int) -> int:
    """Return the position of a literal's closing quote; -1 if the line has none."""
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
def _term(data: Bytes, start: int) -> tuple[int, int]:
    """Return the end of a term's canonical text, and the end of the term; -1 if malformed.

    The two differ for a string with an explicit datatype.
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
        # The library decides whether full stops and other letters belong to the label.
        after = byte(data, end)
        return (end, end) if after == 32 or after == 9 else (-1, -1)
    return -1, -1


@compiled
def _find(
    data: Bytes, start: int, end: int, code: np.uint32, slots: Slots, starts: Places, ends: Places
) -> int:
    """Return the number of a known term, else -1."""
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
    code: np.uint32,
    slots: Slots,
    starts: Places,
    ends: Places,
    hashes: Hashes,
    terms: int,
) -> int:
    """Add a term unless the same line has added it; returns its number."""
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
