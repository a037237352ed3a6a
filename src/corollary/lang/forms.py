"""Expressions as Python functions of rows: the operators that do not evaluate all arguments.

A row holds the values of an expression's inputs; `None` is unbound. Rules and SPARQL compile their
expressions of these parts; all other operators are functions of values (`builtins`, `operands`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from corollary.lang.operands import (
    ConstantSet,
    Fault,
    Value,
    disjunction,
    equal,
    less,
    truth,
)
from corollary.lang.syntax import IRI, Literal

Row = Sequence[Value | None]
Function = Callable[[Row], Value]
Truth = Callable[[Value], bool]  # whether a value is true; `Fault` if it is no condition

COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": equal,
    "!=": lambda one, two: not equal(one, two),
    "<": less,
    ">": lambda one, two: less(two, one),
    "<=": lambda one, two: less(one, two) or equal(one, two),
    ">=": lambda one, two: less(two, one) or equal(one, two),
}


def input_at(place: int) -> Function:
    """The value of an input; `Fault` if it is unbound."""

    def value(row: Row) -> Value:
        cell = row[place]
        if cell is None:
            raise Fault
        return cell

    return value


def call(function: Callable[..., Value], arguments: Sequence[Function]) -> Function:
    """A function applied to the values of its arguments.

    >>> call(max, [input_at(0), input_at(1)])([1, 2])
    2
    """
    if len(arguments) == 1:
        only = arguments[0]
        return lambda row: function(only(row))
    if len(arguments) == 2:
        first, second = arguments
        return lambda row: function(first(row), second(row))
    return lambda row: function(*(argument(row) for argument in arguments))


def any_of(parts: Sequence[Function], truth: Truth = truth) -> Function:
    """`||`: true if a part is, whatever the others are."""
    tests = [_condition(part, truth) for part in parts]
    return lambda row: disjunction(tests, row)


def all_of(parts: Sequence[Function], truth: Truth = truth) -> Function:
    """`&&`: false if a part is, whatever the others are."""
    tests = [_condition(part, truth, negated=True) for part in parts]
    return lambda row: not disjunction(tests, row)


def _condition(function: Function, truth: Truth, *, negated: bool = False) -> Callable[[Row], bool]:
    return (lambda row: not truth(function(row))) if negated else (lambda row: truth(function(row)))


def choose(condition: Function, yes: Function, no: Function, truth: Truth = truth) -> Function:
    """`IF`: evaluates one of the two."""
    return lambda row: yes(row) if truth(condition(row)) else no(row)


def first_value(parts: Sequence[Function]) -> Function:
    """`COALESCE`: the value of the first part that has one."""

    def value(row: Row) -> Value:
        for part in parts:
            try:
                return part(row)
            except Fault:
                pass
        raise Fault

    return value


def member(
    left: Function, options: Sequence[IRI | Literal], others: Sequence[Function], *, negated: bool
) -> Function:
    """`IN` and `NOT IN`: whether a value equals a constant, or the value of another expression."""
    constants = ConstantSet(options)

    def is_member(row: Row) -> bool:
        value = left(row)
        if not others:
            return constants.include(value)
        tests = [partial(_equals, value, other) for other in others]
        return disjunction([lambda _: constants.include(value), *tests], row)

    return (lambda row: not is_member(row)) if negated else is_member


def _equals(value: Value, other: Function, row: Row) -> bool:
    return equal(value, other(row))
