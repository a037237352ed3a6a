"""Random SPARQL updates: the explicit triples are pyoxigraph's, consequences are the oracle's."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import given, note, settings
from hypothesis import strategies as st

from corollary import KnowledgeBase
from corollary.core.tables import decode
from corollary.knowledge_base.results import split
from corollary.lang.program import Program
from corollary.lang.reference import materialize
from tests.query.sparql_strategies import (
    PREFIXES,
    constants,
    data,
    iris,
    patterns,
    properties,
)
from tests.query.test_random import insert

_RULES = """
@prefix : <http://e/> .
[?x, :q, ?y] :- [?x, :p, ?y] .
[?x, :r, ?z] :- [?x, :q, ?y], [?y, :q, ?z] .
[?x, a, :D] :- [?x, a, :C] .
"""
_variables = st.sampled_from(["?a", "?b", "?c", "?d"])


@st.composite
def triples(draw: st.DrawFn, *, variables: bool, blank_nodes: bool) -> str:
    """Triples of data or templates."""
    subjects, objects = [iris], [iris, constants]
    if variables:
        subjects, objects = [*subjects, _variables], [*objects, _variables]
    if blank_nodes:
        subjects, objects = [*subjects, st.just("_:new")], [*objects, st.just("_:new")]
    many = st.lists(
        st.tuples(st.one_of(subjects), properties, st.one_of(objects)), min_size=1, max_size=3
    )
    return " . ".join(" ".join(triple) for triple in draw(many))


@st.composite
def operations(draw: st.DrawFn) -> str:
    """One operation."""
    ground = triples(variables=False, blank_nodes=False)
    deleted = triples(variables=True, blank_nodes=False)
    inserted = triples(variables=True, blank_nodes=False)
    kind = draw(st.sampled_from(["insert", "delete", "where", "modify", "modify", "clear"]))
    match kind:
        case "insert":
            return f"INSERT DATA {{ {draw(ground)} }}"
        case "delete":
            return f"DELETE DATA {{ {draw(ground)} }}"
        case "where":
            return f"DELETE WHERE {{ {draw(deleted)} }}"
        case "modify":
            first = draw(st.one_of(st.just(""), deleted))
            second = draw(inserted if not first else st.one_of(st.just(""), inserted))
            clauses = f"DELETE {{ {first} }} " if first else ""
            clauses += f"INSERT {{ {second} }} " if second else ""
            return f"{clauses}WHERE {{ {draw(patterns())} }}"
    return draw(st.sampled_from(["CLEAR DEFAULT", "DROP ALL", "CLEAR SILENT NAMED"]))


requests = st.lists(operations(), min_size=1, max_size=4).map(" ;\n".join)


def explicit(kb: KnowledgeBase) -> set[str]:
    table = kb.facts("[?s, ?p, ?o]")
    table = table.filter(table["explicit"])
    columns = [table[name].to_pylist() for name in table.column_names[:3]]
    return {" ".join(row) for row in zip(*columns, strict=True)}


@given(data(), st.lists(requests, min_size=1, max_size=3))
@settings(max_examples=30)
def test_updates_are_those_of_pyoxigraph(turtle: str, texts: list[str]) -> None:
    store = ox.Store()
    store.load(f"{PREFIXES}{turtle}".encode(), format=ox.RdfFormat.TURTLE)
    kb = KnowledgeBase()
    insert(kb, store)
    for text in texts:
        note(text)
        store.update(PREFIXES + text)
        kb.update(PREFIXES + text)
        assert explicit(kb) == {f"{q.subject} {q.predicate} {q.object}" for q in store}


@given(data(), st.lists(requests, min_size=1, max_size=3))
@settings(max_examples=15)
def test_one_request_equals_its_operations_one_by_one(turtle: str, texts: list[str]) -> None:
    """Each operation sees the consequences of the earlier ones."""
    whole, single = KnowledgeBase(_RULES), KnowledgeBase(_RULES)
    for kb in (whole, single):
        with kb.transaction() as tx:
            tx.insert(f"{PREFIXES}{turtle}")
    for text in texts:
        note(text)
        version = whole.version
        whole.update(PREFIXES + text)
        assert whole.version == version + 1
        for part in text.split(" ;\n"):
            single.update(PREFIXES + part)
        assert explicit(whole) == explicit(single)
        assert set(_facts(whole)) == set(_facts(single)) == set(_closure(whole))


def _facts(kb: KnowledgeBase) -> list[object]:
    return list(decode(kb.state.reasoner.facts, kb.state.dictionary))


def _closure(kb: KnowledgeBase) -> list[object]:
    stated, _ = split(kb.state.reasoner.facts, kb.state.reasoner.explicit)
    facts = list(decode(stated, kb.state.dictionary))
    return list(materialize(Program.of(kb.program.rules, facts)))
