"""Terms: IRIs with their base and prefixes, literals, variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from corollary.lang.iris import resolve
from corollary.lang.syntax import ESCAPES, IRI, LANG_STRING, XSD, Constant, Literal, Variable
from corollary.query.syntax.tokens import Cursor, Mistake, Token

NUMBERS = ("integer", "decimal", "double")
STRINGS = ("string", "long")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class TermParser(Cursor):
    """Reads terms."""

    def __init__(self, text: str, prefixes: Mapping[str, str] | None) -> None:
        """If `prefixes` is None, every undeclared prefix is accepted."""
        super().__init__(text)
        self._prefixes = None if prefixes is None else dict(prefixes)
        self._declared: dict[str, str] = {}
        self.base: str | None = None

    def prologue(self) -> None:
        """BASE and PREFIX."""
        while word := self.accept("BASE", "PREFIX"):
            if word.kind == "BASE":
                self.base = resolve(self.base, self.expect("iri").text[1:-1])
                continue
            name = self.token
            if name.kind != "pname" or not name.text.endswith(":") or name.text.count(":") != 1:
                raise self.unexpected("a prefix such as ex:")
            self.advance()
            self._declared[name.text[:-1]] = resolve(self.base, self.expect("iri").text[1:-1])

    def iri(self) -> IRI:
        """`<…>` or a prefixed name."""
        token = self.token
        if token.kind == "iri":
            self.advance()
            return IRI(resolve(self.base, token.text[1:-1]))
        if token.kind != "pname":
            raise self.unexpected("an IRI")
        self.advance()
        prefix, _, local = token.text.partition(":")
        namespace = self._declared.get(prefix)
        if namespace is None:
            namespace = "" if self._prefixes is None else self._prefixes.get(prefix)
        if namespace is None:
            raise Mistake(
                f"unknown prefix {prefix}:",
                (token.start, token.start + len(prefix) + 1),
                f"declare it: PREFIX {prefix}: <…>",
            )
        return IRI(namespace + (_ESCAPE.sub(r"\1", local) if "\\" in local else local))

    def variable(self) -> Variable:
        """`?x` or `$x`."""
        return Variable(self.expect("variable").text[1:])

    def constant(self) -> Constant | None:
        """An IRI or a literal; None if the current token starts neither."""
        token = self.token
        kind = token.kind
        if kind in ("iri", "pname"):
            return self.iri()
        if kind in STRINGS:
            return self._string()
        if kind in NUMBERS:
            self.advance()
            return Literal(token.text, XSD + kind)
        if kind in ("+", "-"):
            return self.signed()
        if kind in ("TRUE", "FALSE"):
            self.advance()
            return Literal(kind.lower(), XSD + "boolean")
        return None

    def signed(self) -> Literal | None:
        """A signed number; None unless a number follows the sign immediately."""
        if not self._is_signed():
            return None
        sign, number = self.advance(), self.advance()
        return Literal(sign.text + number.text, XSD + number.kind)

    def _is_signed(self) -> bool:
        """Whether a number immediately follows the current token, a sign."""
        end = self.token.end
        number = self._read(end)
        return number.kind in NUMBERS and number.start == end

    def _string(self) -> Literal:
        lexical = unquote(self.advance())
        if tag := self.accept("tag"):
            return Literal(lexical, LANG_STRING, tag.text[1:])
        if self.accept("^^"):
            return Literal(lexical, self.iri().value)
        return Literal(lexical)


def unquote(token: Token) -> str:
    """The characters of a string token, unescaped."""
    edge = 3 if token.kind == "long" else 1
    inside = token.text[edge:-edge]
    if "\\" not in inside:
        return inside
    return _ESCAPE.sub(lambda match: ESCAPES.get(match[1], match[1]), inside)
