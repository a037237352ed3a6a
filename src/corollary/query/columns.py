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
from corollary.query.functions import arithmetic
from corollary.query.plan import Call, Kind
from corollary.query.values import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
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
_NODE, _STRING, _NUMBER, _OTHER, _INTEGER = 1, 2, 3, 4, 5
_TYPED = re.compile(r'"([^"\\]*)"\^\^<(' + re.escape(XSD) + r"[A-Za-z]+)>")
_OWN, _UNKNOWN = -1, -2  # in the place of ids: of terms that the data lack
_LARGEST_SUM = 2.0**62
_EXACT_DIGITS = 15  # doubles tell apart all decimals of so many digits
# Most literals that are compared are like this, and Arrow reads them together.
_PLAIN_INTEGER = rf'^"(?P<digits>-?[0-9]{{1,15}})"\^\^<{re.escape(XSD)}integer>$'
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

    def of(self, ids: Ids) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
        """The kinds of the dictionary's terms, and the numbers of those that are some."""
        if len(self._kinds) < len(self._dictionary):
            room = len(self._dictionary) + len(self._kinds) // 2
            self._kinds = np.concatenate([self._kinds, np.zeros(room - len(self._kinds), np.int8)])
            self._numbers = np.concatenate([self._numbers, np.zeros(room - len(self._numbers))])
        kinds = self._kinds[ids]
        if not kinds.all():
            self._find(np.unique(ids[kinds == 0]))
            kinds = self._kinds[ids]
        return kinds, self._numbers[ids]

    def _find(self, ids: Ids) -> None:
        texts = self._dictionary.texts(ids)
        digits = pc.struct_field(pc.extract_regex(texts, _PLAIN_INTEGER), "digits")
        plain = pc.is_valid(digits).to_numpy(zero_copy_only=False)
        self._kinds[ids[plain]] = _INTEGER
        self._numbers[ids[plain]] = digits.drop_null().cast(pa.int64()).to_numpy()
        others = texts.filter(pc.invert(pa.array(plain))).to_pylist()
        found = [kind_of(text) for text in others]
        self._kinds[ids[~plain]] = [kind for kind, _ in found]
        self._numbers[ids[~plain]] = [number for _, number in found]


def kind_of(text: str) -> tuple[int, float]:
    """The kind of a term, and its number if a double tells it from all others.

    >>> kind_of("<a>"), kind_of('"x"'), kind_of('"x"@en')
    ((1, 0.0), (2, 0.0), (4, 0.0))
    >>> kind_of('"07"^^<http://www.w3.org/2001/XMLSchema#integer>')
    (5, 7.0)
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
            return _INTEGER if match[2] == INTEGER else _NUMBER, float(number)
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
        size, known = len(arrays[0]), len(self._lookup.dictionary)
        bound = np.ones(size, bool)
        ids: list[Ids] = []
        kinds: list[npt.NDArray[np.int8]] = []
        numbers: list[npt.NDArray[np.float64]] = []
        for side in sides:
            if isinstance(side, int):
                array = arrays[side]
                if array.null_count:
                    bound &= array.is_valid().to_numpy(zero_copy_only=False)
                column = pc.fill_null(array, 0).to_numpy()
                # The query's own terms are few, and compared one by one.
                own = (column < 0) | (column >= known)
                found, values = self._kinds.of(np.where(own, 0, column)) if known else (
                    np.zeros(size, np.int8), np.zeros(size))  # fmt: skip
                kinds.append(np.where(own, _OTHER, found).astype(np.int8))
                numbers.append(values)
                ids.append(np.where(own, _OWN, column))
            else:
                kind, value = kind_of(text_of(side))
                term_id = self._lookup.dictionary.find(side)
                kinds.append(np.full(size, kind, np.int8))
                numbers.append(np.full(size, value))
                ids.append(np.full(size, _UNKNOWN if term_id is None else term_id, np.int64))
        are_numbers = np.logical_and(*((k == _NUMBER) | (k == _INTEGER) for k in kinds))
        results = _ORDERINGS[sign](*numbers)
        decided = are_numbers
        if sign in ("=", "!="):
            # One is an IRI or blank node, or both are known and not both numbers: then terms are
            # equal or not. What has no id differs from all that have one.
            (left, right), one_other = kinds, (kinds[0] == _OTHER) | (kinds[1] == _OTHER)
            decided = ~one_other | (left == _NODE) | (right == _NODE)
            same = ids[0] == ids[1]
            results = np.where(are_numbers, results, same if sign == "=" else ~same)
        left_over = np.flatnonzero(bound & ~decided)
        results = results.astype(bool)
        if len(left_over):
            chosen = [a.take(pa.array(left_over)).to_pylist() for a in arrays]
            answers = self._rows(chosen)
            results[left_over] = [bool(one) for one in answers]
            bound[left_over] = [one is not None for one in answers]
        return pa.array(results, mask=~bound)

    def _aggregated(self, lists: pa.Array) -> list[str | None]:
        function, separator = AGGREGATES[self._call.aggregate], self._call.separator
        kind = self._call.kinds[0]
        sums = self._sums(lists) if kind == "id" else None
        if sums is not None:
            return sums
        found: list[str | None] = []
        for members in lists.to_pylist():
            try:
                values = self._values([m for m in members or () if m is not None], kind)
                found.append(text(function([v for v in values if v is not None], separator)))
            except (Fault, ArithmeticError):
                found.append(None)
        return found

    def _sums(self, lists: pa.Array) -> list[str | None] | None:
        """SUM and AVG of nothing but integers, where no sum is too large for an array."""
        ids = lists.flatten()
        if self._call.aggregate not in ("SUM", "AVG") or ids.null_count or lists.null_count:
            return None
        members = ids.to_numpy()
        lengths = pc.list_value_length(lists).to_numpy()
        if not len(members) or not lengths.all() or members.min() < 0:
            return None
        kinds, numbers = self._kinds.of(members)
        if (kinds != _INTEGER).any() or np.abs(numbers).sum() >= _LARGEST_SUM:
            return None
        starts = np.cumsum(lengths) - lengths
        sums = np.add.reduceat(numbers.astype(np.int64), starts).tolist()
        if self._call.aggregate == "SUM":
            return [text(total) for total in sums]
        pairs = zip(sums, lengths.tolist(), strict=True)
        return [text(arithmetic("/", total, number)) for total, number in pairs]


def bound(value: Value | None) -> Value:
    if value is None:
        raise Fault
    return value


RESULTS: dict[str, Callable[[Value], Any]] = {
    "condition": truth,
    "value": text,
    "key": sort_key,
}
