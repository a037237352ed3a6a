"""Aggregates over groups of ids agree with the oracle, group by group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.compile import AggregateFunction
from corollary.core.dictionary import Dictionary
from corollary.lang import reference
from corollary.lang.syntax import AGGREGATE_FUNCTIONS, XSD, Constant, Literal
from tests.core.test_expressions import constants, numbers

_like_each_other: st.SearchStrategy[Constant] = st.sampled_from(
    [
        *(Literal(text, XSD + "integer") for text in ("1", "01", "+1", "-1", "0", "2")),
        *(Literal(text, XSD + "decimal") for text in ("1.0", "1", "0.0", "-0.0", "0.5")),
        *(Literal(text, XSD + "double") for text in ("1", "1.0", "1e0", "-0.0", "0.0", "NaN")),
    ]
)
_group = st.one_of(
    st.lists(_like_each_other, min_size=1, max_size=6),
    st.lists(numbers, min_size=1, max_size=6),
    st.lists(constants, min_size=1, max_size=4),
    st.lists(st.sampled_from("abc").map(Literal), min_size=1, max_size=4),
)


@pytest.mark.parametrize("function", AGGREGATE_FUNCTIONS)
@given(st.lists(_group, max_size=4))
def test_oracle_aggregate(function: str, groups: list[list[Constant]]) -> None:
    dictionary = Dictionary()
    ids = dictionary.encode(term for group in groups for term in group)
    numbers_of_rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    called = AggregateFunction(function, 0)
    found = aggregate(called, ids, numbers_of_rows, len(groups), dictionary)
    assert [None if n == NO_VALUE else dictionary.term(n) for n in found.tolist()] == [
        reference.combine(function, group) for group in groups
    ]


@pytest.mark.parametrize("function", AGGREGATE_FUNCTIONS)
@given(st.lists(_group, max_size=3))
def test_oracle_distinct(function: str, groups: list[list[Constant]]) -> None:
    """Each term of a group counts once, also if its rows have weights."""
    dictionary = Dictionary()
    ids = dictionary.encode(term for group in groups for term in group)
    of_rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    called = AggregateFunction(function, 0, True, ", ")
    weights = np.full(len(ids), 2)
    for given_weights in (None, weights):
        found = aggregate(called, ids, of_rows, len(groups), dictionary, given_weights)
        assert [None if n == NO_VALUE else dictionary.term(n) for n in found.tolist()] == [
            reference.combine(function, list(dict.fromkeys(group)), ", ") for group in groups
        ]
