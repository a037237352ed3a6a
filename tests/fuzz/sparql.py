"""Random SPARQL queries over random data, compared with pyoxigraph and with exact arithmetic.

Patterns with unusual variable names use `SELECT *`, so the variables in scope are compared too.
Numbers that pyoxigraph does not compute exactly are compared with Python's fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyoxigraph as ox
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

from corollary import KnowledgeBase
from corollary.errors import InvalidInput
from corollary.lang.syntax import Literal
from corollary.query.results import Solutions
from tests.fuzz.lane import Figures
from tests.query.sparql_strategies import (
    PREFIXES,
    data,
    patterns,
    renamed,
    renamings,
    values_blocks,
)
from tests.query.test_random import loaded

EXAMPLES = 15
_CONTEXT = Context(prec=10_000)
Row = frozenset[tuple[str, str]]  # the bindings of a solution


def _ours(kb: KnowledgeBase, query: str) -> tuple[set[str], Counter[Row]] | None:
    try:
        found = kb.query(PREFIXES + query)
    except InvalidInput:
        return None
    assert isinstance(found, Solutions)
    rows = (zip(found.variables, row.values(), strict=True) for row in found.to_pylist())
    if not found.variables:
        return set(), Counter({frozenset(): len(found)}) + Counter()
    return set(found.variables), Counter(
        frozenset((name, cell) for name, cell in row if cell is not None) for row in rows
    )


def _theirs(store: ox.Store, query: str) -> tuple[set[str], Counter[Row]] | None:
    try:
        found: Any = store.query(PREFIXES + query)
    except SyntaxError:
        return None
    names = [variable.value for variable in found.variables]
    return set(names), Counter(
        frozenset((name, str(row[name])) for name in names if row[name] is not None)
        for row in found
    )


@st.composite
def _queries(draw: st.DrawFn) -> str:
    pattern = draw(patterns())
    trailing = f" {draw(values_blocks())}" if draw(st.booleans()) else ""
    bind = " BIND(-1 AS ?d)" if draw(st.integers(0, 3)) == 0 else ""
    return renamed(f"SELECT * {{ {pattern}{bind} }}{trailing}", draw(renamings()))


@st.composite
def _sums(draw: st.DrawFn, depth: int = 4) -> tuple[str, Fraction]:
    """An expression over integers and decimals, and its value."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        digits = draw(st.sampled_from([1, 5, 18, 19, 40, 400, 4_100]))
        number = draw(st.integers(-(10**digits), 10**digits))
        places = draw(st.sampled_from([0, 0, 1, 30]))
        text = format(Decimal(number).scaleb(-places, _CONTEXT), "f")
        return f"({text})", Fraction(number, 10**places)
    left, right = draw(_sums(depth - 1)), draw(_sums(depth - 1))
    sign = draw(st.sampled_from("+-*"))
    values: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
        "+": lambda one, two: one + two,
        "-": lambda one, two: one - two,
        "*": lambda one, two: one * two,
    }
    return f"({left[0]} {sign} {right[0]})", values[sign](left[1], right[1])


def run(number: int) -> Figures:
    """Check the queries of one seed."""
    figures = Counter(queries=0, refused=0, sums=0)
    quiet = settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

    @seed(number)
    @quiet
    @given(data(), st.lists(_queries(), min_size=1, max_size=4))
    def check_queries(turtle: str, queries: list[str]) -> None:
        kb, store = loaded(turtle)
        for query in queries:
            note(query)
            expected = _theirs(store, query)
            assert _ours(kb, query) == expected
            figures["queries" if expected is not None else "refused"] += 1

    @seed(number)
    @quiet
    @given(_sums())
    def check_sums(drawn: tuple[str, Fraction]) -> None:
        expression, expected = drawn
        found = KnowledgeBase().query(f"SELECT ({expression} AS ?x) {{}}")
        assert isinstance(found, Solutions)
        ((value,),) = list(found)
        assert isinstance(value, Literal)
        assert Fraction(Decimal(value.lexical)) == expected
        figures["sums"] += 1

    check_queries()
    check_sums()
    return dict(figures)
