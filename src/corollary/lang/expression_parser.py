"""Expressions of `FILTER` and `BIND`, by precedence climbing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from corollary.errors import nearest
from corollary.lang.builtins import CASTS, UNLIMITED
from corollary.lang.functions import FUNCTIONS, LAZY, REFUSED, arity, spelled
from corollary.lang.lexer import Token
from corollary.lang.syntax import (
    IRI,
    XSD,
    Expression,
    Operation,
    Variable,
)
from corollary.lang.term_parser import SHOWN_CHARACTERS, TermParser

# Levels of an expression: evaluation, printing and comparison recurse into it, and Python's stack
# holds 1,000 frames.
MAX_NESTING = 100

PRECEDENCE = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "IN", "NOT IN"), 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
}


class ExpressionParser(TermParser):
    """Reads expressions."""

    def _expression(self, least: int, depth: int) -> Expression:
        """Precedence climbing; chains of `&&` and `||` become one operation, however long."""
        start = self._token.start
        left = self._operand(depth)
        height = depth
        while (level := PRECEDENCE.get(operator := self._operator(), 0)) >= least:
            token = self._advance()
            height += 1
            self._check_depth(height if level > 2 else depth, token)
            if operator in ("IN", "NOT IN"):
                if operator == "NOT IN":
                    self._advance()
                arguments = [left, *self._options(depth + 1)]
            else:
                arguments = [left, self._expression(level + 1, depth + 1)]
            while level <= 2 and self._token.kind == operator:
                self._advance()
                arguments.append(self._expression(level + 1, depth + 1))
            left = Operation(operator, tuple(arguments), self._span(start, self._end))
            if level == 3 and PRECEDENCE.get(self._operator()) == 3:
                self._fail(
                    "E101",
                    "comparisons cannot be chained",
                    self._token,
                    "write ?x < ?y && ?y < ?z",
                )
        return left

    def _operator(self) -> str:
        """The binary operator at the current token, or what else it is."""
        token = self._token
        if token.kind != "word":
            return token.kind
        word = token.text.upper()
        if word == "NOT" and self._next.text.upper() == "IN":
            return "NOT IN"
        return "IN" if word == "IN" else token.kind

    def _options(self, depth: int) -> Iterator[Expression]:
        self._expect("(", "'(' after IN")
        if not self._accept(")"):
            yield from self._separated(lambda: self._expression(1, depth))
            self._expect(")", "',' or ')' after a value")

    def _operand(self, depth: int) -> Expression:
        token = self._token
        self._check_depth(depth, token)
        if token.kind == "(":
            self._advance()
            expression = self._expression(1, depth + 1)
            self._expect(")", "an operator or ')'")
            return expression
        if token.kind in ("!", "-", "+"):
            self._advance()
            argument = self._operand(depth + 1)
            return Operation(token.kind, (argument,), self._span(token.start, self._end))
        if token.kind in ("word", "iri", "prefixed") and self._next.kind == "(":
            return self._call(depth)
        term = self._term()
        if isinstance(term, Variable):
            self._refuse_anonymous([term], token, "an expression")
        return term

    def _call(self, depth: int) -> Operation:
        """A function applied to expressions, or a cast."""
        token = self._token
        shown = token.text[:SHOWN_CHARACTERS]
        if token.kind == "word":
            self._advance()
            name = spelled(token.text)
            if token.text.upper() in REFUSED:
                reason, hint = REFUSED[token.text.upper()]
                self._fail("E215", f"rules have no {token.text.upper()}: {reason}", token, hint)
            if name is None:
                names = [*FUNCTIONS, *LAZY]
                close = nearest(token.text, names) or nearest(token.text.upper(), names)
                self._fail(
                    "E101",
                    f"'{shown}' is not a function",
                    token,
                    f"did you mean {close}?" if close else "the functions are those of SPARQL 1.1",
                )
        else:
            datatype = self.constant()
            assert isinstance(datatype, IRI), "the token is one"
            name = datatype.value
            if name not in CASTS:
                known = ", ".join("xsd:" + iri.removeprefix(XSD) for iri in CASTS)
                self._fail("E101", f"'{shown}' is not a function", token, f"casts are {known}")
        self._expect("(")
        arguments: tuple[Expression, ...] = ()
        if not self._accept(")"):
            self._check_depth(depth + 1, token)
            arguments = tuple(self._separated(lambda: self._expression(1, depth + 1)))
            self._expect(")", "an operator, ',' or ')'")
        least, most = arity(name)
        if not least <= len(arguments) <= most:
            number = str(least) if least == most else f"{least} or more"
            if least < most < UNLIMITED:
                number = f"{least} to {most}"
            takes = "one value" if most == 1 else f"{number} values"
            self._fail("E101", f"{shown} takes {takes}, not {len(arguments)}", token)
        return Operation(name, arguments, self._span(token.start, self._end))

    def _check_depth(self, depth: int, token: Token) -> None:
        if depth >= MAX_NESTING:
            self._fail(
                "E105",
                f"this expression is nested deeper than {MAX_NESTING} levels",
                token,
                "split it over several FILTERs or BINDs",
            )

    def _refuse_anonymous(self, variables: Iterable[Variable], start: Token, where: str) -> None:
        if self._anonymous and any(variable.name in self._anonymous for variable in variables):
            self._fail(
                "E214",
                f"'_' stands for a value that nothing refers to, but {where} needs one",
                self._span(start.start, self._end),
                "give the variable a name: ?x",
            )
