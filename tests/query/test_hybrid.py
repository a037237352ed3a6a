"""Queries by answers to patterns: the same answers, and no more is derived than needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from corollary import KnowledgeBase, rules
from corollary.core.dictionary import Dictionary, Ids
from corollary.knowledge_base.results import triples_of
from corollary.lang.syntax import Constant
from corollary.query.engine import QueryEngine
from corollary.query.hybrid import HybridDatabase, Pattern
from corollary.query.plan import Source
from corollary.query.results import Answer
from tests.query.sparql_strategies import PREFIXES, data, patterns
from tests.query.test_random import loaded, rows_of


class Looked:
    """Answers that are looked up in a materialization, and what was asked."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.asked: list[tuple[Pattern, dict[int, int]]] = []
        self.given = 0

    @property
    def dictionary(self) -> Dictionary:
        return self.kb.state.dictionary

    def labels(self) -> Sequence[Constant]:
        return ()

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Ids:
        facts: Any = self.kb.state.reasoner.facts
        triples = np.stack(triples_of(facts, self.dictionary).columns, axis=1)
        for place, term in enumerate(pattern):
            if term is not None:
                triples = triples[triples[:, place] == term]
        for place, ids in admissible.items():
            triples = triples[np.isin(triples[:, place], ids)]
        self.asked.append((pattern, {place: len(ids) for place, ids in admissible.items()}))
        self.given += len(triples)
        return triples

    def tree(self, pattern: Pattern) -> str:
        return f"looked up: {pattern}"

    def stamp(self) -> int:
        return self.kb.version

    def graph_rows(self, source: Source) -> Ids:
        return np.zeros((0, 4 if source == "quads" else 3), np.uint32)

    def graphs(self) -> Sequence[int]:
        return ()

    def has_unread(self) -> bool:
        return False


@given(data(), st.lists(patterns(), min_size=1, max_size=3))
@settings(max_examples=20)
def test_equals_materialized(turtle: str, drawn: list[str]) -> None:
    kb, _ = loaded(turtle)
    hybrid = QueryEngine(HybridDatabase(Looked(kb)), kb.state.dictionary)
    for pattern in drawn:
        query = f"{PREFIXES} SELECT ?a ?b ?c ?d {{ {pattern} }}"
        note(query)
        assert rows_of(hybrid.query(query, {})) == rows_of(kb.query(query))


def test_what_is_bound_limits_what_is_asked() -> None:
    kb, _ = loaded("".join(f":s{n} :p :o{n} . :s{n} :q {n} .\n" for n in range(50)))
    answers = Looked(kb)
    engine = QueryEngine(HybridDatabase(answers), kb.state.dictionary)
    query = f"{PREFIXES} SELECT ?n {{ ?x :q ?n . ?x :p :o7 }}"
    found = engine.query(query, {})
    assert isinstance(found, Answer)
    assert [row["n"] for row in found.to_pylist()] == [
        '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    ]
    assert answers.given == 2  # one for each pattern
    assert answers.asked[1][1] == {0: 1}
    engine.query(query, {})
    assert len(answers.asked) == 2  # kept while nothing changes
    with kb.transaction() as tx:
        tx.insert("<http://e/new> <http://e/p> <http://e/o7> ; <http://e/q> 1 .")
    again = engine.query(query, {})
    assert isinstance(again, Answer)
    assert len(again) == 2
    assert len(answers.asked) == 4


def test_other_forms() -> None:
    kb, _ = loaded(":a :p _:b . _:b :q 3 . :c :p :a .")
    engine = QueryEngine(HybridDatabase(Looked(kb)), kb.state.dictionary)
    for query in ("DESCRIBE :a", "SELECT * { ?x :p* ?y }", "CONSTRUCT WHERE { ?x ?p ?y }"):
        found, expected = engine.query(PREFIXES + query, {}), kb.query(PREFIXES + query)
        assert rows_of(found) == rows_of(expected)
    assert engine.query(PREFIXES + "ASK { :a :unknown :b }", {}) is False


def test_the_plan_shows_how_patterns_are_answered() -> None:
    kb, _ = loaded(":a :p :b . :b :q 1 .")
    engine = QueryEngine(HybridDatabase(Looked(kb)), kb.state.dictionary)
    shown = engine.explain(PREFIXES + "SELECT ?n { ?x :p ?y . ?y :q 1 . ?y :never ?n }", {})
    assert shown.count("looked up") == 2
    assert "no triple has these terms" in shown
    assert "answers_1_0" in shown


@pytest.mark.skipif(
    "mode" not in signature(KnowledgeBase.__init__).parameters, reason="there is no hybrid mode"
)
def test_hybrid_knowledge_bases() -> None:
    options: dict[str, Any] = {"mode": "hybrid"}
    bases = [KnowledgeBase(rules("rhodf"), **chosen) for chosen in ({}, options)]
    for kb in bases:
        with kb.transaction() as tx:
            tx.insert(
                "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
                " :Student rdfs:subClassOf :Person . :ann a :Student ; :knows :bob ."
                " :knows rdfs:subPropertyOf :related ; rdfs:domain :Agent . :bob :knows :cid ."
            )
    for query in (
        "SELECT ?x { ?x a :Person }",
        "SELECT * { ?x a :Agent ; :related ?y OPTIONAL { ?y a :Agent ; :knows ?z } }",
        "SELECT * { ?x ?p ?y }",
        "SELECT ?y { :ann :related+ ?y }",
        "DESCRIBE :ann",
    ):
        materialized, hybrid = (kb.query(query) for kb in bases)
        assert rows_of(hybrid) == rows_of(materialized) != Counter()
    assert "unfolded" in bases[1].explain_query("SELECT ?x { ?x a :Person }")
