"""Random queries over random data: the answers are pyoxigraph's, and survive updates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from corollary import KnowledgeBase
from corollary.query.results import Answer
from tests.query.sparql_strategies import ALL_NODES, PREFIXES, data, paths, patterns

Row = tuple[str | None, ...]


def loaded(turtle: str) -> tuple[KnowledgeBase, ox.Store]:
    """The same triples in both."""
    store = ox.Store()
    store.load(f"{PREFIXES}{turtle}".encode(), format=ox.RdfFormat.TURTLE)
    kb = KnowledgeBase()
    insert(kb, store)
    return kb, store


def insert(kb: KnowledgeBase, store: ox.Store) -> None:
    """Insert what the store has; a table keeps the labels of blank nodes."""
    triples = [quad.triple for quad in store]
    columns = {
        "subject": [str(triple.subject) for triple in triples],
        "predicate": [str(triple.predicate) for triple in triples],
        "object": [str(triple.object) for triple in triples],
    }
    kb.load(pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns])))


def ours(kb: KnowledgeBase, query: str) -> Counter[Row]:
    return rows_of(kb.query(PREFIXES + query))


def rows_of(answer: object) -> Counter[Row]:
    """The rows of an answer, with how often each is there."""
    assert isinstance(answer, Answer)
    columns: list[list[str | None]] = [column.to_pylist() for column in answer.table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter([()] * len(answer))


def theirs(store: ox.Store, query: str) -> Counter[Row]:
    found: Any = store.query(PREFIXES + query)
    return Counter(tuple(None if t is None else str(t) for t in row) for row in found)


@given(data(), st.lists(patterns(1, paths()), min_size=1, max_size=4))
@settings(max_examples=30)
def test_paths(turtle: str, drawn: list[str]) -> None:
    kb, store = loaded(ALL_NODES + turtle)
    for pattern in drawn:
        # Which pairs a path finds more than once, pyoxigraph decides in its own way.
        query = f"SELECT DISTINCT ?a ?b ?c ?d {{ {pattern} }}"
        note(query)
        assert ours(kb, query) == theirs(store, query)


@given(data(), st.lists(patterns(), min_size=1, max_size=4))
@settings(max_examples=40)
def test_patterns(turtle: str, drawn: list[str]) -> None:
    kb, store = loaded(turtle)
    for pattern in drawn:
        query = f"SELECT ?a ?b ?c ?d {{ {pattern} }}"
        note(query)
        assert ours(kb, query) == theirs(store, query)


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_the_fuzzing_lane(number: int) -> None:
    from tests.fuzz.sparql import run

    assert run(number)["queries"] > 0
