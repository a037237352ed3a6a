"""Expressions: operators by precedence, functions, aggregates.

Chains of one operator become one node, however long they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from corollary.lang.builtins import ARITIES
from corollary.lang.syntax import IRI
from corollary.query.syntax.algebra import Expr, Node
from corollary.query.syntax.terms import STRINGS, unquote
from corollary.query.syntax.tokens import Mistake, Token
from corollary.query.syntax.triples import TripleParser

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

    def expression(self) -> Expr:
        """An expression."""
        self.enter()
        expression = self._chain("Or", "||", self._conjunction)
        self.leave()
        return expression

    def begins_constraint(self) -> bool:
        """Whether the current token starts a constraint."""
        return self.at("(", "iri", "pname") or self._is_call()

    def constraint(self) -> Expr:
        """A constraint, as in FILTER, HAVING and ORDER BY: a bracketed expression or a call."""
        if self.at("("):
            return self.bracketed(self.expression)
        if self.at("iri", "pname"):
            return self._function(self.iri())
        if not self._is_call():
            raise self.unexpected("a condition in brackets or a function")
        return self._call()

    def _is_call(self) -> bool:
        kind = self.token.kind
        return kind in ARITIES or kind in AGGREGATES or kind in ("BOUND", "EXISTS", "NOT")

    def _chain(self, name: str, sign: str, operand: Callable[[], Expr]) -> Expr:
        args = self.separated(operand, sign)
        return args[0] if len(args) == 1 else Node(name, args=args)

    def _conjunction(self) -> Expr:
        return self._chain("And", "&&", self._relation)

    def _relation(self) -> Expr:
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

    def _sum(self) -> Expr:
        return self._arithmetic(self._product, "+", "-")

    def _product(self) -> Expr:
        return self._arithmetic(self._unary, "*", "/")

    def _arithmetic(self, operand: Callable[[], Expr], *signs: str) -> Expr:
        first, rest = operand(), []
        while op := self.accept(*signs):
            rest.append((op.kind, operand()))
        return Node("Arithmetic", first=first, rest=rest) if rest else first

    def _unary(self) -> Expr:
        token = self.token
        if token.kind in ("+", "-"):
            literal = self.signed()
            if literal is not None:
                return literal
        if token.kind in ("!", "+", "-"):
            self.advance()
            name = {"!": "Not", "+": "Plus", "-": "Negate"}[token.kind]
            # The grammar allows one sign; accept several in a row, as other engines do.
            self.enter()
            node = Node(name, arg=self._unary())
            self.leave()
            return node
        return self._primary()

    def _primary(self) -> Expr:
        if self.at("variable"):
            return self.variable()
        if self.at("("):
            return self.bracketed(self.expression)
        constant = self.constant()
        if isinstance(constant, IRI) and self.at("("):
            return self._function(constant)
        if constant is not None:
            return constant
        if not self._is_call():
            raise self.unexpected("an expression")
        return self._call()

    def _arguments(self) -> list[Expr]:
        self.expect("(")
        return self._rest_of_arguments()

    def _rest_of_arguments(self) -> list[Expr]:
        arguments = [] if self.at(")") else self.separated(self.expression, ",")
        self.expect(")")
        return arguments

    def _function(self, iri: IRI) -> Node:
        self.expect("(")
        self.accept("DISTINCT")  # the grammar allows it for custom aggregates
        return Node("Cast", iri=iri, args=self._rest_of_arguments())

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
            return Node("Bound", variable=self.bracketed(self.variable))
        args = self._arguments()
        minimum, maximum = ARITIES[name]
        if not minimum <= len(args) <= maximum:
            expected = str(minimum) if minimum == maximum else f"{minimum} or {maximum}"
            plural = "" if expected == "1" else "s"
            message = f"{name} takes {expected} argument{plural}, not {len(args)}"
            raise Mistake(message, token.span)
        return Node("Call", function=name, args=args)

    def _aggregate(self, token: Token) -> Node:
        if not self._aggregates:
            raise Mistake(
                f"aggregate {token.kind} is not allowed here",
                token.span,
                "use aggregates in SELECT, HAVING or ORDER BY",
            )
        self._aggregates = False  # aggregates do not nest
        self.expect("(")
        distinct = self.accept("DISTINCT") is not None
        argument, separator = None, " "
        if token.kind != "COUNT" or not self.accept("*"):
            argument = self.expression()
        if token.kind == "GROUP_CONCAT" and self.accept(";"):
            self.expect("SEPARATOR")
            self.expect("=")
            separator = unquote(self.expect(*STRINGS))
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
