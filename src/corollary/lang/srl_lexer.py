"""The tokens of the SHACL Rules language: those of SPARQL, with the kinds that `lexer` gives."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corollary.errors import Diagnostic, InvalidInput, Source, Span
from corollary.lang.lexer import Token

_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%]"  # in the local part of a prefixed name
_DOTS = rf"\.++(?=[\w:\-]|{_ESCAPED})"  # dots inside a name; it cannot end with one
_LOCAL = rf"(?:[\w:]|{_ESCAPED})(?:[\w:\-]++|{_ESCAPED}|{_DOTS})*+"
_TOKEN = re.compile(
    rf"""
      (?P<space>(?:[ \t\r\n\ufeff]++|\#[^\n]*+)++)
    | (?P<variable>[?$]\w+)
    | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]++|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*+>)
    | (?P<double>[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)[eE][+-]?[0-9]++)
    | (?P<decimal>[+-]?[0-9]*+\.[0-9]++)
    | (?P<integer>[+-]?[0-9]++)
    | (?P<string>\"\"\"(?:[^"\\]++|\\.|"(?!""))*+\"\"\"|'''(?:[^'\\]++|\\.|'(?!''))*+'''
        |"(?:[^"\\\n\r]++|\\.)*+"|'(?:[^'\\\n\r]++|\\.)*+')
    | (?P<blank>_:\w(?:[\w.\-]*[\w\-])?)
    | (?P<assign>:=)
    | (?P<prefixed>(?:[^\W\d_](?:[\w.\-]*[\w\-])?)?:(?!-)(?:{_LOCAL})?)
    | (?P<word>[^\W\d]\w*)
    | (?P<tag>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--[A-Za-z]++)?)
    | (?P<sign><<\(|<<|\)>>|>>|\{{\||\|\}}|\^\^|<=|>=|!=|&&|\|\||[][(){{}}.,;=<>+\-*/!^~|])
    | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LONGEST = 16 << 20  # characters of a token, as in the rule language
_OPERANDS = frozenset({"variable", "double", "decimal", "integer", "string", ")"})
_AFTER_LESS = frozenset("?$=0123456789+-(!'")  # with which an operand begins, and no IRI
_DIRECTIONS = ("--ltr", "--rtl")
_SIGNED = frozenset({"double", "decimal", "integer"})


def tokenize(source: Source, problems: list[Diagnostic]) -> Iterator[Token]:
    """Tokenize a text; reports invalid characters to `problems`.

    >>> [token.kind for token in tokenize(Source("example", "SET(?v := 1+2)"), [])][:5]
    ['word', '(', 'variable', ':=', 'integer']
    """
    text, at, before = source.text, 0, ""
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, "the last alternative matches any character"
        kind, stop = match.lastgroup, match.end()
        if kind == "space":
            at = stop
            continue
        if stop - at > _LONGEST:
            line, column = source.position(at)
            message = f"a term is longer than {_LONGEST >> 20} MiB"
            raise InvalidInput("E324", message, file=source.name, line=line, column=column)
        if kind in ("sign", "assign"):
            kind = text[at:stop]
        elif kind == "bad":
            quote = text[at] in "\"'"
            code = "E102" if quote else "E108"
            message = "this string has no closing quote" if quote else "unexpected character"
            problems.append(Diagnostic(code, message, Span(source, at, at + 1)))
            yield Token("lost", "", at, len(text))
            break
        elif kind == "tag" and "--" in (tag := text[at:stop]) and not tag.endswith(_DIRECTIONS):
            place = Span(source, at + tag.index("--") + 2, stop)
            message = f"the direction of a text is ltr or rtl, not {place.text!r}"
            problems.append(Diagnostic("E101", message, place))
        elif before in _OPERANDS and (
            (kind == "iri" and text[at + 1] in _AFTER_LESS)
            or (kind in _SIGNED and text[at] in "+-")
        ):
            # ?x<?y&&?z>1 or ?x-1: an operator, not the start of a term
            stop = at + 2 if text.startswith("<=", at) else at + 1
            kind = text[at:stop]
        assert kind is not None, "every alternative is named"
        yield Token(kind, text[at:stop], at, stop)
        before = kind
        at = stop
    yield Token("end", "", len(text), len(text))
