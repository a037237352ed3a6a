"""Tokens to terms; the parts of a parser that know no grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from corollary.errors import Diagnostic, Source, Span, nearest
from corollary.lang.lexer import Token, tokenize
from corollary.lang.syntax import (
    ESCAPES,
    IRI,
    RDF,
    XSD,
    BlankNode,
    Constant,
    Literal,
    Term,
    Variable,
)

# Prefixes that a program may use without declaring them.
WELL_KNOWN_PREFIXES = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": XSD,
}

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {**ESCAPES, "'": "'"}
SHOWN_CHARACTERS = 40  # characters of an unexpected token that a message repeats

T = TypeVar("T")


class Mistake(Exception):
    """Carries a diagnostic to the statement loop."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


class TermParser:
    """Reads the tokens of one source; `problems` collects its mistakes."""

    def __init__(self, source: Source, prefixes: dict[str, str] | None = None) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self.prefixes: dict[str, str] = dict(prefixes or {})
        self._constants: dict[tuple[str, str], Constant] = {}
        self._unknown: set[str] = set()  # undeclared prefixes, each reported once
        self._anonymous: set[str] = set()  # the names of the variables that are written `_`
        self._underscores: str | None = None  # what these names begin with
        self._tokens = self._tokenize()
        self._next = next(self._tokens)
        self._token = self._next
        self._end = 0  # where the last consumed token ended
        self._advance()

    def _tokenize(self) -> Iterator[Token]:
        return tokenize(self.source, self.problems)

    # -- terms -------------------------------------------------------------------------------

    def _term(self, *, in_triple: bool = False) -> Term:
        token = self._token
        if token.kind == "variable":
            return self._variable()
        if token.kind == "word" and token.text not in ("true", "false"):
            if token.text == "_":
                self._advance()
                return self._anonymous_variable()
            if in_triple or token.text[0].isupper() or token.text[0] == "_":
                self._bad_constant(token, in_triple=in_triple)
            self._advance()
            return Literal(token.text)
        return self.constant()

    def _anonymous_variable(self) -> Variable:
        """A variable whose name the text does not use."""
        if self._underscores is None:  # of the names that the text itself uses
            names = re.findall(r"\?(_+)", self.source.text)
            self._underscores = "_" * (1 + max(map(len, names), default=0))
        name = f"{self._underscores}{len(self._anonymous) + 1}"
        self._anonymous.add(name)
        return Variable(name)

    def _variable(self) -> Variable:
        if self._token.kind != "variable":
            self._unexpected("a variable such as ?x")
        return Variable(self._advance().text[1:])

    def constant(self) -> Constant:
        """One constant other than a bare symbol."""
        token = self._token
        if token.kind == "string":
            return self._string()
        constant = self._constants.get((token.kind, token.text))
        if constant is None:
            match token.kind:
                case "iri":
                    constant = IRI(self._iri(token))
                case "prefixed":
                    constant = self._prefixed(token)
                case "blank":
                    constant = BlankNode(token.text[2:])
                case "integer" | "decimal" | "double":
                    constant = Literal(token.text, XSD + token.kind)
                case "word" if token.text in ("true", "false"):
                    constant = Literal(token.text, XSD + "boolean")
                case "<":
                    self._fail(
                        "E104",
                        "this '<' begins no well-formed IRI",
                        token,
                        "an IRI ends with '>' and holds no blanks, quotes or braces",
                    )
                case _:
                    self._unexpected("a term")
            self._constants[token.kind, token.text] = constant
        self._advance()
        return constant

    def _string(self) -> Literal:
        token = self._advance()
        quotes = 3 if token.text.startswith(('"""', "'''")) else 1
        text = self._unescape(token, token.text[quotes:-quotes])
        if self._token.kind == "tag" and self._token.start == token.end:
            language = self._advance().text[1:]
            return Literal(text, RDF + "langString", language)
        if self._accept("^^"):
            start = self._token
            datatype = self.constant() if start.kind in ("iri", "prefixed") else None
            if not isinstance(datatype, IRI):
                self._unexpected("the IRI of a datatype")
            return Literal(text, datatype.value)
        return Literal(text)

    def _unescape(self, token: Token, text: str) -> str:
        def replace(match: re.Match[str]) -> str:
            code = match.group(1)
            if len(code) > 1:
                number = int(code[1:], 16)
                if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
                    return chr(number)
            elif code in _ESCAPES:
                return _ESCAPES[code]
            start = token.start + 1 + match.start()
            self._fail(
                "E103",
                f"'{match.group()}' is not an escape for a character",
                self._span(start, start + len(match.group())),
                "escapes are \\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX \\UXXXXXXXX",
            )

        return _ESCAPE.sub(replace, text) if "\\" in text else text

    def _iri(self, token: Token) -> str:
        return self._unescape(token, token.text[1:-1])

    def _prefixed(self, token: Token) -> IRI:
        prefix, _, local = token.text.partition(":")
        namespace = self.prefixes.get(prefix, WELL_KNOWN_PREFIXES.get(prefix))
        if namespace is None and prefix not in self._unknown:
            self._unknown.add(prefix)
            close = nearest(prefix, [*self.prefixes, *WELL_KNOWN_PREFIXES])
            declare = f"declare it with '@prefix {prefix}: <…> .' before its first use"
            self.problems.append(
                Diagnostic(
                    "E201",
                    f"the prefix '{prefix}:' is not declared",
                    self._span(token.start, token.start + len(prefix) + 1),
                    f"did you mean '{close}:'? Or {declare}" if close else declare,
                )
            )
        return IRI((namespace or f"unknown:{prefix}:") + re.sub(r"\\(.)", r"\1", local))

    def _bad_constant(self, token: Token, *, in_triple: bool) -> NoReturn:
        text = token.text[:SHOWN_CHARACTERS]
        if in_triple:
            self._fail(
                "E213",
                f"the bare symbol '{text}' cannot stand in a triple",
                token,
                f'write an IRI such as <{text}> or :{text}, or a string "{text}"',
            )
        self._fail(
            "E107",
            f"'{text}' is not a constant: bare symbols begin with a lower-case letter",
            token,
            f'write "{text}" for a string or ?{text} for a variable',
        )

    # -- tokens ------------------------------------------------------------------------------

    def _advance(self) -> Token:
        """Consume the current token and return it."""
        token = self._token
        self._end = token.end
        self._token = self._next
        if self._next.kind != "end":
            self._next = next(self._tokens)
        return token

    def _accept(self, kind: str) -> bool:
        """Consume the current token if it is of a kind."""
        if self._token.kind != kind:
            return False
        self._advance()
        return True

    def _separated(self, read: Callable[[], T]) -> Iterator[T]:
        """One or more of what `read` reads, with commas between."""
        yield read()
        while self._accept(","):
            yield read()

    def _expect(self, kind: str, wanted: str | None = None) -> None:
        if not self._accept(kind):
            self._unexpected(wanted or f"'{kind}'")

    def _keyword(self, word: str) -> None:
        if self._token.kind != "word" or self._token.text.upper() != word:
            self._unexpected(word)
        self._advance()

    def _unexpected(self, wanted: str, hint: str | None = None) -> NoReturn:
        token = self._token
        if token.kind == "end":
            shown = "the end of the text"
        else:
            text = token.text[:SHOWN_CHARACTERS]
            shown = f"'{text}{'…' if len(text) < len(token.text) else ''}'"
        self._fail("E101", f"expected {wanted}, found {shown}", token, hint)

    def _fail(
        self, code: str, message: str, place: Token | Span, hint: str | None = None
    ) -> NoReturn:
        raise Mistake(Diagnostic(code, message, self._span(place.start, place.end), hint))

    def _span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)
