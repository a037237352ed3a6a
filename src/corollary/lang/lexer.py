"""Text to tokens, by one regular expression.

Two signs depend on the token before them: after an operand (a variable, a constant, a closing
parenthesis) `<` is a comparison and `-` a subtraction; elsewhere they may begin an IRI or a
negative number. The lexer knows no other context.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from corollary.errors import Diagnostic, InvalidInput, Source, Span

# Order matters: the first alternative that matches wins. Repetitions are possessive where possible:
# otherwise the matcher would try every split of a long number's digits, and each character of a
# long string would take some hundred bytes of memory.
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%]"  # in the local part of a prefixed name
_DOTS = rf"\.++(?=[\w:\-]|{_ESCAPED})"  # dots inside a name; it cannot end with one
_LOCAL = rf"(?:[\w:]|{_ESCAPED})(?:[\w:\-]++|{_ESCAPED}|{_DOTS})*+"
_TOKEN = re.compile(
    rf"""
      (?P<space>(?:[ \t\r\n\f\v\u00a0\u2028\ufeff]++|(?:\#|%|//)[^\n]*+)++)
    | (?P<variable>\?\w+)
    | (?P<name>\[[ \t]*[^\W_][\w.:\-]*[ \t]*\])
    | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]++|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*+>)
    | (?P<double>[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)[eE][+-]?[0-9]++)
    | (?P<decimal>[+-]?[0-9]*+\.[0-9]++)
    | (?P<integer>[+-]?[0-9]++)
    | (?P<string>"(?:[^"\\\n\r]++|\\.)*+"|'(?:[^'\\\n\r]++|\\.)*+')
    | (?P<blank>_:\w(?:[\w.\-]*[\w\-])?)
    | (?P<prefixed>(?:[^\W\d_](?:[\w.\-]*[\w\-])?)?:(?!-)(?:{_LOCAL})?)
    | (?P<word>[^\W\d]\w*)
    | (?P<tag>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--(?:ltr|rtl)\b)?)
    | (?P<sign>:-|\^\^|<=|>=|!=|&&|\|\||[][(),.;=<>+\-*/!])
    | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_LONGEST = 16 << 20  # characters of a token; data files have the same limit for terms
_OPERANDS = frozenset({"variable", "double", "decimal", "integer", "string", ")"})
_SIGNED = frozenset({"double", "decimal", "integer"})


class Token(NamedTuple):
    """`kind` is the punctuation itself or the token class.

    `"lost"` is an unclosed string with the rest of its line, `"end"` the last token.
    """

    kind: str
    text: str
    start: int
    end: int


def tokenize(
    source: Source, problems: list[Diagnostic], start: int = 0, end: int | None = None
) -> Iterator[Token]:
    """Tokenize a text or a stretch of it; reports invalid characters to `problems`."""
    text = source.text
    end = len(text) if end is None else end
    match_at = _TOKEN.match
    before = ""
    at = start
    while at < end:
        match = match_at(text, at, end)
        assert match is not None, "the last alternative matches any character"
        kind, stop = match.lastgroup, match.end()
        if kind == "space":
            at = stop
            continue
        if stop - at > _LONGEST:
            line, column = source.position(at)
            raise InvalidInput(
                "E324",
                f"a term is longer than {_LONGEST >> 20} MiB",
                "store large values elsewhere and refer to them",
                file=source.name,
                line=line,
                column=column,
            )
        if kind == "sign":
            kind = text[at:stop]
        elif kind == "bad":
            stop = _skip_bad(source, at, end, problems)
            if text[at] in "\"'":
                yield Token("lost", "", at, stop)
            at = stop
            continue
        elif before in _OPERANDS and (kind == "iri" or (kind in _SIGNED and text[at] in "+-")):
            # ?x<?y or ?x-1: an operator, not the start of a term
            stop = at + 2 if text.startswith("<=", at) else at + 1
            kind = text[at:stop]
        assert kind is not None, "every alternative is named"
        yield Token(kind, text[at:stop], at, stop)
        before = kind
        at = stop
    yield Token("end", "", end, end)


def _skip_bad(source: Source, at: int, end: int, problems: list[Diagnostic]) -> int:
    """Report the invalid character at `at`; returns where to resume."""
    character = source.text[at]
    if character in "\"'":
        stop = source.text.find("\n", at, end)
        stop = end if stop < 0 else stop
        quote = "double quote" if character == '"' else "single quote"
        problems.append(
            Diagnostic(
                "E102",
                f"this string has no closing {quote} on its line",
                Span(source, at, min(stop, at + 1)),
                "a line break inside a string is written \\n",
            )
        )
        return stop
    shown = repr(character) if character.isprintable() else f"U+{ord(character):04X}"
    hint = None
    if character in "{}":
        hint = "atoms are written p(?x, ?y) or [?s, ?p, ?o]"
    elif character == "?":
        hint = "a variable is a question mark and a name: ?x"
    problems.append(
        Diagnostic("E108", f"unexpected character {shown}", Span(source, at, at + 1), hint)
    )
    # One message per run of such characters: a binary file is one error, not thousands.
    stop = at + 1
    while stop < end:
        match = _TOKEN.match(source.text, stop, end)
        if match is None or match.lastgroup != "bad" or source.text[stop] in "\"'":
            break
        stop += 1
    return stop
