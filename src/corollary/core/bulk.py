"""Values of the most frequent expressions, computed for whole columns at once.

Integer arithmetic and `CONCAT` of strings: their inputs are read from the texts of terms in bulk,
and the results become terms in bulk. All other rows are left to `core.calls`.
"""

from __future__ import annotations

from collections.abc import Mapping

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
_Doubles = npt.NDArray[np.float64]

LEAST_ROWS = 2_000  # fewer take less time one by one
_ARITHMETIC = ("+", "-", "*")
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
        operator, arguments = part
        return (
            operator in _ARITHMETIC
            and (len(arguments) == 2 or operator != "*")
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
    import pyarrow as pa
    import pyarrow.compute as pc

    from corollary.core.kinds import INTEGER_NUMBER, Kinds

    kinds = Kinds.of_dictionary(dictionary)
    done = np.ones(rows, bool)
    numbers: dict[int, _Numbers] = {}
    for variable, ids in columns.items():
        kind, values = kinds.of(ids, dictionary)
        whole = kind == INTEGER_NUMBER
        done &= whole
        numbers[variable] = np.where(whole, values, 0).astype(np.int64)
    results, most = _computed(expression, numbers, rows)
    done &= most < _EXACT_LIMIT
    distinct, place = np.unique(results[done], return_inverse=True)
    digits = pa.array(distinct).cast(pa.large_string())
    quoted = pc.binary_join_element_wise(
        pa.scalar('"', pa.large_string()),
        digits,
        pa.scalar(f'"^^<{INTEGER}>', pa.large_string()),
        pa.scalar("", pa.large_string()),
    )
    found = np.zeros(rows, np.uint32)
    found[done] = dictionary.encode_texts(quoted)[place]
    return found, done


def _computed(
    part: CompiledExpression, numbers: Mapping[int, _Numbers], rows: int
) -> tuple[_Numbers, _Doubles]:
    """The values, and bounds of the sizes of all values on the way."""
    if isinstance(part, int):
        return numbers[part], np.abs(numbers[part]).astype(np.float64)
    if not isinstance(part, tuple):
        constant = _constant(part)
        assert constant is not None, "checked before"
        return np.full(rows, constant, np.int64), np.full(rows, float(abs(constant)))
    operator, arguments = part
    values = [_computed(argument, numbers, rows) for argument in arguments]
    if len(values) == 1:
        [(value, most)] = values
        return (-value if operator == "-" else value), most
    (one, most), (two, other) = values
    if operator == "*":
        return one * two, np.maximum(most, 1) * np.maximum(other, 1)
    return (one + two if operator == "+" else one - two), most + other


def _joined(
    parts: tuple[CompiledExpression, ...],
    columns: Mapping[int, Ids],
    rows: int,
    dictionary: Dictionary,
) -> tuple[Ids, Mask] | None:
    """Concatenate the escaped texts of plain strings, which are escaped one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from corollary.core.kinds import STRING as PLAIN
    from corollary.core.kinds import Kinds

    kinds = Kinds.of_dictionary(dictionary)
    done = np.ones(rows, bool)
    for ids in columns.values():
        done &= kinds.of(ids, dictionary)[0] == PLAIN
    pieces = [pa.scalar('"', pa.large_string())]
    inner: dict[int, pa.Array] = {}
    characters = 2
    for part in parts:
        if isinstance(part, int):
            if part not in inner:
                texts = dictionary.texts(columns[part][done])
                inner[part] = pc.utf8_slice_codeunits(texts, 1, -1)
            characters += pc.max(pc.utf8_length(inner[part])).as_py() or 0
            pieces.append(inner[part])
        else:
            assert isinstance(part, Literal), "checked before"
            text = text_of(part)[1:-1]
            characters += len(text)
            pieces.append(pa.scalar(text, pa.large_string()))
    if not inner or characters > MAX_CHARACTERS:
        return None
    quote = pa.scalar('"', pa.large_string())
    texts = pc.binary_join_element_wise(*pieces, quote, pa.scalar("", pa.large_string()))
    found = np.zeros(rows, np.uint32)
    found[done] = dictionary.encode_texts(texts)
    return found, done
