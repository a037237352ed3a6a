"""Aggregate functions over groups of term ids.

Rows come with the number of their group. Whole numbers are counted and summed in 64 bits with a
check that nothing overflows; other sums are exact in Python, once for each group that needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.expressions import DOUBLE, ERROR, EXACT, TERM, Column, term_values
from corollary.lang.printer import Printer
from corollary.lang.syntax import Constant, Literal
from corollary.lang.values import Number, literal_of, sum_of, value_of

NO_VALUE = np.uint32(2**32 - 1)  # no term has this id (`dictionary.MAX_TERMS`)
_EXACT_SUM_LIMIT = 2.0**62


def aggregate(
    function: str,
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
    >>> dictionary.terms(aggregate("sum", ids, np.array([0, 0, 1]), 2, dictionary))[0].lexical
    '3'
    """
    if number_of_groups == 0:
        return np.zeros(0, np.uint32)
    starts = np.searchsorted(groups, np.arange(number_of_groups))
    ends = np.append(starts[1:], len(ids))
    counts = ends - starts if weights is None else np.add.reduceat(weights, starts)
    if function == "count":
        return _integers(counts, dictionary)
    distinct, place = np.unique(ids, return_inverse=True)
    terms = list(dictionary.terms(distinct.tolist()))
    values = term_values(terms)
    if function in ("min", "max"):
        return _extremes(function, distinct, terms, values, place, starts)
    exact = values.kind[place] == EXACT
    whole = np.logical_and.reduceat(exact & _whole(terms, values)[place], starts)
    numbers = values.num[place]
    estimates = np.abs(numbers.astype(np.float64))
    if weights is not None:
        numbers, estimates = numbers * weights, estimates * weights
    estimate = np.add.reduceat(estimates, starts)
    whole &= estimate < _EXACT_SUM_LIMIT
    sums = np.add.reduceat(np.where(exact, numbers, 0), starts)
    if function == "sum" and whole.all():
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
        if function == "avg":
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


def _extremes(
    function: str,
    distinct: Ids,
    terms: Sequence[Constant],
    values: Column,
    place: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
) -> Ids:
    """Rank the distinct terms by value, then by text; the least or greatest rank of each group."""
    kinds = np.where(values.kind == DOUBLE, EXACT, values.kind).astype(np.int64)
    text = Printer().term
    keys = [value_of(term) for term in terms]
    for at, key in enumerate(keys):
        if values.kind[at] == TERM or key != key:
            kinds[at] = ERROR
    usable = [at for at in range(len(terms)) if kinds[at] != ERROR]
    # Kinds first, so that only values of one kind are compared with each other.
    by_kind: dict[int, list[int]] = {}
    for at in usable:
        by_kind.setdefault(int(kinds[at]), []).append(at)
    rank = np.zeros(len(terms), np.int64)
    next_rank = 0
    for members in by_kind.values():
        members.sort(key=lambda at: (keys[at], text(terms[at])))
        before = None
        for at in members:
            if before is None or keys[at] != keys[before]:
                next_rank += 1
                before = at
            rank[at] = next_rank
    # Of terms with equal value, the first by text within the group.
    order = {at: n for n, at in enumerate(sorted(usable, key=lambda at: text(terms[at])))}
    texts = np.array([order.get(at, 0) for at in range(len(terms))], np.int64)
    row_kind, row_rank = kinds[place], rank[place]
    low, high = np.minimum.reduceat(row_kind, starts), np.maximum.reduceat(row_kind, starts)
    reduce = np.minimum if function == "min" else np.maximum
    extreme = reduce.reduceat(row_rank, starts)
    lengths = np.diff(np.append(starts, len(place)))
    candidates = row_rank == np.repeat(extreme, lengths)
    first_text = np.minimum.reduceat(np.where(candidates, texts[place], len(terms)), starts)
    by_text = np.zeros(len(terms) + 1, np.int64)
    for at, n in order.items():
        by_text[n] = at
    valid = (low == high) & (low != ERROR)
    found = distinct[by_text[np.where(valid, first_text, 0)]]
    return np.where(valid, found, NO_VALUE).astype(np.uint32)
