"""Aggregate functions over groups of term ids.

Rows come with the number of their group. Whole numbers are counted and summed in 64 bits with a
check that nothing overflows; other sums are exact in Python, once for each group that needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.compile import AggregateFunction
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.expressions import EXACT, Column, term_values
from corollary.lang.builtins import concatenated
from corollary.lang.operands import Fault, ordering
from corollary.lang.printer import Printer
from corollary.lang.syntax import Constant, Literal
from corollary.lang.values import Number, literal_of, sum_of, value_of

NO_VALUE = np.uint32(2**32 - 1)  # no term has this id (`dictionary.MAX_TERMS`)
_EXACT_SUM_LIMIT = 2.0**62

_Places = npt.NDArray[np.int64]


def aggregate(
    function: AggregateFunction,
    ids: Ids,
    groups: npt.NDArray[np.int64],
    number_of_groups: int,
    dictionary: Dictionary,
    weights: npt.NDArray[np.int64] | None = None,
) -> Ids:
    """The id of each group's result, `NO_VALUE` where it has none; `groups` is in sorted order.

    `weights` say how many instances each row stands for, if not one.

    >>> from corollary.lang.syntax import XSD, Literal
    >>> dictionary = Dictionary()
    >>> ids = dictionary.encode([Literal(text, XSD + "integer") for text in ("1", "2", "5")])
    >>> total = AggregateFunction("sum", 0)
    >>> dictionary.terms(aggregate(total, ids, np.array([0, 0, 1]), 2, dictionary))[0].lexical
    '3'
    """
    if number_of_groups == 0:
        return np.zeros(0, np.uint32)
    if function.distinct:
        keys = np.unique(groups.astype(np.uint64) << np.uint64(32) | ids)
        groups, ids = (keys >> np.uint64(32)).astype(np.int64), keys.astype(np.uint32)
        weights = None
    starts = np.searchsorted(groups, np.arange(number_of_groups))
    ends = np.append(starts[1:], len(ids))
    counts = ends - starts if weights is None else np.add.reduceat(weights, starts)
    if function.name == "count":
        return _integers(counts, dictionary)
    distinct, place = np.unique(ids, return_inverse=True)
    terms = list(dictionary.terms(distinct.tolist()))
    match function.name:
        case "min" | "max":
            return _extremes(function.name, distinct, terms, place, starts)
        case "sample":
            rank, order = _order(terms)
            return distinct[order[np.minimum.reduceat(rank[place], starts)]]
        case "group_concat":
            return _joined(function.separator, terms, place, weights, starts, dictionary)
    values = term_values(terms)
    exact = values.kind[place] == EXACT
    whole = np.logical_and.reduceat(exact & _whole(terms, values)[place], starts)
    numbers = values.num[place]
    estimates = np.abs(numbers.astype(np.float64))
    if weights is not None:
        numbers, estimates = numbers * weights, estimates * weights
    estimate = np.add.reduceat(estimates, starts)
    whole &= estimate < _EXACT_SUM_LIMIT
    sums = np.add.reduceat(np.where(exact, numbers, 0), starts)
    if function.name == "sum" and whole.all():
        return _integers(sums, dictionary)
    out = np.full(number_of_groups, NO_VALUE, np.uint32)
    totals: dict[int, Literal] = {}
    for group in range(number_of_groups):
        if whole[group]:
            total: Number | None = int(sums[group])
        else:
            rows = slice(starts[group], ends[group])
            places = place[rows] if weights is None else np.repeat(place[rows], weights[rows])
            total = _exact_sum(terms[at] for at in places)
        if total is None:
            continue
        if function.name == "avg":
            count = int(counts[group])
            total = total / count if isinstance(total, float) else Fraction(total) / count
        totals[group] = literal_of(total)
    # In one batch: a partial dictionary fetches unknown terms from a table.
    out[list(totals)] = dictionary.encode(totals.values())
    return out


def _exact_sum(terms: Iterable[Constant]) -> Number | None:
    """Sum the values of terms; None if one is not a number."""
    values = [value_of(term) for term in terms]
    numbers = [v for v in values if isinstance(v, Number) and not isinstance(v, bool)]
    return sum_of(numbers) if len(numbers) == len(values) else None


def _integers(numbers: npt.NDArray[np.int64], dictionary: Dictionary) -> Ids:
    distinct, place = np.unique(numbers, return_inverse=True)
    return dictionary.encode(map(literal_of, distinct.tolist()))[place]


def _whole(terms: Sequence[Constant], values: Column) -> npt.NDArray[np.bool_]:
    """Which terms are integers by type: their sum is an integer, while 1.0 makes it a decimal."""
    integers = np.array([isinstance(value_of(term), int) for term in terms], bool)
    fitting: npt.NDArray[np.bool_] = integers & (values.den == 1)
    return fitting


def _order(terms: Sequence[Constant]) -> tuple[_Places, _Places]:
    """The place of each term in the order of texts, and the terms in this order."""
    text = Printer().term
    order = np.array(sorted(range(len(terms)), key=lambda at: text(terms[at])), np.int64)
    place = np.empty(len(terms), np.int64)
    place[order] = np.arange(len(terms))
    return place, order


def _joined(
    separator: str,
    terms: Sequence[Constant],
    place: _Places,
    weights: _Places | None,
    starts: _Places,
    dictionary: Dictionary,
) -> Ids:
    """The texts of each group in the order of its terms; none if one is a blank node."""
    rank, order = _order(terms)
    rows = rank[place]
    counts = np.ones(len(rows), np.int64) if weights is None else weights
    found: dict[int, Literal] = {}
    for group, (start, end) in enumerate(pairwise([*starts.tolist(), len(rows)])):
        ranks = np.sort(np.repeat(rows[start:end], counts[start:end]))
        members = [terms[at] for at in order[ranks].tolist()]
        with suppress(Fault):
            found[group] = Literal(concatenated(members, separator))
    out = np.full(len(starts), NO_VALUE, np.uint32)
    out[list(found)] = dictionary.encode(found.values())
    return out


def _extremes(
    function: str,
    distinct: Ids,
    terms: Sequence[Constant],
    place: _Places,
    starts: _Places,
) -> Ids:
    """Rank the distinct terms by value, then by text; the least or greatest rank of each group."""
    spaces: dict[str, int] = {}
    members: dict[str, list[tuple[Any, int]]] = {}  # by space: keys and terms
    kinds = np.zeros(len(terms), np.int64)  # 0: a term that has no order
    for at, term in enumerate(terms):
        found = ordering(term)
        if found is not None:
            space, key = found
            kinds[at] = spaces.setdefault(space, len(spaces) + 1)
            members.setdefault(space, []).append((key, at))
    rank = np.zeros(len(terms), np.int64)
    for keyed in members.values():
        keyed.sort(key=lambda pair: pair[0])
        number, before = 0, None
        for key, at in keyed:
            number += before is None or key != before
            before, rank[at] = key, number
    # Of terms with equal value, the first by text within the group.
    texts, by_text = _order(terms)
    row_kind, row_rank = kinds[place], rank[place]
    low, high = np.minimum.reduceat(row_kind, starts), np.maximum.reduceat(row_kind, starts)
    reduce = np.minimum if function == "min" else np.maximum
    extreme = reduce.reduceat(row_rank, starts)
    lengths = np.diff(np.append(starts, len(place)))
    candidates = row_rank == np.repeat(extreme, lengths)
    first_text = np.minimum.reduceat(np.where(candidates, texts[place], len(terms)), starts)
    valid = (low == high) & (low != 0)
    found_ids = distinct[by_text[np.where(valid, first_text, 0)]]
    return np.where(valid, found_ids, NO_VALUE).astype(np.uint32)
