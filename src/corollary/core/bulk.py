"""Values of the most frequent expressions, computed for whole columns at once.

Arithmetic of integers and decimals, and `CONCAT` of strings: inputs are read from the texts of
terms in bulk, and the results become terms in bulk. All other rows are left to `core.calls`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.terms import text_of
from corollary.lang.operands import MAX_CHARACTERS, literal_number
from corollary.lang.syntax import Literal
from corollary.lang.xsd import DECIMAL, INTEGER, STRING

Mask = npt.NDArray[np.bool_]

LEAST_ROWS = 2_000  # fewer take less time one by one
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_CONSTANTS = 10**15  # constants stay below
_DIGITS = 18  # after the point
_EXACT_LIMIT = 2.0**62  # results whose estimate in doubles stays below are exact in 64 bits


def bulk_values(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> tuple[Ids, Mask] | None:
    """The ids of the values, and the rows that have been computed; None if there are none.

    >>> from corollary.lang.syntax import XSD
    >>> dictionary = Dictionary()
    >>> ids = dictionary.encode([Literal("20", INTEGER), Literal("x")]).repeat(LEAST_ROWS)
    >>> found, done = bulk_values(("+", (0, 0)), {0: ids}, len(ids), dictionary)
    >>> dictionary.term(int(found[0])).lexical, int(done.sum()) == LEAST_ROWS
    ('40', True)
    """
    if rows < LEAST_ROWS or dictionary.partial or not isinstance(expression, tuple):
        return None
    if _is_arithmetic(expression):
        return _sums(expression, columns, rows, dictionary)
    if expression[0] == "CONCAT" and all(
        isinstance(part, int) or _is_string(part) for part in expression[1]
    ):
        return _joined(expression[1], columns, rows, dictionary)
    return None


def _is_arithmetic(part: CompiledExpression) -> bool:
    if isinstance(part, tuple):
        sign, arguments = part
        return (
            sign in _OPERATORS
            and (len(arguments) == 2 or sign != "*")
            and all(map(_is_arithmetic, arguments))
        )
    return isinstance(part, int) or _constant(part) is not None


def _constant(part: CompiledExpression) -> tuple[int, int] | None:
    """A small integer, or a decimal times a power of ten, with this power: its scale."""
    if isinstance(part, Literal) and part.datatype in (INTEGER, DECIMAL):
        value = literal_number(part.lexical, part.datatype)
        if isinstance(value, int) and abs(value) < _CONSTANTS:
            return value, 0
        if isinstance(value, Decimal):
            scale = max(1, -int(value.as_tuple().exponent))
            if scale <= _DIGITS and abs(scaled := int(value.scaleb(scale))) < _CONSTANTS:
                return scaled, scale
    return None


def _is_string(part: CompiledExpression) -> bool:
    return isinstance(part, Literal) and part.datatype == STRING and part.language is None


def _sums(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> tuple[Ids, Mask] | None:
    """Compute with integers: decimals times powers of ten."""
    from corollary.core.kinds import Kinds

    kinds = Kinds.of_dictionary(dictionary)
    done, decimal = np.ones(rows, bool), np.zeros(rows, bool)
    numbers = {v: kinds.scaled(ids, dictionary, done, decimal) for v, ids in columns.items()}
    scales = {variable: number.scale for variable, number in numbers.items()}
    scale = _scale(expression, scales)
    if scale > _DIGITS:
        return None
    bound = partial(_bound, expression, scales=scales)
    if bound({v: number.most for v, number in numbers.items()})[0] >= _EXACT_LIMIT:
        each = {v: np.abs(number.values).astype(np.float64) for v, number in numbers.items()}
        done &= bound(each)[0] < _EXACT_LIMIT
    values = {variable: number.values for variable, number in numbers.items()}
    with np.errstate(over="ignore"):  # in rows that are not done
        results = np.broadcast_to(np.asarray(_computed(expression, values, scales)[0]), rows)
    if _has_decimal(expression):
        decimal[:] = True
    if not decimal.any():
        return _placed(dictionary.encode_integers(_chosen(results, done)), done), done
    if decimal.all():
        return _placed(dictionary.encode_decimals(_chosen(results, done), scale), done), done
    ids = np.zeros(rows, np.uint32)
    ids[done & decimal] = dictionary.encode_decimals(results[done & decimal], scale)
    whole = done & ~decimal
    ids[whole] = dictionary.encode_integers(results[whole] // 10**scale)
    return ids, done


def _has_decimal(part: CompiledExpression) -> bool:
    if isinstance(part, tuple):
        return any(map(_has_decimal, part[1]))
    return isinstance(part, Literal) and part.datatype == DECIMAL


def _scale(part: CompiledExpression, scales: Mapping[int, int]) -> int:
    """The digits after the point of the values."""
    if isinstance(part, int):
        return scales[part]
    if not isinstance(part, tuple):
        return (_constant(part) or (0, 0))[1]
    sign, arguments = part
    found = [_scale(argument, scales) for argument in arguments]
    return sum(found) if sign == "*" else max(found)


def _computed(
    part: CompiledExpression, numbers: Mapping[int, Any], scales: Mapping[int, int]
) -> tuple[Any, int]:
    """The values and their scale; those of rows whose bound is too large are wrong."""
    if isinstance(part, int):
        return numbers[part], scales[part]
    if not isinstance(part, tuple):
        constant = _constant(part)
        assert constant is not None, "checked before"
        return constant
    sign, arguments = part
    found = [_computed(argument, numbers, scales) for argument in arguments]
    if len(found) == 1:
        [(value, scale)] = found
        return (-value if sign == "-" else value), scale
    (one, first), (two, second) = found
    if sign == "*":
        return one * two, first + second
    scale = max(first, second)
    return _OPERATORS[sign](_times(one, scale - first), _times(two, scale - second)), scale


def _times(value: Any, digits: int) -> Any:
    return value * 10**digits if digits else value


def _bound(
    part: CompiledExpression, sizes: Mapping[int, Any], *, scales: Mapping[int, int]
) -> tuple[Any, int]:
    """A bound of the sizes of all values on the way, given bounds of the variables' sizes."""
    if isinstance(part, int):
        return sizes[part], scales[part]
    if not isinstance(part, tuple):
        value, scale = _constant(part) or (0, 0)
        return float(abs(value)), scale
    sign, arguments = part
    bounds = [_bound(argument, sizes, scales=scales) for argument in arguments]
    if len(bounds) == 1:
        return bounds[0]
    (one, first), (two, second) = bounds
    if sign == "*":
        return np.maximum(one, 1) * np.maximum(two, 1), first + second
    scale = max(first, second)
    return one * 10.0 ** (scale - first) + two * 10.0 ** (scale - second), scale


def _joined(
    parts: tuple[CompiledExpression, ...],
    columns: Mapping[int, Ids],
    rows: int,
    dictionary: Dictionary,
) -> tuple[Ids, Mask] | None:
    """Concatenate the texts of plain strings, which are escaped character by character."""
    from corollary.core.kinds import STRING as PLAIN
    from corollary.core.kinds import Kinds

    if not columns:
        return None
    kinds = Kinds.of_dictionary(dictionary)
    done = np.ones(rows, bool)
    for ids in columns.values():
        done &= kinds.kinds(ids, dictionary) == PLAIN
    inner: list[Ids] = []
    constants = [""]
    for part in parts:
        if isinstance(part, int):
            inner.append(_chosen(columns[part], done))
            constants.append("")
        else:
            assert isinstance(part, Literal), "checked before"
            constants[-1] += text_of(part)[1:-1]
    if _longest(inner, dictionary) + sum(map(len, constants)) > MAX_CHARACTERS:
        return None
    return _placed(dictionary.encode_joined(inner, constants), done), done


def _longest(columns: list[Ids], dictionary: Dictionary) -> int:
    """A bound of the bytes of the strings of a row."""
    lengths = np.diff(dictionary.arrays().offsets[: len(dictionary) + 1])
    most = int(lengths.max()) * len(columns)
    if most > MAX_CHARACTERS and len(columns[0]):
        most = int(np.sum([lengths[ids] for ids in columns], axis=0).max())
    return most


def _chosen(values: npt.NDArray[Any], rows: Mask) -> npt.NDArray[Any]:
    return values if rows.all() else values[rows]


def _placed(ids: Ids, rows: Mask) -> Ids:
    """The ids at their rows."""
    if len(ids) == len(rows):
        return ids
    found = np.zeros(len(rows), np.uint32)
    found[rows] = ids
    return found
