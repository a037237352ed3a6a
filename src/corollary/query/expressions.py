"""Expressions as functions of rows: the parsed text in, one Python function out.

A row holds the values of an expression's *inputs*: variables, EXISTS patterns that the database
decides, and the number of the solution where BNODE needs it. `None` is unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from corollary.errors import InvalidInput
from corollary.lang.syntax import IRI, BlankNode, Constant, Literal, Variable
from corollary.query import functions
from corollary.query.options import Options
from corollary.query.syntax.algebra import Node
from corollary.query.syntax.terms import resolve
from corollary.query.values import DATE_TIME, Fault, Value, equal, less, number, truth

Row = Sequence[Value | None]
Function = Callable[[Row], Value]

ROW = "\0row"  # the input that numbers solutions; no variable is called so


@dataclass
class Clock:
    """The time of the query, the same wherever it asks."""

    now: str = "1970-01-01T00:00:00Z"

    def start(self) -> None:
        """A query begins."""
        self.now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Expression:
    """A function of inputs; `volatile` if it may differ for equal ones."""

    clock: Clock
    base: str | None = None
    inputs: list[Any] = field(default_factory=list)  # variables' names, EXISTS patterns, ROW
    volatile: bool = False
    timed: bool = False  # whether it asks for the time of the query
    function: Function = field(init=False)
    # For a comparison of two terms: its sign, and on each side a place in rows or a constant.
    compares: tuple[str, tuple[int | Constant, int | Constant]] | None = None

    def place(self, key: Any) -> int:
        """The place of an input in rows."""
        for place, known in enumerate(self.inputs):
            if known is key or (isinstance(key, str) and known == key):
                return place
        self.inputs.append(key)
        return len(self.inputs) - 1


def compiled(expression: Any, clock: Clock, base: str | None = None) -> Expression:
    """An expression of the parser as a function.

    >>> done = compiled(Node("Arithmetic", first=Variable("x"), rest=[("+", 1)]), Clock())
    >>> done.inputs, done.function([2])
    (['x'], 3)
    """
    found = Expression(clock, base)
    found.function = _compile(expression, found)
    if isinstance(expression, Node) and expression.name == "Compare":
        one, two = _side(expression.left, found), _side(expression.right, found)
        if one is not None and two is not None:
            found.compares = expression.op, (one, two)
    return found


def _side(node: Any, into: Expression) -> int | Constant | None:
    if isinstance(node, Variable):
        return into.place(node.name)
    return node if isinstance(node, IRI | Literal) else None


def _compile(node: Any, into: Expression) -> Function:
    if isinstance(node, Variable):
        return _input(into.place(node.name))
    if isinstance(node, Node):
        if node.name == "Call":
            special = _LAZY.get(node.function, _call)
            return special(node, into)
        return _OPERATORS[node.name](node, into)
    value: Value = node
    return lambda row: value


def _input(place: int) -> Function:
    def value(row: Row) -> Value:
        found = row[place]
        if found is None:
            raise Fault
        return found

    return value


def _call(node: Node, into: Expression) -> Function:
    name = node.function
    if name in functions.VOLATILE:
        into.volatile = True
        volatile = functions.VOLATILE[name]
        return lambda row: volatile()
    known = functions.FUNCTIONS[name]
    arguments = [_compile(part, into) for part in node.args]
    if len(arguments) == 1:
        only = arguments[0]
        return lambda row: known(only(row))
    if len(arguments) == 2:
        first, second = arguments
        return lambda row: known(first(row), second(row))
    return lambda row: known(*(argument(row) for argument in arguments))


def _cast(node: Node, into: Expression) -> Function:
    cast = functions.CASTS.get(node.iri.value)
    if cast is None or len(node.args) != 1:
        raise InvalidInput(
            "E561",
            f"there is no function <{node.iri.value}> of {len(node.args)} arguments",
            "casts to xsd:boolean, integer, decimal, float, double, string and dateTime are there",
        )
    known, argument = cast, _compile(node.args[0], into)
    return lambda row: known(argument(row))


def _or(node: Node, into: Expression) -> Function:
    return _logical([_compile(part, into) for part in node.args], decides=True)


def _and(node: Node, into: Expression) -> Function:
    return _logical([_compile(part, into) for part in node.args], decides=False)


def _logical(parts: Sequence[Function], *, decides: bool) -> Function:
    """One part that is `decides` settles it, even if others have no value."""

    def value(row: Row) -> Value:
        fault = False
        for part in parts:
            try:
                if truth(part(row)) is decides:
                    return decides
            except Fault:
                fault = True
        if fault:
            raise Fault
        return not decides

    return value


def _not(node: Node, into: Expression) -> Function:
    argument = _compile(node.arg, into)
    return lambda row: not truth(argument(row))


def _minus(node: Node, into: Expression) -> Function:
    argument = _compile(node.arg, into)
    return lambda row: functions.negated(argument(row))


def _plus(node: Node, into: Expression) -> Function:
    argument = _compile(node.arg, into)
    return lambda row: number(argument(row))


def _arithmetic(node: Node, into: Expression) -> Function:
    first = _compile(node.first, into)
    rest = [(sign, _compile(operand, into)) for sign, operand in node.rest]

    def value(row: Row) -> Value:
        found = first(row)
        for sign, operand in rest:
            found = functions.arithmetic(sign, found, operand(row))
        return found

    return value


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": equal,
    "!=": lambda one, two: not equal(one, two),
    "<": less,
    ">": lambda one, two: less(two, one),
    "<=": lambda one, two: less(one, two) or equal(one, two),
    ">=": lambda one, two: less(two, one) or equal(one, two),
}


def _compare(node: Node, into: Expression) -> Function:
    compare = COMPARISONS[node.op]
    one, two = _compile(node.left, into), _compile(node.right, into)
    return lambda row: compare(one(row), two(row))


def _in(node: Node, into: Expression) -> Function:
    one = _compile(node.left, into)
    options = Options([option for option in node.options if isinstance(option, IRI | Literal)])
    tests = [
        _compile(option, into) for option in node.options if not isinstance(option, IRI | Literal)
    ]

    def among(row: Row) -> bool:
        value, fault = one(row), False
        try:
            if options.include(value):
                return True
        except Fault:
            fault = True
        for test in tests:
            try:
                if equal(value, test(row)):
                    return True
            except Fault:
                fault = True
        if fault:
            raise Fault
        return False

    return (lambda row: not among(row)) if node.negated else among


def _bound(node: Node, into: Expression) -> Function:
    place = into.place(node.variable.name)
    return lambda row: row[place] is not None


def _if(node: Node, into: Expression) -> Function:
    condition, yes, no = (_compile(part, into) for part in node.args)
    return lambda row: yes(row) if truth(condition(row)) else no(row)


def _coalesce(node: Node, into: Expression) -> Function:
    parts = [_compile(part, into) for part in node.args]

    def value(row: Row) -> Value:
        for part in parts:
            try:
                return part(row)
            except Fault:
                pass
        raise Fault

    return value


def _exists(node: Node, into: Expression) -> Function:
    return _input(into.place(node))


def _now(node: Node, into: Expression) -> Function:
    clock, into.timed = into.clock, True
    return lambda row: Literal(clock.now, DATE_TIME)


def _iri(node: Node, into: Expression) -> Function:
    argument, base = _compile(node.args[0], into), into.base

    def value(row: Row) -> Value:
        found = argument(row)
        if isinstance(found, IRI):
            return found
        return IRI(resolve(base, functions.simple(found)))

    return value


def _bnode(node: Node, into: Expression) -> Function:
    into.volatile = True
    if not node.args:
        struuid = functions.VOLATILE["STRUUID"]
        return lambda row: BlankNode(f"b{str(struuid()).replace('-', '')}")
    argument, place = _compile(node.args[0], into), into.place(ROW)

    def value(row: Row) -> Value:
        label = functions.simple(argument(row)).encode().hex()
        return BlankNode(f"b{row[place]}x{label}")

    return value


_OPERATORS: dict[str, Callable[[Node, Expression], Function]] = {
    "Or": _or,
    "And": _and,
    "Not": _not,
    "Negate": _minus,
    "Plus": _plus,
    "Arithmetic": _arithmetic,
    "Compare": _compare,
    "In": _in,
    "Bound": _bound,
    "Exists": _exists,
    "Cast": _cast,
}
# Functions that do not take the values of all their arguments, or see more than these.
_LAZY: dict[str, Callable[[Node, Expression], Function]] = {
    "IF": _if,
    "COALESCE": _coalesce,
    "NOW": _now,
    "IRI": _iri,
    "URI": _iri,
    "BNODE": _bnode,
}
