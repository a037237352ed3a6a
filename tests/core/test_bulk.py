"""Columns of values equal the values one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core import bulk
from corollary.core.calls import computed
from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary
from corollary.lang.syntax import XSD, Literal
from tests.core.test_expressions import constants


def integer(text: str) -> Literal:
    return Literal(text, XSD + "integer")


def decimal(text: str) -> Literal:
    return Literal(text, XSD + "decimal")


_terms = st.one_of(
    constants,
    st.integers(-20, 20).map(lambda number: integer(str(number))),
    st.sampled_from(["007", "-0", "+5", "999999999999999", "1000000000000000"]).map(integer),
    st.decimals(-(10**6), 10**6, places=3).map(lambda number: decimal(str(number))),
    st.sampled_from(["0.50", "-.5", "-0.0", "5", "7.", "99999999999999.9", "1e3"]).map(decimal),
    st.text(max_size=4).map(Literal),
)
_arithmetic: st.SearchStrategy[CompiledExpression] = st.recursive(
    st.sampled_from(
        [
            0,
            1,
            integer("2"),
            integer("-03"),
            integer("999999999999999"),
            decimal("1.50"),
            decimal("-3"),
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*"), st.tuples(inner, inner)),
        st.tuples(st.sampled_from("+-"), st.tuples(inner)),
    ),
    max_leaves=6,
)


def _concat(parts: list[int | Literal]) -> CompiledExpression:
    return "CONCAT", tuple(parts)


_parts: list[int | Literal] = [0, 1, Literal('a"\\\n'), Literal("b")]
_texts: st.SearchStrategy[CompiledExpression] = st.lists(
    st.sampled_from(_parts), min_size=1, max_size=4
).map(_concat)


@given(st.one_of(_arithmetic, _texts), st.lists(st.tuples(_terms, _terms), min_size=1, max_size=8))
def test_bulk(expression: CompiledExpression, rows: list[tuple[Literal, Literal]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        results = []
        for least in (0, 1 << 40):
            patch.setattr(bulk, "LEAST_ROWS", least)
            dictionary = Dictionary()
            columns = {n: dictionary.encode([row[n] for row in rows]) for n in range(2)}
            ids, valid = computed(expression, columns, len(rows), dictionary)
            terms = np.array(dictionary.terms(ids[valid].tolist()), object)
            results.append((valid.tolist(), terms.tolist()))
    assert results[0] == results[1]
