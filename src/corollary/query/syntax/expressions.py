"""Expressions: operators by precedence, functions, aggregates.

Chains of one operator become one node, however long they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from corollary.lang.syntax import IRI
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.terms import NUMBERS, STRINGS, unquoted
from corollary.query.syntax.tokens import Mistake, Token
from corollary.query.syntax.triples import TripleParser

_MANY = 1 << 30
# The functions of the grammar, with the least and the greatest number of their arguments.
FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("STR", "LANG", "DATATYPE", "IRI", "URI", "ABS", "CEIL", "FLOOR"), (1, 1)),
    **dict.fromkeys(("ROUND", "STRLEN", "UCASE", "LCASE", "ENCODE_FOR_URI", "YEAR"), (1, 1)),
    **dict.fromkeys(("MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"), (1, 1)),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512", "ISIRI", "ISURI"), (1, 1)),
    **dict.fromkeys(("ISBLANK", "ISLITERAL", "ISNUMERIC"), (1, 1)),
    **dict.fromkeys(("LANGMATCHES", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE"), (2, 2)),
    **dict.fromkeys(("STRAFTER", "STRLANG", "STRDT", "SAMETERM"), (2, 2)),
    **dict.fromkeys(("RAND", "NOW", "UUID", "STRUUID"), (0, 0)),
    **dict.fromkeys(("CONCAT", "COALESCE"), (0, _MANY)),
    "BNODE": (0, 1),
    "IF": (3, 3),
    "REGEX": (2, 3),
    "SUBSTR": (2, 3),
    "REPLACE": (3, 4),
}
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")


class ExpressionParser(TripleParser):
    """Reads expressions."""

    def __init__(self, text: str, prefixes: Mapping[str, str] | None) -> None:
        super().__init__(text, prefixes)
        self._aggregates = False  # whether aggregates may occur

    @abstractmethod
    def group(self) -> Node:
        """The pattern of an EXISTS."""
        ...

    def expression(self) -> Any:
        """An expression."""
        self.enter()
        parts = [self._conjunction()]
        while self.accept("||"):
            parts.append(self._conjunction())
        self.leave()
        return parts[0] if len(parts) == 1 else Node("Or", args=parts)

    def begins_constraint(self) -> bool:
        """Whether the current token begins what FILTER, HAVING and ORDER BY take."""
        return self.at("(", "iri", "pname") or self._is_call()

    def constraint(self) -> Any:
        """What FILTER, HAVING and ORDER BY take without further brackets."""
        if self.accept("("):
            found = self.expression()
            self.expect(")")
            return found
        if self.at("iri", "pname"):
            return self._function(self.iri())
        if not self._is_call():
            raise self.unexpected("a condition in brackets or a function")
        return self._call()

    def _is_call(self) -> bool:
        kind = self.token.kind
        return kind in FUNCTIONS or kind in AGGREGATES or kind in ("BOUND", "EXISTS", "NOT")

    def _conjunction(self) -> Any:
        parts = [self._relation()]
        while self.accept("&&"):
            parts.append(self._relation())
        return parts[0] if len(parts) == 1 else Node("And", args=parts)

    def _relation(self) -> Any:
        left = self._sum()
        if op := self.accept(*_COMPARISONS):
            return Node("Compare", op=op.kind, left=left, right=self._sum())
        negated = self.at("NOT")
        if negated:
            self.advance()
            self.expect("IN")
        elif not self.accept("IN"):
            return left
        return Node("In", left=left, options=self._arguments(), negated=negated)

    def _sum(self) -> Any:
        first, rest = self._product(), []
        while op := self.accept("+", "-"):
            rest.append((op.kind, self._product()))
        return Node("Arithmetic", first=first, rest=rest) if rest else first

    def _product(self) -> Any:
        first, rest = self._unary(), []
        while op := self.accept("*", "/"):
            rest.append((op.kind, self._unary()))
        return Node("Arithmetic", first=first, rest=rest) if rest else first

    def _unary(self) -> Any:
        token = self.token
        if token.kind in ("+", "-"):
            literal = self.signed()
            if literal is not None:
                return literal
        if token.kind in ("!", "+", "-"):
            self.advance()
            name = {"!": "Not", "+": "Plus", "-": "Negate"}[token.kind]
            # The grammar has one sign; several in a row are read as everybody would.
            self.enter()
            found = Node(name, arg=self._unary())
            self.leave()
            return found
        return self._primary()

    def _primary(self) -> Any:
        token = self.token
        if token.kind == "variable":
            return self.variable()
        if token.kind == "(":
            self.advance()
            found = self.expression()
            self.expect(")")
            return found
        if token.kind in ("iri", "pname"):
            iri = self.iri()
            return self._function(iri) if self.at("(") else iri
        if token.kind in STRINGS or token.kind in NUMBERS or token.kind in ("TRUE", "FALSE"):
            return self.constant()
        if not self._is_call():
            raise self.unexpected("an expression")
        return self._call()

    def _arguments(self) -> list[Any]:
        self.expect("(")
        return self._listed()

    def _listed(self) -> list[Any]:
        found: list[Any] = []
        if self.accept(")"):
            return found
        found.append(self.expression())
        while self.accept(","):
            found.append(self.expression())
        self.expect(")")
        return found

    def _function(self, iri: IRI) -> Node:
        self.expect("(")
        self.accept("DISTINCT")  # for aggregates that somebody else has defined
        return Node("Cast", iri=iri, args=self._listed())

    def _call(self) -> Node:
        token = self.advance()
        name = token.kind
        if name in AGGREGATES:
            return self._aggregate(token)
        if name in ("EXISTS", "NOT"):
            if name == "NOT":
                self.expect("EXISTS")
            allowed, self._aggregates = self._aggregates, False
            pattern = self.group()
            self._aggregates = allowed
            return Node("Exists", pattern=pattern, negated=name == "NOT")
        if name == "BOUND":
            self.expect("(")
            variable = self.variable()
            self.expect(")")
            return Node("Bound", variable=variable)
        args = self._arguments()
        least, most = FUNCTIONS[name]
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} or {most}"
            plural = "" if wanted == "1" else "s"
            raise Mistake(
                f"{name} takes {wanted} argument{plural}, not {len(args)}",
                (token.start, token.end),
            )
        return Node("Call", function=name, args=args)

    def _aggregate(self, token: Token) -> Node:
        if not self._aggregates:
            raise Mistake(
                f"{token.kind} cannot be used here, where there are no groups",
                (token.start, token.end),
                "use aggregates in SELECT, HAVING or ORDER BY",
            )
        self._aggregates = False  # within another one
        self.expect("(")
        distinct = self.accept("DISTINCT") is not None
        argument, separator = None, " "
        if token.kind != "COUNT" or not self.accept("*"):
            argument = self.expression()
        if token.kind == "GROUP_CONCAT" and self.accept(";"):
            self.expect("SEPARATOR")
            self.expect("=")
            separator = unquoted(self.expect(*STRINGS))
        self.expect(")")
        self._aggregates = True
        return Node(
            "Aggregate",
            function=token.kind,
            distinct=distinct,
            arg=argument,
            separator=separator,
            result=None,
        )
