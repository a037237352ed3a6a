"""Compiles expressions to Python functions of rows.

A row holds the values of an expression's *inputs*: variables, EXISTS patterns that the database
evaluates, and the row number of the solution if BNODE needs it. `None` is unbound.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from corollary.errors import InvalidInput
from corollary.lang import builtins, forms
from corollary.lang.forms import Function, Row, input_at
from corollary.lang.iris import resolve
from corollary.lang.operands import Value, number, truth
from corollary.lang.syntax import IRI, BlankNode, Constant, Literal, Variable
from corollary.lang.xsd import DATE_TIME
from corollary.query.syntax.algebra import Expr, Node

Input = str | Node  # the name of a variable, an EXISTS, or ROW

ROW = "\0row"  # the row number as an input; no variable has this name
# Functions whose value differs from call to call.
VOLATILE: dict[str, Callable[[], Value]] = {
    "RAND": random.random,
    "UUID": lambda: IRI(f"urn:uuid:{uuid.uuid4()}"),
    "STRUUID": lambda: str(uuid.uuid4()),
}


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
        return input_at(into.place(node.name))
    if isinstance(node, Node):
        if node.name == "Call":
            special = _LAZY.get(node.function, _call)
            return special(node, into)
        return _OPERATORS[node.name](node, into)
    value: Value = node
    return lambda row: value


def _call(node: Node, into: Expression) -> Function:
    name = node.function
    if name in VOLATILE:
        into.volatile = True
        volatile = VOLATILE[name]
        return lambda row: volatile()
    return forms.call(builtins.FUNCTIONS[name], [_compile(part, into) for part in node.args])


def _cast(node: Node, into: Expression) -> Function:
    cast = builtins.CASTS.get(node.iri.value)
    if cast is None or len(node.args) != 1:
        raise InvalidInput(
            "E561",
            f"unknown function <{node.iri.value}> with {len(node.args)} arguments",
            "supported casts: xsd:boolean, integer, decimal, float, double, string and dateTime",
        )
    known, argument = cast, _compile(node.args[0], into)
    return lambda row: known(argument(row))


def _or(node: Node, into: Expression) -> Function:
    return forms.any_of([_compile(part, into) for part in node.args])


def _and(node: Node, into: Expression) -> Function:
    return forms.all_of([_compile(part, into) for part in node.args])


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
            total = builtins.arithmetic(sign, total, operand(row))
        return total

    return value


def _compare(node: Node, into: Expression) -> Function:
    sides = [_compile(node.left, into), _compile(node.right, into)]
    return forms.call(forms.COMPARISONS[node.op], sides)


def _in(node: Node, into: Expression) -> Function:
    constants = [part for part in node.options if isinstance(part, IRI | Literal)]
    others = [_compile(part, into) for part in node.options if not isinstance(part, IRI | Literal)]
    return forms.member(_compile(node.left, into), constants, others, negated=node.negated)


def _bound(node: Node, into: Expression) -> Function:
    position = into.place(node.variable.name)
    return lambda row: row[position] is not None


def _if(node: Node, into: Expression) -> Function:
    condition, yes, no = (_compile(part, into) for part in node.args)
    return forms.choose(condition, yes, no)


def _coalesce(node: Node, into: Expression) -> Function:
    return forms.first_value([_compile(part, into) for part in node.args])


def _now(node: Node, into: Expression) -> Function:
    clock, into.timed = into.clock, True
    return lambda row: Literal(clock.now, DATE_TIME)


def _iri(node: Node, into: Expression) -> Function:
    argument, base = _compile(node.args[0], into), into.base

    def value(row: Row) -> Value:
        argument_value = argument(row)
        if isinstance(argument_value, IRI):
            return argument_value
        return IRI(resolve(base, builtins.simple(argument_value)))

    return value


def _bnode(node: Node, into: Expression) -> Function:
    into.volatile = True
    if not node.args:
        struuid = VOLATILE["STRUUID"]
        return lambda row: BlankNode(f"b{str(struuid()).replace('-', '')}")
    argument, place = _compile(node.args[0], into), into.place(ROW)

    def value(row: Row) -> Value:
        label = builtins.simple(argument(row)).encode().hex()
        return BlankNode(f"b{row[place]}x{label}")

    return value


_OPERATORS: dict[str, Callable[[Node, Expression], Function]] = {
    "Or": _or,
    "And": _and,
    "Not": _unary(lambda value: not truth(value)),
    "Negate": _unary(builtins.negate),
    "Plus": _unary(number),
    "Arithmetic": _arithmetic,
    "Compare": _compare,
    "In": _in,
    "Bound": _bound,
    "Exists": lambda node, into: input_at(into.place(node)),
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
