"""The tokens of SPARQL 1.1, and a cursor over them.

Character classes are those of the grammar (section 19.8), so names match the standard exactly. The
longest token wins: `?x<?a&&?b>?y` has the IRI `<?a&&?b>` in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_MARKS = "\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = rf"{_BASE}_0-9{_MARKS}\-"
_NAME = rf"[{_BASE}_0-9][{_BASE}_0-9{_MARKS}]*"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%]"
_DOTS = rf"\.++(?=[{_CHARS}:]|{_ESCAPED})"  # dots inside a name; it cannot end with one
_LOCAL = rf"(?:[{_BASE}_:0-9]|{_ESCAPED})(?:[{_CHARS}:]++|{_ESCAPED}|{_DOTS})*+"
_ECHAR = r"\\[tbnrf\\\"']"
# Order matters: the first alternative that matches wins. Repetitions are possessive where
# possible; otherwise each character of a long token would take some hundred bytes of memory.
_TOKEN = re.compile(
    rf"""
      (?P<space>(?:[ \t\r\n]++|\#[^\r\n]*+)++)
    | (?P<variable>[?$]{_NAME})
    | (?P<iri><[^\x00-\x20<>"{{}}|^`\\]*>)
    | (?P<long>\"\"\"(?:[^"\\]++|{_ECHAR}|"{{1,2}}+(?!"))*+\"\"\"
        |'''(?:[^'\\]++|{_ECHAR}|'{{1,2}}+(?!'))*+''')
    | (?P<string>"(?:[^"\\\n\r]++|{_ECHAR})*+"|'(?:[^'\\\n\r]++|{_ECHAR})*+')
    | (?P<double>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++)
    | (?P<decimal>[0-9]*+\.[0-9]++)
    | (?P<integer>[0-9]++)
    | (?P<blank>_:[{_BASE}_0-9](?:[{_CHARS}.]*[{_CHARS}])?)
    | (?P<pname>(?:[{_BASE}](?:[{_CHARS}.]*[{_CHARS}])?)?:(?:{_LOCAL})?)
    | (?P<word>[A-Za-z][A-Za-z0-9_]*)
    | (?P<tag>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+)
    | (?P<sign>\^\^|<=|>=|!=|&&|\|\||[][(){{}}.;,*/+\-=<>!|^?])
    """,
    re.VERBOSE,
)
_STRING_PREFIX = re.compile(
    rf"""\"\"\"(?:[^"\\]++|{_ECHAR}|"{{1,2}}+(?!"))*+|\'\'\'(?:[^'\\]++|{_ECHAR}|'{{1,2}}+(?!'))*+
    |"(?:[^"\\\n\r]++|{_ECHAR})*+|'(?:[^'\\\n\r]++|{_ECHAR})*+""",
    re.VERBOSE,
)
# `\\u` is an escaped backslash before a letter, as in REGEX patterns, not an escaped character.
_CODEPOINT = re.compile(r"\\\\|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}")
_SHOWN_TOKEN = re.compile(r"[\w?$:]+|.", re.DOTALL)
MAX_DEPTH = 128  # nested groups, brackets and signs; thousands would overflow Python's stack


class Token(NamedTuple):
    """`kind` is the punctuation, the keyword in upper case, or the token class, e.g. `end`."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> tuple[int, int]:
        """Its place in the query."""
        return self.start, self.end


class Mistake(Exception):
    """A syntax error: the message and its span in the query."""

    def __init__(
        self, message: str, span: tuple[int, int], hint: str | None = None, code: str = "E560"
    ) -> None:
        super().__init__(message)
        self.message, self.span, self.hint, self.code = message, span, hint, code


class Expanded(NamedTuple):
    """A text with codepoint escapes expanded, and a mapping to offsets in the original."""

    text: str
    places: list[int]  # offsets in the expanded text, after each escape
    shifts: list[int]  # offset in the original minus offset in the expanded text

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Map a span of the expanded text to the original."""
        return self._offset(start), max(self._offset(start) + 1, self._offset(end))

    def _offset(self, place: int) -> int:
        number = bisect_right(self.places, place)
        return place + (self.shifts[number - 1] if number else 0)


def expand(text: str) -> Expanded:
    r"""Expand the escapes \uXXXX and \UXXXXXXXX, which may occur anywhere in a query.

    >>> expanded = expand(r"ASK { \u003fx ?p 1 }")
    >>> expanded.text, expanded.span(6, 8)
    ('ASK { ?x ?p 1 }', (6, 13))
    """
    if "\\u" not in text and "\\U" not in text:
        return Expanded(text, [], [])
    parts: list[str] = []
    places: list[int] = []
    shifts: list[int] = []
    at = length = 0
    for match in _CODEPOINT.finditer(text):
        if match[0] == "\\\\":
            continue
        number = int(match[0][2:], 16)
        if 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
            raise Mistake(f"{match[0]} is not a character", match.span())
        parts += (text[at : match.start()], chr(number))
        length += match.start() - at + 1
        at = match.end()
        places.append(length)
        shifts.append(at - length)
    return Expanded("".join([*parts, text[at:]]), places, shifts)


class Cursor:
    """The current token of a text, with the primitives of recursive descent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._depth = 0
        self.token = self._read(1 if text.startswith("\ufeff") else 0)

    def _read(self, at: int) -> Token:
        match = _TOKEN.match(self.text, at)
        if match is not None and match.lastgroup == "space":
            at = match.end()
            match = _TOKEN.match(self.text, at)
        if match is None:
            if at < len(self.text):
                return Token("bad", self.text[at], at, at + 1)
            return Token("end", "", at, at)
        kind, text = str(match.lastgroup), match[0]
        if kind == "sign":
            kind = text
        elif kind == "word":
            kind = text.upper()
        return Token(kind, text, at, match.end())

    def advance(self) -> Token:
        """Consume and return the current token."""
        token = self.token
        self.token = self._read(token.end)
        return token

    def at(self, *kinds: str) -> bool:
        """Whether the current token is one of these kinds."""
        return self.token.kind in kinds

    def accept(self, *kinds: str) -> Token | None:
        """Consume and return the current token if it is one of these kinds."""
        return self.advance() if self.token.kind in kinds else None

    def expect(self, *kinds: str) -> Token:
        """Consume and return the current token; raise unless it is one of these kinds."""
        if self.token.kind not in kinds:
            raise self.unexpected(" or ".join(_NAMES.get(kind, kind) for kind in kinds))
        return self.advance()

    def separated(self, read: Callable[[], T], sign: str) -> list[T]:
        """One or more of what `read` reads, with a sign between them."""
        parts = [read()]
        while self.accept(sign):
            parts.append(read())
        return parts

    def bracketed(self, read: Callable[[], T]) -> T:
        """What `read` reads, in brackets."""
        self.expect("(")
        part = read()
        self.expect(")")
        return part

    def unexpected(self, expected: str) -> Mistake:
        """The error for the current token."""
        token = self.token
        hint = f"expected {expected}"
        if token.kind == "iri" and "&&" in token.text:
            hint = "this was read as an IRI: put a space after <"
        if token.kind == "end":
            return Mistake("unexpected end of a SPARQL query", (token.start, token.start + 1), hint)
        if token.kind == "bad" and token.text in "\"'":
            return self._bad_string(token)
        shown = _SHOWN_TOKEN.match(self.text, token.start)
        assert shown is not None, "the token has a character"
        span = (token.start, max(shown.end(), token.end))
        quoted = self.text[span[0] : span[1]]
        return Mistake(f"unexpected {quoted!r} in a SPARQL query", span, hint)

    def _bad_string(self, token: Token) -> Mistake:
        """The error for an unterminated string or an invalid escape."""
        prefix = _STRING_PREFIX.match(self.text, token.start)
        if prefix is not None and self.text.startswith("\\", prefix.end()):
            span = (prefix.end(), min(prefix.end() + 2, len(self.text)))
            shown = self.text[span[0] : span[1]]
            hint = "valid escapes are \\t \\b \\n \\r \\f \\\" \\' and \\\\"
            return Mistake(f"invalid escape {shown} in a string", span, hint)
        hint = "close it with the quote that opened it; line breaks need triple quotes"
        return Mistake("unterminated string", token.span, hint)

    def enter(self) -> None:
        """Enter a nesting level; raise if it is too deep."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            message = f"the query is nested more than {MAX_DEPTH} levels deep"
            raise Mistake(message, self.token.span)

    def leave(self) -> None:
        """Leave a nesting level."""
        self._depth -= 1


_NAMES = {
    "variable": "a variable",
    "iri": "an IRI",
    "integer": "an integer",
    "string": "a string",
    "end": "the end",
}
