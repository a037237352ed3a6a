"""Filters and computed values over columns of term ids.

The operators of filters have typed columns: exact numbers as fractions of 64-bit integers, doubles,
strings as ranks, booleans, and errors. Each distinct term is examined once, instead of each row.
Rows in which a 64-bit product could overflow are computed with Python's integers. All other values,
and the functions, are computed by `core.calls`, once for each distinct combination of terms.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.calls import truths
from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.literals import NO_VALUE, Literals
from corollary.lang.functions import FUNCTIONS
from corollary.lang.operands import Fault
from corollary.lang.syntax import IRI, Constant, Literal
from corollary.lang.values import as_double, kind_of, value_of
from corollary.lang.xsd import FLOAT

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

# Kinds of values; two values are comparable if their kinds are equal, exact and double being one.
# A value of OTHER kind is one that typed columns do not hold, such as a date or a tagged string.
ERROR, EXACT, DOUBLE, STRING, BOOLEAN, TERM, OTHER = range(7)

_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_TYPED = {"&&", "||", "!", "=", "!=", "+", "-", "*", "/", *_ORDER}
_DECIMALS = 10**18  # quotients whose denominator divides this are not rounded
_EXACT_LIMIT = 2.0**62  # results whose estimate in doubles stays below are exact in 64 bits


@dataclass
class Column:
    """A value for each row: `kind`, and by kind a fraction, a double, or a number that orders.

    `big` holds the fractions that do not fit into 64 bits, for the rows where `den` is 0.
    """

    kind: npt.NDArray[np.uint8]
    num: npt.NDArray[np.int64]  # exact: numerator; string: rank; boolean: 0 or 1; term: id
    den: npt.NDArray[np.int64]  # exact: denominator, 0 if the value is in `big`
    double: npt.NDArray[np.float64]
    big: dict[int, Fraction]

    @classmethod
    def errors(cls, rows: int) -> Column:
        return cls(
            np.zeros(rows, np.uint8),
            np.zeros(rows, np.int64),
            np.ones(rows, np.int64),
            np.zeros(rows, np.float64),
            {},
        )

    def take(self, index: Array) -> Column:
        big = {}
        if self.big:
            for row, at in enumerate(index.tolist()):
                if at in self.big:
                    big[row] = self.big[at]
        return Column(self.kind[index], self.num[index], self.den[index], self.double[index], big)

    def fraction(self, row: int) -> Fraction:
        return (
            self.big[row] if row in self.big else Fraction(int(self.num[row]), int(self.den[row]))
        )

    def set_exact(self, row: int, value: Fraction) -> None:
        self.kind[row] = EXACT
        self.double[row] = as_double(value)
        if max(abs(value.numerator), value.denominator) < 2**63:
            self.num[row], self.den[row] = value.numerator, value.denominator
            self.big.pop(row, None)
        else:
            self.num[row], self.den[row] = 0, 0
            self.big[row] = value


def holds(
    expression: CompiledExpression, columns: Mapping[int, Ids], rows: int, dictionary: Dictionary
) -> Mask:
    """For each row, whether the expression is true (not false, and not an error).

    >>> from corollary.lang.syntax import XSD, Literal
    >>> dictionary = Dictionary()
    >>> ids = dictionary.encode([Literal(text, XSD + "integer") for text in ("1", "2", "03")])
    >>> holds((">=", (0, Literal("2.0", XSD + "decimal"))), {0: ids}, 3, dictionary)
    array([False,  True,  True])
    """
    match expression:
        # Tests of rule sets that apply to all terms, answered without examining each of them.
        case ("!", (("sameTerm", (int(one), int(two))),)):
            return np.asarray(columns[one] != columns[two])
        case ("isLiteral", (int(one),)):
            return Literals.of(dictionary).is_literal(columns[one], dictionary)
        case ("!", (("isLiteral", (int(one),)),)):
            return ~Literals.of(dictionary).is_literal(columns[one], dictionary)
        case ("hasDatatype", (int(one), IRI() as datatype)):
            return Literals.of(dictionary).has_datatype(columns[one], datatype, dictionary)
        case ("sameValue", (int(one), int(two))):
            left, right = (
                Literals.of(dictionary).values(columns[v], dictionary) for v in (one, two)
            )
            return np.asarray((left == right) & (left != NO_VALUE))
        case (str(name), (int(one),)) if name in FUNCTIONS and FUNCTIONS[name].is_test:
            return Literals.of(dictionary).is_true_of(name, columns[one], dictionary)
        case ("&&", parts) if not _is_typed(expression):
            mask = np.ones(rows, bool)
            for part in parts:
                chosen = {v: ids[mask] for v, ids in columns.items()}
                mask[mask] = holds(part, chosen, int(np.count_nonzero(mask)), dictionary)
            return mask
    if not _is_typed(expression):
        return truths(expression, columns, rows, dictionary)
    evaluation = _Evaluation(columns, rows, dictionary, expression)
    result = evaluation.column(expression)
    truth: Mask = (result.kind == BOOLEAN) & (result.num == 1)
    undecided = evaluation.undecided
    if undecided.any():
        rest = {v: ids[undecided] for v, ids in columns.items()}
        count = int(np.count_nonzero(undecided))
        truth[undecided] = truths(expression, rest, count, dictionary)
    return truth


def _is_typed(part: CompiledExpression) -> bool:
    """Whether an expression consists of operators, and of tests of terms."""
    if not isinstance(part, tuple):
        return True
    name, arguments = part
    if name in FUNCTIONS:
        return FUNCTIONS[name].is_test and not any(isinstance(a, tuple) for a in arguments)
    return name in _TYPED and all(map(_is_typed, arguments))


def term_values(terms: list[Constant]) -> Column:
    """The values of terms; strings get ranks in the order of code points among these terms."""
    out = Column.errors(len(terms))
    strings: dict[str, int] = {}
    for row, term in enumerate(terms):
        value = value_of(term)
        match kind_of(value):
            case None:
                out.kind[row] = OTHER if isinstance(term, Literal) else TERM
            case "number" if isinstance(term, Literal) and term.datatype == FLOAT:
                out.kind[row] = OTHER
            case "boolean":
                out.kind[row], out.num[row] = BOOLEAN, int(bool(value))
            case "string":
                out.kind[row] = STRING
                strings[str(value)] = 0
            case "number" if isinstance(value, float):
                out.kind[row], out.double[row] = DOUBLE, value
            case "number" if isinstance(value, int | Fraction):
                out.set_exact(row, Fraction(value))
    strings = {text: rank for rank, text in enumerate(sorted(strings))}
    for row, term in enumerate(terms):
        if out.kind[row] == STRING:
            out.num[row] = strings[str(value_of(term))]
    return out


class _Evaluation:
    def __init__(
        self,
        columns: Mapping[int, Ids],
        rows: int,
        dictionary: Dictionary,
        expression: CompiledExpression,
    ) -> None:
        self.rows = rows
        constants: dict[Constant, int] = {}
        self._constants_of(expression, constants)
        used: list[Ids] = [columns[v] for v in sorted(self._variables_of(expression))]
        distinct = np.unique(np.concatenate(used)) if used else np.zeros(0, np.uint32)
        self.terms = [*dictionary.terms(distinct.tolist()), *constants]
        self.place = {v: np.searchsorted(distinct, ids) for v, ids in columns.items() if used}
        self.constants = {term: len(distinct) + at for at, term in enumerate(constants)}
        self.undecided = np.zeros(rows, bool)  # rows that typed columns cannot decide

    @cached_property
    def values(self) -> Column:
        """The values of the terms; functions do not need them."""
        values = term_values(self.terms)
        # Terms without a value are compared by id, constants included.
        numbers: dict[Constant, int] = {}
        for row in np.nonzero(values.kind == TERM)[0].tolist():
            values.num[row] = numbers.setdefault(self.terms[row], len(numbers))
        return values

    def _constants_of(self, part: CompiledExpression, found: dict[Constant, int]) -> None:
        if isinstance(part, tuple):
            for argument in part[1]:
                self._constants_of(argument, found)
        elif not isinstance(part, int):
            found.setdefault(part, len(found))

    def _variables_of(self, part: CompiledExpression) -> set[int]:
        if isinstance(part, tuple):
            return {v for argument in part[1] for v in self._variables_of(argument)}
        return {part} if isinstance(part, int) else set()

    def column(self, part: CompiledExpression) -> Column:
        if isinstance(part, int):
            return self.values.take(self.place[part])
        if not isinstance(part, tuple):
            return self.values.take(np.full(self.rows, self.constants[part]))
        sign, arguments = part
        if sign in FUNCTIONS:
            return self._call(sign, arguments)
        inner = [self.column(argument) for argument in arguments]
        for column in inner:
            self.undecided |= column.kind == OTHER
        # A term without a value is an error in every operation except comparisons of terms.
        for argument, column in zip(arguments, inner, strict=True):
            if sign not in ("=", "!=") or isinstance(argument, tuple):
                column.kind[column.kind == TERM] = ERROR
        if sign in ("&&", "||"):
            return self._connect(sign, inner)
        if sign == "!":
            out = inner[0]
            out.num = 1 - out.num
            out.kind[out.kind != BOOLEAN] = ERROR
            return out
        if len(inner) == 1:
            if sign == "+":
                inner[0].kind[~_numeric(inner[0])] = ERROR
                return inner[0]
            return self._compute("-", _zeros(inner[0]), inner[0])
        if sign in ("=", "!=") or sign in _ORDER:
            return self._compare(sign, inner[0], inner[1])
        return self._compute(sign, inner[0], inner[1])

    def _call(self, name: str, arguments: tuple[CompiledExpression, ...]) -> Column:
        """Call a function of terms once per distinct combination."""
        places: list[Array] = []
        for argument in arguments:
            assert not isinstance(argument, tuple), "functions take terms"
            if isinstance(argument, int):
                places.append(self.place[argument])
            else:
                places.append(np.full(self.rows, self.constants[argument]))
        if name == "sameTerm" and all(isinstance(argument, int) for argument in arguments):
            out = Column.errors(self.rows)
            out.kind[:], out.num = BOOLEAN, (places[0] == places[1]).astype(np.int64)
            return out
        key = places[0].astype(np.int64)
        for place in places[1:]:
            key = key * len(self.terms) + place
        _, first, back = np.unique(key, return_index=True, return_inverse=True)
        function = FUNCTIONS[name].call
        found = Column.errors(len(first))
        for row, at in enumerate(first.tolist()):
            with suppress(Fault):
                found.num[row] = int(bool(function(*(self.terms[place[at]] for place in places))))
                found.kind[row] = BOOLEAN
        return found.take(back)

    def _connect(self, sign: str, inner: list[Column]) -> Column:
        decisive = int(sign == "||")
        decided = np.zeros(self.rows, bool)
        error = np.zeros(self.rows, bool)
        for column in inner:
            truth = column.kind == BOOLEAN
            decided |= truth & (column.num == decisive)
            error |= ~truth
        out = Column.errors(self.rows)
        out.num = np.where(decided, decisive, 1 - decisive)
        out.kind[decided | ~error] = BOOLEAN
        return out

    def _compare(self, sign: str, left: Column, right: Column) -> Column:
        less, same, ordered, comparable = _order(left, right)
        out = Column.errors(self.rows)
        if sign in ("=", "!="):
            valid = (left.kind != ERROR) & (right.kind != ERROR)
            truth = (same & comparable) == (sign == "=")
            out.kind[valid] = BOOLEAN
            out.num = truth.astype(np.int64)
            return out
        truth = {"<": less, "<=": less | same, ">": ~less & ~same & ordered, ">=": ~less & ordered}[
            sign
        ]
        out.kind[comparable & (left.kind != TERM)] = BOOLEAN
        out.num = truth.astype(np.int64)
        return out

    def _compute(self, sign: str, left: Column, right: Column) -> Column:
        out = Column.errors(self.rows)
        exact = (left.kind == EXACT) & (right.kind == EXACT)
        numeric = _numeric(left) & _numeric(right)
        doubles = numeric & ~exact
        with np.errstate(all="ignore"):
            if doubles.any():
                function = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[sign]
                out.double = function(_as_doubles(left), _as_doubles(right))
                out.kind[doubles] = DOUBLE
            num, den, safe = _fractions(sign, left, right)
        safe &= exact
        if sign == "/":
            divisor = np.gcd(num, den)
            divisor[divisor == 0] = 1
            num, den = num // divisor, den // divisor
            # All other quotients are rounded.
            self.undecided |= safe & (den != 0) & (_DECIMALS % np.where(den == 0, 1, den) != 0)
        out.num[safe], out.den[safe] = num[safe], den[safe]
        out.kind[safe & (out.den != 0)] = EXACT
        out.den[out.den == 0] = 1
        for row in np.nonzero(exact & ~safe)[0].tolist():
            a, b = left.fraction(row), right.fraction(row)
            if sign != "/" or b != 0:
                value = _EXACT[sign](a, b)
                out.set_exact(row, value)
                self.undecided[row] |= sign == "/" and _DECIMALS % value.denominator != 0
        return out


_EXACT: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def _zeros(like: Column) -> Column:
    """The left side of a unary minus; -0.0 for doubles, so that -(0.0) is -0.0."""
    out = Column.errors(len(like.kind))
    out.kind = like.kind.copy()
    out.double[:] = -0.0
    return out


def _numeric(column: Column) -> Mask:
    numeric: Mask = (column.kind == EXACT) | (column.kind == DOUBLE)
    return numeric


def _as_doubles(column: Column) -> npt.NDArray[np.float64]:
    """Numbers as the nearest doubles."""
    out = column.double.copy()
    exact = column.kind == EXACT
    # The quotient of two integers that doubles represent exactly is rounded once, as required.
    small = exact & (np.abs(column.num) < 2**53) & (column.den > 0) & (column.den < 2**53)
    out[small] = column.num[small] / column.den[small]
    for row in np.nonzero(exact & ~small)[0].tolist():
        out[row] = as_double(column.fraction(row))
    return out


def _fractions(sign: str, left: Column, right: Column) -> tuple[Array, Array, Mask]:
    """Numerators, denominators, and whether they are correct: no product overflowed."""
    a, b = left.num, left.den
    c, d = right.num, right.den
    fits = (b != 0) & (d != 0)
    fa, fb, fc, fd = (np.abs(part.astype(np.float64)) for part in (a, b, c, d))
    if sign in ("+", "-"):
        num = a * d + c * b if sign == "+" else a * d - c * b
        return num, b * d, fits & (fa * fd + fc * fb < _EXACT_LIMIT) & (fb * fd < _EXACT_LIMIT)
    if sign == "*":
        return a * c, b * d, fits & (fa * fc < _EXACT_LIMIT) & (fb * fd < _EXACT_LIMIT)
    # a/b : c/d with the sign kept in the numerator; a zero divisor leaves the denominator 0
    num, den = a * d * np.sign(c), b * np.abs(c)
    return num, den, fits & (fa * fd < _EXACT_LIMIT) & (fb * fc < _EXACT_LIMIT)


def _order(left: Column, right: Column) -> tuple[Mask, Mask, Mask, Mask]:
    """Less, equal, ordered (not NaN), and comparable, for each row."""
    exact = (left.kind == EXACT) & (right.kind == EXACT)
    numeric = _numeric(left) & _numeric(right)
    comparable = numeric | ((left.kind == right.kind) & (left.kind != ERROR))
    less, same = left.num < right.num, left.num == right.num
    ordered = np.ones(len(less), bool)
    if exact.any():
        a = left.num.astype(np.float64) * right.den
        b = right.num.astype(np.float64) * left.den
        safe = (
            exact
            & (np.abs(a) < _EXACT_LIMIT)
            & (np.abs(b) < _EXACT_LIMIT)
            & (left.den != 0)
            & (right.den != 0)
        )
        with np.errstate(over="ignore"):
            x, y = left.num * right.den, right.num * left.den
        less = np.where(safe, x < y, less)
        same = np.where(safe, x == y, same)
        for row in np.nonzero(exact & ~safe)[0].tolist():
            p, q = left.fraction(row), right.fraction(row)
            less[row], same[row] = p < q, p == q
    doubles = numeric & ~exact
    if doubles.any():
        f, g = _as_doubles(left), _as_doubles(right)
        less = np.where(doubles, f < g, less)
        same = np.where(doubles, f == g, same)
        ordered = ~(doubles & (np.isnan(f) | np.isnan(g)))
    return less, same, ordered, comparable
