"""Values of the most frequent expressions, computed for whole columns at once.

Integer arithmetic and `CONCAT` of strings: their inputs are read from the texts of terms in bulk,
and the results become terms in bulk. All other rows are left to `core.calls`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.terms import text_of
from corollary.lang.operands import MAX_CHARACTERS
from corollary.lang.syntax import Literal
from corollary.lang.xsd import INTEGER, STRING

Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]

LEAST_ROWS = 2_000  # fewer take less time one by one
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
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


def _constant(part: CompiledExpression) -> int | None:
    """The value of a small integer."""
    if isinstance(part, Literal) and part.datatype == INTEGER:
        digits = part.lexical.lstrip("+-")
        if digits.isascii() and digits.isdigit() and len(digits) < 16:
            return int(part.lexical)
    return None


def _is_string(part: CompiledExpression) -> bool:
    return isinstance(part, Literal) and part.datatype == STRING and part.language is None


def _sums(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> tuple[Ids, Mask]:
    from corollary.core.kinds import Kinds

    kinds = Kinds.of_dictionary(dictionary)
    done = np.ones(rows, bool)
    numbers: dict[int, _Numbers] = {}
    sizes: dict[int, float] = {}
    for variable, ids in columns.items():
        numbers[variable], most = kinds.integers(ids, dictionary, done)
        sizes[variable] = float(most)
    if _bound(expression, sizes) >= _EXACT_LIMIT:  # of all rows; look at each
        each = {variable: np.abs(part).astype(np.float64) for variable, part in numbers.items()}
        done &= _bound(expression, each) < _EXACT_LIMIT
    results = np.broadcast_to(np.asarray(_computed(expression, numbers), np.int64), rows)
    return _placed(dictionary.encode_integers(_chosen(results, done)), done), done


def _computed(part: CompiledExpression, numbers: Mapping[int, _Numbers]) -> _Numbers | int:
    """The values; those of rows whose bound is too large are wrong."""
    if isinstance(part, int):
        return numbers[part]
    if not isinstance(part, tuple):
        constant = _constant(part)
        assert constant is not None, "checked before"
        return constant
    sign, arguments = part
    values = [_computed(argument, numbers) for argument in arguments]
    if len(values) == 1:
        return -values[0] if sign == "-" else values[0]
    result: _Numbers | int = _OPERATORS[sign](*values)
    return result


def _bound(part: CompiledExpression, sizes: Mapping[int, Any]) -> Any:
    """A bound of the sizes of all values on the way, given bounds of those of the variables."""
    if isinstance(part, int):
        return sizes[part]
    if not isinstance(part, tuple):
        return float(abs(_constant(part) or 0))
    sign, arguments = part
    bounds = [_bound(argument, sizes) for argument in arguments]
    if len(bounds) == 1:
        return bounds[0]
    one, two = bounds
    return np.maximum(one, 1) * np.maximum(two, 1) if sign == "*" else one + two


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
