"""Compiles expressions to Python functions of rows.

A row holds the values of an expression's *inputs*: variables, EXISTS patterns that the database
evaluates, and the row number of the solution if BNODE needs it. `None` is unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from corollary.errors import InvalidInput
from corollary.lang.syntax import IRI, BlankNode, Constant, Literal, Variable
from corollary.lang.xsd import DATE_TIME
from corollary.query import functions
from corollary.query.syntax.algebra import Expr, Node
from corollary.query.syntax.terms import resolve
from corollary.query.values import (
    ConstantSet,
    Fault,
    Value,
    disjunction,
    equal,
    less,
    number,
    truth,
)

Row = Sequence[Value | None]
Function = Callable[[Row], Value]
Input = str | Node  # the name of a variable, an EXISTS, or ROW

ROW = "\0row"  # the row number as an input; no variable has this name


@dataclass
class Clock:
    """The value of NOW(), constant within a query."""

    now: str = "1970-01-01T00:00:00Z"

    def start(self) -> None:
        """Set the clock at the start of a query."""
        self.now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Expression:
    """A compiled expression; `volatile` if equal inputs may give different values."""

    clock: Clock
    base: str | None = None
    inputs: list[Input] = field(default_factory=list)
    volatile: bool = False
    timed: bool = False  # whether it calls NOW()
    function: Function = field(init=False)
    # For a comparison of two terms: the operator, and per side an input position or a constant.
    compares: tuple[str, tuple[int | Constant, int | Constant]] | None = None

    def place(self, key: Input) -> int:
        """The position of an input in rows; adds the input if it is new."""
        for position, input_ in enumerate(self.inputs):
            if input_ is key or (isinstance(key, str) and input_ == key):
                return position
        self.inputs.append(key)
        return len(self.inputs) - 1


def compile_expression(expression: Expr, clock: Clock, base: str | None = None) -> Expression:
    """Compile an expression of the algebra.

    >>> x = Variable("x")
    >>> compiled = compile_expression(Node("Arithmetic", first=x, rest=[("+", x)]), Clock())
    >>> compiled.inputs, compiled.function([2])
    (['x'], 4)
    """
    compiled = Expression(clock, base)
    compiled.function = _compile(expression, compiled)
    if isinstance(expression, Node) and expression.name == "Compare":
        one, two = _side(expression.left, compiled), _side(expression.right, compiled)
        if one is not None and two is not None:
            compiled.compares = expression.op, (one, two)
    return compiled


def _side(node: Expr, into: Expression) -> int | Constant | None:
    if isinstance(node, Variable):
        return into.place(node.name)
    return node if isinstance(node, IRI | Literal) else None


def _compile(node: Expr, into: Expression) -> Function:
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
        cell = row[place]
        if cell is None:
            raise Fault
        return cell

    return value


def _call(node: Node, into: Expression) -> Function:
    name = node.function
    if name in functions.VOLATILE:
        into.volatile = True
        volatile = functions.VOLATILE[name]
        return lambda row: volatile()
    function = functions.FUNCTIONS[name]
    arguments = [_compile(part, into) for part in node.args]
    if len(arguments) == 1:
        only = arguments[0]
        return lambda row: function(only(row))
    if len(arguments) == 2:
        first, second = arguments
        return lambda row: function(first(row), second(row))
    return lambda row: function(*(argument(row) for argument in arguments))


def _cast(node: Node, into: Expression) -> Function:
    cast = functions.CASTS.get(node.iri.value)
    if cast is None or len(node.args) != 1:
        raise InvalidInput(
            "E561",
            f"unknown function <{node.iri.value}> with {len(node.args)} arguments",
            "supported casts: xsd:boolean, integer, decimal, float, double, string and dateTime",
        )
    known, argument = cast, _compile(node.args[0], into)
    return lambda row: known(argument(row))


def _or(node: Node, into: Expression) -> Function:
    tests = [_condition(part, into) for part in node.args]
    return lambda row: disjunction(tests, row)


def _and(node: Node, into: Expression) -> Function:
    tests = [_condition(part, into, negated=True) for part in node.args]
    return lambda row: not disjunction(tests, row)


def _condition(node: Expr, into: Expression, *, negated: bool = False) -> Callable[[Row], bool]:
    function = _compile(node, into)
    return (lambda row: not truth(function(row))) if negated else (lambda row: truth(function(row)))


def _unary(function: Callable[[Value], Value]) -> Callable[[Node, Expression], Function]:
    def compiled(node: Node, into: Expression) -> Function:
        argument = _compile(node.arg, into)
        return lambda row: function(argument(row))

    return compiled


def _arithmetic(node: Node, into: Expression) -> Function:
    first = _compile(node.first, into)
    rest = [(sign, _compile(operand, into)) for sign, operand in node.rest]

    def value(row: Row) -> Value:
        total = first(row)
        for sign, operand in rest:
            total = functions.arithmetic(sign, total, operand(row))
        return total

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
    left = _compile(node.left, into)
    constants = ConstantSet([part for part in node.options if isinstance(part, IRI | Literal)])
    others = [_compile(part, into) for part in node.options if not isinstance(part, IRI | Literal)]

    def is_member(row: Row) -> bool:
        value = left(row)
        if not others:
            return constants.include(value)
        tests = [partial(_equals, value, other) for other in others]
        return disjunction([lambda _: constants.include(value), *tests], row)

    return (lambda row: not is_member(row)) if node.negated else is_member


def _equals(value: Value, other: Function, row: Row) -> bool:
    return equal(value, other(row))


def _bound(node: Node, into: Expression) -> Function:
    position = into.place(node.variable.name)
    return lambda row: row[position] is not None


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


def _now(node: Node, into: Expression) -> Function:
    clock, into.timed = into.clock, True
    return lambda row: Literal(clock.now, DATE_TIME)


def _iri(node: Node, into: Expression) -> Function:
    argument, base = _compile(node.args[0], into), into.base

    def value(row: Row) -> Value:
        argument_value = argument(row)
        if isinstance(argument_value, IRI):
            return argument_value
        return IRI(resolve(base, functions.simple(argument_value)))

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
    "Not": _unary(lambda value: not truth(value)),
    "Negate": _unary(functions.negate),
    "Plus": _unary(number),
    "Arithmetic": _arithmetic,
    "Compare": _compare,
    "In": _in,
    "Bound": _bound,
    "Exists": lambda node, into: _input(into.place(node)),
    "Cast": _cast,
}
# Functions that evaluate arguments lazily, or depend on more than their arguments.
_LAZY: dict[str, Callable[[Node, Expression], Function]] = {
    "IF": _if,
    "COALESCE": _coalesce,
    "NOW": _now,
    "IRI": _iri,
    "URI": _iri,
    "BNODE": _bnode,
}
