"""Compiled validation of terms, sound but incomplete: accepted terms are valid and canonical.

The slower library decides about all others, among them escapes with a shorter form, language tags
other than those like `en` or `en-us`, IRIs with user names or literal addresses, and characters
beyond the basic plane in IRIs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corollary.core.hashing import Bytes, word
from corollary.core.jit import compiled

_SAFE = 1  # in the path, query and fragment of an IRI
_HOST = 2
_SCHEME = 4
_DIGIT = 8
_HEX = 16
_LETTER = 32
_SMALL = 64
LABEL = 128  # in the label of a blank node


def _classes() -> npt.NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    digits, small = b"0123456789", b"abcdefghijklmnopqrstuvwxyz"
    letters = small + small.upper()
    for bits, characters in (
        (_SAFE, letters + digits + b"-._~!$&'()*+,;=:@/?"),
        (_HOST, letters + digits + b"-._~!$&'()*+,;="),
        (_SCHEME, letters + digits + b"+-."),
        (_DIGIT, digits),
        (_HEX, digits + b"abcdefABCDEF"),
        (_LETTER, letters),
        (_SMALL, small),
        (LABEL, letters + digits + b"_-."),
    ):
        table[list(characters)] |= bits
    return table


CLASSES = _classes()
_RDF = np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#", np.uint8)
_STRING = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#string>", np.uint8)
_STRING_END = np.uint64(int.from_bytes(b"#string>", "little"))


@compiled
def byte(data: Bytes, at: int) -> int:
    """Return one byte."""
    return np.int64(data[np.uint64(at)])  # type: ignore[return-value]


@compiled
def is_(data: Bytes, at: int, bits: int) -> bool:
    """Test whether a byte belongs to one of the classes."""
    return (CLASSES[data[np.uint64(at)]] & bits) != 0  # type: ignore[no-any-return]


@compiled
def valid(data: Bytes, start: int, end: int) -> bool:
    """Test whether to accept a term."""
    first = byte(data, start)
    if first == 60:  # <
        return valid_iri(data, start, end)
    if first == 34:  # "
        return _valid_literal(data, start, end)
    return _valid_blank(data, start, end)


@compiled
def valid_iri(data: Bytes, start: int, end: int) -> bool:
    """Validate an IRI from `<` to `>`: scheme, optional `//` and host, and the rest."""
    at = start + 1
    last = end - 1  # the place of >
    if not is_(data, at, _LETTER):
        return False
    while is_(data, at, _SCHEME):
        at += 1
    if byte(data, at) != 58:  # :
        return False
    at += 1
    if byte(data, at) == 47 and byte(data, at + 1) == 47:  # //
        at += 2
        while is_(data, at, _HOST):
            at += 1
        if byte(data, at) == 58:
            at += 1
            while is_(data, at, _DIGIT):
                at += 1
        c = byte(data, at)
        if c not in (47, 63, 35, 62):  # / ? # >
            return False
    fragment = False
    while at < last:
        c = byte(data, at)
        if (CLASSES[c] & _SAFE) != 0:
            at += 1
        elif c == 35 and not fragment:  # #
            fragment = True
            at += 1
        elif c == 37:  # %
            if not (is_(data, at + 1, _HEX) and is_(data, at + 2, _HEX)):
                return False
            at += 3
        elif c >= 0x80:
            size, code = _character(data, at, last)
            if size == 0 or not 0xA0 <= code <= 0xD7FF:
                return False
            at += size
        else:
            return False
    return at == last


@compiled
def _valid_literal(data: Bytes, start: int, end: int) -> bool:
    at = start + 1
    while True:
        c = byte(data, at)
        if c == 34:
            break
        if c == 92:  # the backslash: t b n r f " \
            if byte(data, at + 1) not in (116, 98, 110, 114, 102, 34, 92):
                return False
            at += 2
        elif c >= 0x80:
            size, _ = _character(data, at, end)
            if size == 0:
                return False
            at += size
        elif c < 0x20 or c == 0x7F:
            return False
        else:
            at += 1
    at += 1
    if at == end:
        return True
    if byte(data, at) == 64:  # @
        return _valid_tag(data, at + 1, end)
    return not _begins(data, at + 2, end, _RDF) and valid_iri(data, at + 2, end)


@compiled
def _valid_tag(data: Bytes, start: int, end: int) -> bool:
    """Accept two or three lower-case letters, optionally a hyphen and two more."""
    at = start
    while at < end and is_(data, at, _SMALL):
        at += 1
    if not 2 <= at - start <= 3:
        return False
    if at == end:
        return True
    return (
        byte(data, at) == 45
        and end - at == 3
        and is_(data, at + 1, _SMALL)
        and is_(data, at + 2, _SMALL)
    )


@compiled
def _valid_blank(data: Bytes, start: int, end: int) -> bool:
    if end - start < 3 or byte(data, start + 1) != 58:
        return False
    for at in range(start + 2, end):
        if not is_(data, at, LABEL):
            return False
    first, last = byte(data, start + 2), byte(data, end - 1)
    return first not in (45, 46) and last != 46  # - .


@compiled
def _character(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Decode a UTF-8 character of several bytes: its size, 0 if malformed, and its code."""
    first = byte(data, at)
    if 0xC2 <= first <= 0xDF:
        size, code, least = 2, first & 0x1F, 0x80
    elif 0xE0 <= first <= 0xEF:
        size, code, least = 3, first & 0x0F, 0x800
    elif 0xF0 <= first <= 0xF4:
        size, code, least = 4, first & 0x07, 0x10000
    else:
        return 0, 0
    if at + size > end:
        return 0, 0
    for i in range(1, size):
        c = byte(data, at + i)
        if c & 0xC0 != 0x80:
            return 0, 0
        code = code << 6 | c & 0x3F
    if code < least or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return 0, 0
    return size, code


@compiled
def _begins(data: Bytes, start: int, end: int, text: Bytes) -> bool:
    if end - start < len(text):
        return False
    for i in range(len(text)):  # noqa: SIM110 (numba knows no `all` of a generator)
        if data[np.uint64(start + i)] != text[i]:
            return False
    return True


@compiled
def is_string(data: Bytes, start: int, end: int) -> bool:
    """Test whether an IRI from `<` to `>` is xsd:string."""
    return (
        end - start == len(_STRING)
        and word(data, end - 8) == _STRING_END
        and _begins(data, start, end, _STRING)
    )
