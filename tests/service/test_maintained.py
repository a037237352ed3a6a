"""Answers that are maintained equal those that are asked again, for random queries and commits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import corollary as co
from corollary.service import jobs
from corollary.service.jobs import Session
from corollary.service.maintained import pattern_of
from corollary.service.settings import Limits

RULES = """
[?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] .
[?x, <urn:near>, ?z] :- [?x, <urn:next>, ?y], [?y, <urn:next>, ?z] .
"""
NODES = [f"<urn:n{number}>" for number in range(5)] + ["_:b"]
VALUES = ["1", "01", "2.5", "7", '"x"', '"X"@en', '"x"@en', "true", '"2020-01-01"^^xsd:date']
FILTERS = [
    "?v > 1",
    "?v * 2 - 1 <= 4 || ?v = 7",
    "isNumeric(?v) && !(?v IN (1, 2.5))",
    '?v NOT IN ("x", 7)',
    "LANG(?v) = 'en'",
    "STRLEN(STR(?x)) > 3",
    "REGEX(STR(?v), '^[x1]', 'i')",
    "COALESCE(?v + 1, 0) > 2",
    "IF(isLiteral(?v), ?v > 1, false)",
    "<http://www.w3.org/2001/XMLSchema#integer>(?v) = 1",
    "?x != ?y",
    "-?v < -1",
    "sameTerm(?v, 1)",
]
BODIES = [
    "?x <urn:value> ?v",
    "?x <urn:value> ?v . ?x <urn:next> ?y",
    "?x <urn:near> ?y . ?y <urn:value> ?v",
    "?x a <urn:D> . ?x <urn:value> ?v . [] <urn:next> ?x",
    "?x ?p ?v",
    "?x <urn:next> ?x . ?x <urn:value> ?v",
]
REFUSED = [
    "ASK { ?x <urn:p> ?y }",
    "SELECT ?x { ?x <urn:p>* ?y }",
    "SELECT ?x { ?x <urn:p> ?y } LIMIT 3",
    "SELECT (COUNT(*) AS ?n) { ?x <urn:p> ?y }",
    "SELECT ?x ?z { ?x <urn:p> ?y }",
    "SELECT ?x { ?x <urn:p> ?y FILTER(BOUND(?z)) }",
    "SELECT ?x { ?x <urn:p> ?y FILTER(?y < NOW()) }",
    "SELECT ?x { ?x <urn:p> ?y FILTER EXISTS { ?y <urn:p> ?x } }",
    "SELECT ?x { ?x <urn:p> ?y OPTIONAL { ?y <urn:p> ?z } }",
    "SELECT ?x { { ?x <urn:p> ?y } UNION { ?y <urn:p> ?x } }",
    "CONSTRUCT WHERE { ?x <urn:p> ?y }",
    "SELECT * { <urn:a> <urn:b> <urn:c> }",
]


def random_query(source: random.Random) -> str:
    body = source.choice(BODIES)
    filters = [f"FILTER({one})" for one in source.sample(FILTERS, source.choice([0, 1, 1, 2]))]
    if "?y" not in body:
        filters = [one for one in filters if "?y" not in one]
    shown = source.choice(["*", "?x", "?v", "DISTINCT ?x", "DISTINCT ?v ?x"])
    order = source.choice(["", " ORDER BY ?x"])
    prefix = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    return f"{prefix}SELECT {shown} {{ {body} {' '.join(filters)} }}{order}"


def random_triples(source: random.Random, size: int) -> str:
    def triple() -> str:
        subject = source.choice(NODES)
        return source.choice(
            [
                f"{subject} <urn:next> {source.choice(NODES)} .",
                f"{subject} <urn:value> {source.choice(VALUES)} .",
                f"{subject} a <urn:C> .",
                "<urn:C> rdfs:subClassOf <urn:D> .",
            ]
        )

    return "\n".join(triple() for _ in range(size))


def multiset(rows: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def replay(folder: Path, seed: int, commits: int) -> int:
    """Compare after random commits; returns how many answers came and went."""
    source = random.Random(seed)
    kb = co.KnowledgeBase(RULES)
    with kb.transaction() as tx:
        tx.insert(random_triples(source, 12))
    kb.save(folder / "store")
    session = Session(str(folder / "store"), {}, Limits(), 1)
    queries = [random_query(source) for _ in range(8)]
    before = {query: jobs.answers(session, query, kb.version) for query in queries}
    seen = 0
    for _ in range(commits):
        since = kb.version
        for _ in range(source.choice([1, 1, 2])):  # versions at once
            with kb.transaction() as tx:
                tx.delete(random_triples(source, 5))
                tx.insert(random_triples(source, 3))
                if source.random() < 0.2:
                    tx.add_rules("[?y, <urn:next>, ?x] :- [?x, <urn:next>, ?y] .")
        session.newest = kb.version
        for query in queries:
            found = jobs.follow(session, query, since, kb.version)
            assert found is not None, query
            after = jobs.answers(session, query, kb.version)
            net = multiset(before[query])
            for event in found:
                came, gone = multiset(event["came"]), multiset(event["gone"])
                assert not came & gone, query
                assert not gone - net, query
                net = net - gone + came
                seen += came.total() + gone.total()
            assert net == multiset(after), query
            before[query] = after
    return seen


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_maintained_answers_equal_asked_ones(tmp_path: Path, seed: int) -> None:
    assert replay(tmp_path, seed, commits=10)


@pytest.mark.parametrize("query", REFUSED)
def test_other_queries_are_asked_again(query: str) -> None:
    assert pattern_of(query, {}) is None


def test_a_view_that_is_behind_is_built_again(tmp_path: Path) -> None:
    kb = co.KnowledgeBase(RULES)
    with kb.transaction() as tx:
        tx.insert("<urn:a> <urn:p> 1 .")
    kb.save(tmp_path / "store")
    session = Session(str(tmp_path / "store"), {}, Limits(), 1)
    for number in range(2, 5):
        with kb.transaction() as tx:
            tx.insert(f"<urn:a> <urn:p> {number} .")
    session.newest = kb.version
    query = "SELECT ?v { ?x <urn:p> ?v }"
    expected = [{"version": kb.version, "came": [{"v": text}], "gone": []} for text in [_four()]]
    assert jobs.follow(session, query, kb.version - 1, kb.version) == expected
    assert len(jobs.follow(session, query, kb.version - 3, kb.version) or []) == 3


def _four() -> str:
    return '"4"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_stores_that_derive_on_demand_are_asked_again(tmp_path: Path) -> None:
    kb = co.KnowledgeBase("[?x, a, ?d] :- [?x, a, ?c], [?c, rdfs:subClassOf, ?d] .", mode="hybrid")
    with kb.transaction() as tx:
        tx.insert("<urn:C> rdfs:subClassOf <urn:D> .")
    kb.save(tmp_path / "store")
    with kb.transaction() as tx:
        tx.insert("<urn:x> a <urn:C> .")
    session = Session(str(tmp_path / "store"), {}, Limits(), 1)
    session.newest = kb.version
    assert jobs.follow(session, "SELECT ?x { ?x a <urn:D> }", kb.version - 1, kb.version) is None
