"""Functions of terms over columns, as a database calls them: many rows at once.

An expression is evaluated once for each distinct row of its inputs. Comparisons of numbers, IRIs
and strings, which filters are mostly made of, are decided by arrays of kinds and numbers of terms,
found out once for each term.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary
from corollary.core.terms import term_of, text_of
from corollary.lang.syntax import XSD, Constant
from corollary.query.aggregates import AGGREGATES
from corollary.query.expressions import Expression, Row
from corollary.query.plan import Call, Kind
from corollary.query.values import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGERS,
    Fault,
    Value,
    literal_number,
    sort_key,
    text,
    truth,
)

Ids = npt.NDArray[np.int64]

_REMEMBERED = 1 << 18  # terms and results that are kept
# Kinds of terms, as far as comparisons are decided by them; 0: nobody asked yet.
_NODE, _STRING, _NUMBER, _OTHER = 1, 2, 3, 4
_TYPED = re.compile(r'"([^"\\]*)"\^\^<(' + re.escape(XSD) + r"[A-Za-z]+)>")
_EXACT_DIGITS = 15  # doubles tell apart all decimals of so many digits
_ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class Lookup:
    """Terms by ids: those of the dictionary, and the query's own, which are negative."""

    def __init__(self, dictionary: Dictionary, constants: Sequence[Constant]) -> None:
        self.dictionary = dictionary
        self.constants = constants
        self._terms: dict[int, Constant] = {}

    def terms(self, ids: Sequence[int | None]) -> list[Constant | None]:
        """The terms of ids."""
        known = self._terms
        missing = list({i for i in ids if i is not None and i not in known})
        if missing:
            if len(known) > _REMEMBERED:
                known.clear()
                missing = list({i for i in ids if i is not None})
            stored = [i for i in missing if i >= 0]
            texts = self.dictionary.texts(np.array(stored, np.int64)).to_pylist()
            known.update(zip(stored, map(term_of, texts), strict=True))
            known.update((i, self.constants[-1 - i]) for i in missing if i < 0)
        return [None if i is None else known[i] for i in ids]

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids, null where they are."""
        stored = self.dictionary.texts_from(0)
        if not self.constants:
            return stored.take(ids)
        own = pa.array([text_of(term) for term in self.constants], pa.large_string())
        mine = pc.less(ids, 0)
        nothing = pa.scalar(None, pa.int64())
        return pc.coalesce(
            stored.take(pc.if_else(mine, nothing, ids)),
            own.take(pc.if_else(mine, pc.subtract(-1, ids), nothing)),
        )


class Kinds:
    """What comparisons ask of the terms of a dictionary, found out once for each."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._kinds = np.zeros(0, np.int8)
        self._numbers = np.zeros(0, np.float64)

    def of(
        self, ids: Ids, constants: Sequence[Constant]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
        """The kinds of terms, and the numbers of those that are some."""
        if len(self._kinds) < len(self._dictionary):
            room = len(self._dictionary) + len(self._kinds) // 2
            self._kinds = np.concatenate([self._kinds, np.zeros(room - len(self._kinds), np.int8)])
            self._numbers = np.concatenate([self._numbers, np.zeros(room - len(self._numbers))])
        own = ids < 0
        if not own.any():
            kinds = self._kinds[ids]
            if not kinds.all():
                self._find(np.unique(ids[kinds == 0]))
            return self._kinds[ids], self._numbers[ids]
        kinds, numbers = np.empty(len(ids), np.int8), np.zeros(len(ids))
        kinds[~own], numbers[~own] = self.of(ids[~own], constants)
        found = [kind_of(text_of(constants[-1 - i])) for i in ids[own].tolist()]
        kinds[own] = [kind for kind, _ in found]
        numbers[own] = [number for _, number in found]
        return kinds, numbers

    def _find(self, ids: Ids) -> None:
        found = [kind_of(text) for text in self._dictionary.texts(ids).to_pylist()]
        self._kinds[ids] = [kind for kind, _ in found]
        self._numbers[ids] = [number for _, number in found]


def kind_of(text: str) -> tuple[int, float]:
    """The kind of a term, and its number if a double tells it from all others.

    >>> kind_of("<a>"), kind_of('"x"'), kind_of('"x"@en')
    ((1, 0.0), (2, 0.0), (4, 0.0))
    >>> kind_of('"07"^^<http://www.w3.org/2001/XMLSchema#integer>')
    (3, 7.0)
    """
    if text[0] != '"':
        return _NODE, 0.0
    if text[-1] == '"':
        return _STRING, 0.0
    match = _TYPED.fullmatch(text)
    if match is not None and match[2] != FLOAT:
        number = literal_number(*match.groups())
        exact = match[2] in INTEGERS or match[2] == DECIMAL
        if number is not None and number == number and (
            match[2] == DOUBLE or (exact and len(match[1]) <= _EXACT_DIGITS)
        ):  # fmt: skip
            return _NUMBER, float(number)
    return _OTHER, 0.0


class Evaluator:
    """A call as a function of columns."""

    def __init__(self, call: Call, lookup: Lookup, kinds: Kinds) -> None:
        self._call = call
        self._lookup = lookup
        self._kinds = kinds
        self._known: dict[Any, Any] = {}
        self._now = ""
        self._compares = None if call.expression is None else call.expression.compares

    def __call__(self, *columns: pa.ChunkedArray) -> pa.Array:
        """The results of all rows, null where there is none."""
        call = self._call
        arrays = [column.combine_chunks() for column in columns]
        kind = pa.bool_() if call.wanted == "condition" else pa.string()
        if call.wanted == "aggregate":
            return pa.array(self._aggregated(arrays[0]), kind)
        if self._compares is not None and call.wanted == "condition":
            return self._compared(arrays)
        if len(arrays) == 1 and not call.volatile:
            distinct = arrays[0].dictionary_encode()
            results = pa.array(self._rows([distinct.dictionary.to_pylist()]), kind)
            if distinct.null_count:
                nothing = pa.array(self._rows([[None]]), kind)
                indices = pc.fill_null(distinct.indices, len(results))
                return pa.concat_arrays([results, nothing]).take(indices)
            return results.take(distinct.indices)
        return pa.array(self._rows([array.to_pylist() for array in arrays]), kind)

    def _rows(self, columns: Sequence[Sequence[Any]]) -> list[Any]:
        """The results of rows that are given by columns."""
        result = RESULTS[self._call.wanted]
        expression = self._call.expression
        function: Callable[[Row], Value] = (
            (lambda row: bound(row[0])) if expression is None else expression.function
        )
        values = [
            self._values(column, kind)
            for column, kind in zip(columns, self._call.kinds, strict=True)
        ]
        volatile, known = self._call.volatile, self._known
        if len(known) > _REMEMBERED or (expression is not None and self._is_late(expression)):
            known.clear()
        found = []
        for row, key in zip(zip(*values, strict=True), zip(*columns, strict=True), strict=True):
            if not volatile and key in known:
                found.append(known[key])
                continue
            try:
                done = result(function(row))
            except (Fault, ArithmeticError):
                done = None
            if not volatile:
                known[key] = done
            found.append(done)
        return found

    def _is_late(self, expression: Expression) -> bool:
        """Whether what is known was found out for another time."""
        before, self._now = self._now, expression.clock.now if expression.timed else ""
        return before != self._now

    def _values(self, column: Sequence[Any], kind: Kind) -> Sequence[Value | None]:
        if kind == "id":
            return self._lookup.terms(column)
        if kind == "text":
            return [None if cell is None else term_of(cell) for cell in column]
        return column

    def _compared(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """A comparison of two terms: by arrays where their kinds decide it."""
        assert self._compares is not None, "it is asked of comparisons"
        sign, sides = self._compares
        if not all(kind == "id" for kind in self._call.kinds):
            return pa.array(self._rows([a.to_pylist() for a in arrays]), pa.bool_())
        bound = np.ones(len(arrays[0]), bool)
        columns: list[Ids] = []
        constants = [*self._lookup.constants]
        for side in sides:
            if isinstance(side, int):
                array = arrays[side]
                if array.null_count:
                    bound &= array.is_valid().to_numpy(zero_copy_only=False)
                columns.append(pc.fill_null(array, 0).to_numpy())
            else:
                constants.append(side)
                columns.append(np.full(len(arrays[0]), -len(constants), np.int64))
        # What is unbound may be the only term, and then 0 is nobody's id.
        if not len(self._lookup.dictionary):
            return pa.array(self._rows([a.to_pylist() for a in arrays]), pa.bool_())
        (left, left_numbers), (right, right_numbers) = (
            self._kinds.of(column, constants) for column in columns
        )
        numbers = (left == _NUMBER) & (right == _NUMBER)
        compare = _ORDERINGS[sign]
        results = compare(left_numbers, right_numbers)
        decided = numbers
        if sign in ("=", "!="):
            # One is an IRI or blank node, or both are plain strings: then terms are equal or not.
            # A plain string is no number.
            plain = (left != _OTHER) & (right != _OTHER) & ~numbers
            decided = plain | numbers | (left == _NODE) | (right == _NODE)
            same = self._same(sides, columns, constants)
            results = np.where(numbers, results, same if sign == "=" else ~same)
        left_over = np.flatnonzero(bound & ~decided)
        if len(left_over):
            chosen = [a.take(pa.array(left_over)).to_pylist() for a in arrays]
            found = self._rows(chosen)
            results = results.astype(bool)
            results[left_over] = [bool(one) for one in found]
            bound[left_over] = [one is not None for one in found]
        return pa.array(results.astype(bool), mask=~bound)

    def _same(
        self, sides: Sequence[int | Constant], columns: Sequence[Ids], constants: Sequence[Constant]
    ) -> npt.NDArray[np.bool_]:
        """Whether terms are the same; a constant has the id that the data or the query give it."""
        ids = []
        for side, column in zip(sides, columns, strict=True):
            if isinstance(side, int):
                ids.append(column)
                continue
            known = self._lookup.dictionary.find(side)
            if known is None:
                known = -1 - constants.index(side)
            ids.append(np.full(len(column), known, np.int64))
        return np.asarray(ids[0] == ids[1])

    def _aggregated(self, lists: pa.Array) -> list[str | None]:
        function, separator = AGGREGATES[self._call.aggregate], self._call.separator
        kind = self._call.kinds[0]
        found: list[str | None] = []
        for members in lists.to_pylist():
            try:
                values = self._values([m for m in members or () if m is not None], kind)
                found.append(text(function([v for v in values if v is not None], separator)))
            except (Fault, ArithmeticError):
                found.append(None)
        return found


def bound(value: Value | None) -> Value:
    if value is None:
        raise Fault
    return value


RESULTS: dict[str, Callable[[Value], Any]] = {
    "condition": truth,
    "value": text,
    "key": sort_key,
}
