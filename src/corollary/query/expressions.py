"""Expressions as functions of rows: the parsed text in, one Python function out.

A row holds the values of an expression's *inputs*: variables, EXISTS patterns that the database
decides, and the number of the solution where BNODE needs it. `None` is unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

import rdflib
from rdflib.plugins.sparql.parserutils import CompValue

from corollary.errors import InvalidInput
from corollary.lang.syntax import IRI, BlankNode, Constant, Literal
from corollary.query import functions
from corollary.query.terms import constant
from corollary.query.values import DATE_TIME, Fault, Value, equal, less, number, truth

Row = Sequence[Value | None]
Function = Callable[[Row], Value]

EXISTS = ("Builtin_EXISTS", "Builtin_NOTEXISTS")
ROW = "\0row"  # the input that numbers solutions; no variable is called so
# The order in which the parser names the arguments of functions.
_ARGUMENTS = ("arg", "arg1", "arg2", "arg3", "text", "pattern", "replacement", "flags")
_SUBSTR = ("arg", "start", "length")


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

    >>> from rdflib.plugins.sparql.parser import parseQuery
    >>> query = parseQuery("SELECT (?x + 1 AS ?y) {}")
    >>> done = compiled(query[1].projection[0].expr, Clock())
    >>> done.inputs, done.function([2])
    (['x'], 3)
    """
    found = Expression(clock, base)
    found.function = _compile(expression, found)
    if isinstance(expression, CompValue) and expression.name == "RelationalExpression":
        one, two = _side(expression.expr, found), _side(expression.other, found)
        if expression.op in COMPARISONS and one is not None and two is not None:
            found.compares = str(expression.op), (one, two)
    return found


def _side(node: Any, into: Expression) -> int | Constant | None:
    if isinstance(node, rdflib.Variable):
        return into.place(str(node))
    return constant(node) if isinstance(node, rdflib.URIRef | rdflib.Literal) else None


def _compile(node: Any, into: Expression) -> Function:
    if isinstance(node, rdflib.Variable):
        return _input(into.place(str(node)))
    if isinstance(node, rdflib.BNode):
        raise InvalidInput("E560", "a blank node cannot stand in an expression")
    if isinstance(node, rdflib.URIRef | rdflib.Literal):
        value: Value = constant(node)
        return lambda row: value
    assert isinstance(node, CompValue), f"not an expression: {node!r}"
    name = node.name
    if name in _SPECIAL:
        return _SPECIAL[name](node, into)
    if name == "Function":
        return _cast(node, into)
    if name.startswith("Aggregate_"):
        raise InvalidInput(
            "E560",
            "an aggregate stands where there are no groups",
            "use it in SELECT, HAVING or ORDER BY",
        )
    return _call(node, name.removeprefix("Builtin_").upper(), into)


def _listed(node: Any) -> list[Any]:
    """The expressions of a list; the parser takes an empty one for rdf:nil."""
    return node if isinstance(node, list) else [] if node == rdflib.RDF.nil else [node]


def _input(place: int) -> Function:
    def value(row: Row) -> Value:
        found = row[place]
        if found is None:
            raise Fault
        return found

    return value


def _call(node: CompValue, name: str, into: Expression) -> Function:
    names = _SUBSTR if name == "SUBSTR" else _ARGUMENTS
    given = [node[key] for key in names if key in node]
    if name == "CONCAT":
        given = _listed(node.arg)
    if name in functions.VOLATILE:
        into.volatile = True
        volatile = functions.VOLATILE[name]
        return lambda row: volatile()
    function = functions.FUNCTIONS.get(name)
    if function is None:
        raise InvalidInput("E561", f"the function {name} is not supported")
    known = function
    arguments = [_compile(part, into) for part in given]
    if len(arguments) == 1:
        only = arguments[0]
        return lambda row: known(only(row))
    if len(arguments) == 2:
        first, second = arguments
        return lambda row: known(first(row), second(row))
    return lambda row: known(*(argument(row) for argument in arguments))


def _cast(node: CompValue, into: Expression) -> Function:
    cast = functions.CASTS.get(str(node.iri))
    given = node.expr or []
    if cast is None or len(given) != 1:
        raise InvalidInput(
            "E561",
            f"there is no function <{node.iri}> of {len(given)} arguments",
            "casts to xsd:boolean, integer, decimal, float, double, string and dateTime are there",
        )
    known, argument = cast, _compile(given[0], into)
    return lambda row: known(argument(row))


def _or(node: CompValue, into: Expression) -> Function:
    parts = [_compile(part, into) for part in (node.expr, *(node.other or ()))]
    return parts[0] if len(parts) == 1 else _logical(parts, decides=True)


def _and(node: CompValue, into: Expression) -> Function:
    parts = [_compile(part, into) for part in (node.expr, *(node.other or ()))]
    return parts[0] if len(parts) == 1 else _logical(parts, decides=False)


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


def _not(node: CompValue, into: Expression) -> Function:
    argument = _compile(node.expr, into)
    return lambda row: not truth(argument(row))


def _minus(node: CompValue, into: Expression) -> Function:
    argument = _compile(node.expr, into)
    return lambda row: functions.negated(argument(row))


def _plus(node: CompValue, into: Expression) -> Function:
    argument = _compile(node.expr, into)
    return lambda row: number(argument(row))


def _arithmetic(node: CompValue, into: Expression) -> Function:
    found = _compile(node.expr, into)
    for sign, part in zip(node.op or (), node.other or (), strict=True):
        found = _binary(str(sign), found, _compile(part, into))
    return found


def _binary(sign: str, one: Function, two: Function) -> Function:
    return lambda row: functions.arithmetic(sign, one(row), two(row))


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": equal,
    "!=": lambda one, two: not equal(one, two),
    "<": less,
    ">": lambda one, two: less(two, one),
    "<=": lambda one, two: less(one, two) or equal(one, two),
    ">=": lambda one, two: less(two, one) or equal(one, two),
}


def _relational(node: CompValue, into: Expression) -> Function:
    one = _compile(node.expr, into)
    if node.op is None:
        return one
    if node.op in COMPARISONS:
        compare, two = COMPARISONS[node.op], _compile(node.other, into)
        return lambda row: compare(one(row), two(row))
    tests = [_compile(part, into) for part in _listed(node.other)]

    def among(row: Row) -> bool:
        value, fault = one(row), False
        for test in tests:
            try:
                if equal(value, test(row)):
                    return True
            except Fault:
                fault = True
        if fault:
            raise Fault
        return False

    return among if node.op == "IN" else lambda row: not among(row)


def _bound(node: CompValue, into: Expression) -> Function:
    place = into.place(str(node.arg))
    return lambda row: row[place] is not None


def _if(node: CompValue, into: Expression) -> Function:
    condition, yes, no = (_compile(part, into) for part in (node.arg1, node.arg2, node.arg3))
    return lambda row: yes(row) if truth(condition(row)) else no(row)


def _coalesce(node: CompValue, into: Expression) -> Function:
    parts = [_compile(part, into) for part in _listed(node.arg)]

    def value(row: Row) -> Value:
        for part in parts:
            try:
                return part(row)
            except Fault:
                pass
        raise Fault

    return value


def _exists(node: CompValue, into: Expression) -> Function:
    return _input(into.place(node))


def _now(node: CompValue, into: Expression) -> Function:
    clock, into.timed = into.clock, True
    return lambda row: Literal(clock.now, DATE_TIME)


def _iri(node: CompValue, into: Expression) -> Function:
    argument, base = _compile(node.arg, into), into.base

    def value(row: Row) -> Value:
        found = argument(row)
        if isinstance(found, IRI):
            return found
        text = functions.simple(found)
        return IRI(urljoin(base, text) if base else text)

    return value


def _bnode(node: CompValue, into: Expression) -> Function:
    into.volatile = True
    if node.arg is None or "arg" not in node:
        struuid = functions.VOLATILE["STRUUID"]
        return lambda row: BlankNode(f"b{str(struuid()).replace('-', '')}")
    argument, place = _compile(node.arg, into), into.place(ROW)

    def value(row: Row) -> Value:
        label = functions.simple(argument(row)).encode().hex()
        return BlankNode(f"b{row[place]}x{label}")

    return value


def _true(node: CompValue, into: Expression) -> Function:
    return lambda row: True


_SPECIAL: dict[str, Callable[[CompValue, Expression], Function]] = {
    "ConditionalOrExpression": _or,
    "ConditionalAndExpression": _and,
    "UnaryNot": _not,
    "UnaryMinus": _minus,
    "UnaryPlus": _plus,
    "AdditiveExpression": _arithmetic,
    "MultiplicativeExpression": _arithmetic,
    "RelationalExpression": _relational,
    "Builtin_BOUND": _bound,
    "Builtin_IF": _if,
    "Builtin_COALESCE": _coalesce,
    "Builtin_NOW": _now,
    "Builtin_IRI": _iri,
    "Builtin_URI": _iri,
    "Builtin_BNODE": _bnode,
    "TrueFilter": _true,
    **dict.fromkeys(EXISTS, _exists),
}
