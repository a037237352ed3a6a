"""Vectorized evaluation of expressions: the functions that DuckDB calls with whole columns.

An expression is evaluated once per distinct row of its inputs. Comparisons of numbers, IRIs and
strings, the bulk of all filters, are decided by arrays of term kinds and numeric values, which are
computed once per term.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary
from corollary.core.kinds import (
    INTEGER_NUMBER,
    NODE,
    NUMBER,
    OTHER,
    Kinds,
    kind_of,
)
from corollary.core.terms import term_of, text_of
from corollary.lang.builtins import AGGREGATES, arithmetic
from corollary.lang.forms import Row
from corollary.lang.operands import Fault, Value, truth
from corollary.lang.syntax import Constant
from corollary.query.expressions import Expression
from corollary.query.plan import Call, Kind
from corollary.query.values import sort_key, text

Ids = npt.NDArray[np.int64]

_CACHE_SIZE = 1 << 18  # cached terms and results
_OWN, _UNKNOWN = -1, -2  # stand-ins for the ids of terms that the data lack
_LARGEST_SUM = 2.0**62
_ORDERINGS: dict[str, Callable[[Any, Any], npt.NDArray[np.bool_]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class Lookup:
    """Maps ids to terms: those of the dictionary, and negative ids of the query's constants."""

    def __init__(self, dictionary: Dictionary, constants: Sequence[Constant]) -> None:
        self.dictionary = dictionary
        self.constants = constants
        self._terms: dict[int, Constant] = {}

    def terms(self, ids: Sequence[int | None]) -> list[Constant | None]:
        """The terms of ids."""
        cache = self._terms
        missing = list({i for i in ids if i is not None and i not in cache})
        if missing:
            if len(cache) > _CACHE_SIZE:
                cache.clear()
                missing = list({i for i in ids if i is not None})
            stored = [i for i in missing if i >= 0]
            texts = self.dictionary.texts(np.array(stored, np.int64)).to_pylist()
            cache.update(zip(stored, map(term_of, texts), strict=True))
            cache.update((i, self.constants[-1 - i]) for i in missing if i < 0)
        return [None if i is None else cache[i] for i in ids]

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids; null stays null."""
        stored = self.dictionary.texts_from(0)
        if not self.constants:
            return stored.take(ids)
        constants = pa.array([text_of(term) for term in self.constants], pa.large_string())
        is_constant = pc.less(ids, 0)
        null = pa.scalar(None, pa.int64())
        return pc.coalesce(
            stored.take(pc.if_else(is_constant, null, ids)),
            constants.take(pc.if_else(is_constant, pc.subtract(-1, ids), null)),
        )


class Operand(NamedTuple):
    """One side of a comparison, row by row."""

    ids: Ids
    kinds: npt.NDArray[np.int8]
    numbers: npt.NDArray[np.float64]

    def are_numbers(self) -> npt.NDArray[np.bool_]:
        numbers: npt.NDArray[np.bool_] = (self.kinds == NUMBER) | (self.kinds == INTEGER_NUMBER)
        return numbers


class Evaluator:
    """Evaluates a call over columns."""

    def __init__(self, call: Call, lookup: Lookup, kinds: Kinds) -> None:
        self._call = call
        self._lookup = lookup
        self._kinds = kinds
        self._cache: dict[Any, Any] = {}
        self._now = ""
        self._compares = None if call.expression is None else call.expression.compares

    def __call__(self, *columns: pa.ChunkedArray) -> pa.Array:
        """One result per row; null where evaluation is an error."""
        call = self._call
        arrays = [column.combine_chunks() for column in columns]
        kind = pa.bool_() if call.result == "condition" else pa.string()
        if call.result == "aggregate":
            return pa.array(self._aggregate(arrays[0]), kind)
        if self._compares is not None and call.result == "condition":
            return self._compare(arrays)
        if len(arrays) == 1 and not call.volatile:
            distinct = arrays[0].dictionary_encode()
            results = pa.array(self._evaluate_rows([distinct.dictionary.to_pylist()]), kind)
            if distinct.null_count:
                unbound = pa.array(self._evaluate_rows([[None]]), kind)
                indices = pc.fill_null(distinct.indices, len(results))
                return pa.concat_arrays([results, unbound]).take(indices)
            return results.take(distinct.indices)
        return pa.array(self._evaluate_rows([array.to_pylist() for array in arrays]), kind)

    def _evaluate_rows(self, columns: Sequence[Sequence[Any]]) -> list[Any]:
        """Evaluate row by row; each distinct row once."""
        convert = RESULTS[self._call.result]
        expression = self._call.expression
        function: Callable[[Row], Value] = (
            (lambda row: require_bound(row[0])) if expression is None else expression.function
        )
        values = [
            self._values(column, kind)
            for column, kind in zip(columns, self._call.kinds, strict=True)
        ]
        volatile, cache = self._call.volatile, self._cache
        if len(cache) > _CACHE_SIZE or (expression is not None and self._is_stale(expression)):
            cache.clear()
        results = []
        for row, key in zip(zip(*values, strict=True), zip(*columns, strict=True), strict=True):
            if not volatile and key in cache:
                results.append(cache[key])
                continue
            try:
                value = convert(function(row))
            except (Fault, ArithmeticError):
                value = None
            if not volatile:
                cache[key] = value
            results.append(value)
        return results

    def _is_stale(self, expression: Expression) -> bool:
        """Whether cached results belong to an earlier NOW()."""
        before, self._now = self._now, expression.clock.now if expression.timed else ""
        return before != self._now

    def _values(self, column: Sequence[Any], kind: Kind) -> Sequence[Value | None]:
        if kind == "id":
            return self._lookup.terms(column)
        if kind == "text":
            return [None if cell is None else term_of(cell) for cell in column]
        return column

    def _compare(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """Compare two terms: vectorized where their kinds decide, else row by row."""
        assert self._compares is not None, "only comparisons get here"
        sign, sides = self._compares
        if not all(kind == "id" for kind in self._call.kinds):
            return pa.array(self._evaluate_rows([a.to_pylist() for a in arrays]), pa.bool_())
        bound = np.ones(len(arrays[0]), bool)
        for array in arrays:
            if array.null_count:
                bound &= array.is_valid().to_numpy(zero_copy_only=False)
        one, two = (self._operand(side, arrays) for side in sides)
        are_numbers = one.are_numbers() & two.are_numbers()
        results = _ORDERINGS[sign](one.numbers, two.numbers)
        decided = are_numbers
        if sign in ("=", "!="):
            # If one is an IRI or blank node, or both are known and not both numbers, term identity
            # decides. A term without an id differs from all terms with one.
            are_known = (one.kinds != OTHER) & (two.kinds != OTHER)
            decided = are_known | (one.kinds == NODE) | (two.kinds == NODE)
            same = one.ids == two.ids
            results = np.where(are_numbers, results, same if sign == "=" else ~same)
        undecided = np.flatnonzero(bound & ~decided)
        results = results.astype(bool)
        if len(undecided):
            chosen = [a.take(pa.array(undecided)).to_pylist() for a in arrays]
            outcomes = self._evaluate_rows(chosen)
            results[undecided] = [bool(outcome) for outcome in outcomes]
            bound[undecided] = [outcome is not None for outcome in outcomes]
        return pa.array(results, mask=~bound)

    def _operand(self, side: int | Constant, arrays: Sequence[pa.Array]) -> Operand:
        """One side of a comparison: a column, or a constant in all rows."""
        size, dictionary = len(arrays[0]), self._lookup.dictionary
        if not isinstance(side, int):
            kind, number = kind_of(text_of(side))
            term_id = dictionary.find(side)
            ids = np.full(size, _UNKNOWN if term_id is None else term_id, np.int64)
            return Operand(ids, np.full(size, kind, np.int8), np.full(size, number))
        column = pc.fill_null(arrays[side], 0).to_numpy()
        # The query's constants are few; compare them row by row.
        is_own = (column < 0) | (column >= len(dictionary))
        ids = np.where(is_own, _OWN, column)
        if not len(dictionary):
            return Operand(ids, np.full(size, OTHER, np.int8), np.zeros(size))
        kinds, numbers = self._kinds.of(np.where(is_own, 0, column), dictionary)
        return Operand(ids, np.where(is_own, OTHER, kinds).astype(np.int8), numbers)

    def _aggregate(self, lists: pa.Array) -> list[str | None]:
        function, separator = AGGREGATES[self._call.aggregate], self._call.separator
        kind = self._call.kinds[0]
        sums = self._integer_sums(lists) if kind == "id" else None
        if sums is not None:
            return sums
        results: list[str | None] = []
        for members in lists.to_pylist():
            try:
                values = self._values([m for m in members or () if m is not None], kind)
                results.append(text(function([v for v in values if v is not None], separator)))
            except (Fault, ArithmeticError):
                results.append(None)
        return results

    def _integer_sums(self, lists: pa.Array) -> list[str | None] | None:
        """SUM and AVG of integers only; None if other terms occur or a sum may overflow."""
        ids = lists.flatten()
        if self._call.aggregate not in ("SUM", "AVG") or ids.null_count or lists.null_count:
            return None
        members = ids.to_numpy()
        lengths = pc.list_value_length(lists).to_numpy()
        if not len(members) or not lengths.all() or members.min() < 0:
            return None
        kinds, numbers = self._kinds.of(members, self._lookup.dictionary)
        if (kinds != INTEGER_NUMBER).any() or np.abs(numbers).sum() >= _LARGEST_SUM:
            return None
        starts = np.cumsum(lengths) - lengths
        sums = np.add.reduceat(numbers.astype(np.int64), starts).tolist()
        if self._call.aggregate == "SUM":
            return [text(total) for total in sums]
        pairs = zip(sums, lengths.tolist(), strict=True)
        return [text(arithmetic("/", total, number)) for total, number in pairs]


def require_bound(value: Value | None) -> Value:
    """The value itself; raises `Fault` if it is unbound."""
    if value is None:
        raise Fault
    return value


RESULTS: dict[str, Callable[[Value], Any]] = {
    "condition": truth,
    "value": text,
    "key": sort_key,
}
