"""Expressions computed term by term, once for each distinct combination of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from corollary.core.bulk import bulk_values
from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.forms import Function, input_at
from corollary.lang.functions import applied
from corollary.lang.operands import Fault, Value, boolean, term
from corollary.lang.syntax import (
    Constant,
    Expression,
    Operation,
    Variable,
    expression_variables,
)

Mask = npt.NDArray[np.bool_]
_Places = npt.NDArray[np.int64]


def truths(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> Mask:
    """For each row, whether the expression is true: neither false nor an error."""
    values, place = _values(expression, columns, rows, dictionary)
    found = np.zeros(len(values), bool)
    for at, value in enumerate(values):
        try:
            found[at] = value is not None and boolean(value)
        except Fault:
            continue
    return np.asarray(found[place])


def truth_of(expression: Expression, known: Mapping[Variable, Constant]) -> bool | None:
    """Whether an expression over terms is true; None if it is an error, or a term is not known.

    >>> from corollary.lang.syntax import IRI, Operation
    >>> same = Operation("sameTerm", (Variable("x"), IRI("a")))
    >>> truth_of(same, {Variable("x"): IRI("a")}), truth_of(same, {})
    (True, None)
    """
    variables = list(dict.fromkeys(expression_variables(expression)))
    numbers = {variable: number for number, variable in enumerate(variables)}

    def of(part: Expression) -> CompiledExpression:
        if isinstance(part, Operation):
            return part.operator, tuple(map(of, part.arguments))
        return numbers[part] if isinstance(part, Variable) else part

    compiled = of(expression)
    row = [known.get(variables[number]) for number in inputs_of(compiled)]
    try:
        return boolean(_compiled(compiled)(row))
    except (Fault, ArithmeticError):
        return None


def computed(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> tuple[Ids, Mask]:
    """For each row, the id of the expression's value, and whether it has one.

    >>> from corollary.lang.syntax import XSD, Literal
    >>> dictionary = Dictionary()
    >>> ids = dictionary.encode([Literal("1", XSD + "integer"), Literal("x")])
    >>> found, valid = computed(("+", (0, 0)), {0: ids}, 2, dictionary)
    >>> dictionary.term(int(found[0])).lexical, valid.tolist()
    ('2', [True, False])
    """
    columns = {variable: columns[variable] for variable in inputs_of(expression)}
    bulk = bulk_values(expression, columns, rows, dictionary)
    if bulk is not None:
        found, done = bulk
        if not done.all():
            rest = {variable: ids[~done] for variable, ids in columns.items()}
            left = int(np.count_nonzero(~done))
            found[~done], done[~done] = _computed(expression, rest, left, dictionary)
        return found, done
    return _computed(expression, columns, rows, dictionary)


def _computed(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> tuple[Ids, Mask]:
    values, place = _values(expression, columns, rows, dictionary)
    valid = np.array([value is not None for value in values], bool)
    ids = np.zeros(len(values), np.uint32)
    ids[valid] = dictionary.encode([term(value) for value in values if value is not None])
    return ids[place], valid[place]


def _values(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> tuple[list[Value | None], _Places]:
    """The values of the distinct combinations of terms, and which of them each row has."""
    inputs = inputs_of(expression)
    first, place = distinct_rows([columns[variable] for variable in inputs], rows)
    terms: list[Sequence[Constant]] = [
        dictionary.terms(columns[variable][first].tolist()) for variable in inputs
    ]
    function = _compiled(expression)
    values: list[Value | None] = []
    for row in zip(*terms, strict=True) if terms else [()] * len(first):
        try:
            values.append(function(row))
        except (Fault, ArithmeticError):
            values.append(None)
    return values, place


def distinct_rows(columns: Sequence[Ids], rows: int) -> tuple[_Places, _Places]:
    """The first row of each distinct one, and for each row the number of its distinct one.

    >>> first, place = distinct_rows([np.array([3, 3, 1], np.uint32)], 3)
    >>> first.tolist(), place.tolist()
    ([2, 0], [1, 1, 0])
    """
    if not columns:
        return np.zeros(min(rows, 1), np.int64), np.zeros(rows, np.int64)
    key = columns[0].astype(np.uint64)
    for number, column in enumerate(columns[1:]):
        if number:
            key = np.unique(key, return_inverse=True)[1].astype(np.uint64)
        key = key << np.uint64(32) | column
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return first, place


@lru_cache(maxsize=1 << 12)
def inputs_of(expression: CompiledExpression) -> tuple[int, ...]:
    """The variables of an expression, each once.

    >>> inputs_of(("+", (4, ("-", (4, 2)))))
    (4, 2)
    """
    if isinstance(expression, tuple):
        return tuple(dict.fromkeys(v for part in expression[1] for v in inputs_of(part)))
    return (expression,) if isinstance(expression, int) else ()


@lru_cache(maxsize=1 << 12)
def _compiled(expression: CompiledExpression) -> Function:
    """The expression as a function of rows of its inputs."""
    places = {variable: place for place, variable in enumerate(inputs_of(expression))}

    def of(part: CompiledExpression) -> Function:
        if isinstance(part, int):
            return input_at(places[part])
        if isinstance(part, tuple):
            operator, arguments = part
            constants = {
                place: argument
                for place, argument in enumerate(arguments)
                if not isinstance(argument, int | tuple)
            }
            return applied(operator, [of(argument) for argument in arguments], constants)
        return lambda row: part

    return of(expression)
