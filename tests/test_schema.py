"""The schema of a knowledge base: hierarchies, counts, inferred positions."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

import corollary as co
from corollary.knowledge_base.schema import Hierarchy, Position

ANIMALS = """
@prefix : <urn:x:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Kitten rdfs:subClassOf :Cat, :Animal . :Cat rdfs:subClassOf :Animal .
:Feline owl:equivalentClass :Cat . :Pet owl:unionOf (:Kitten :Dog) . :Dog a owl:Class .
:chases rdfs:subPropertyOf :knows . :tom a :Kitten ; :chases :jerry .
"""


def loaded(rules: str, text: str, **options: str) -> co.KnowledgeBase:
    kb = co.KnowledgeBase(co.rules(rules), **options)  # type: ignore[arg-type]
    with kb.transaction() as tx:
        tx.insert(text)
    return kb


def places(hierarchy: Hierarchy) -> Mapping[str, set[tuple[str, bool]]]:
    return {e.term: {(p.parent, p.inferred) for p in e.positions} for e in hierarchy}


def test_shows_direct_positions_only_and_marks_inferred_ones() -> None:
    classes = loaded("owl-rl", ANIMALS).schema().classes
    assert places(classes) == {
        "<urn:x:Animal>": set(),
        "<urn:x:Cat>": {("<urn:x:Animal>", False)},
        "<urn:x:Pet>": set(),
        "<urn:x:Dog>": {("<urn:x:Pet>", True)},
        "<urn:x:Kitten>": {("<urn:x:Cat>", False), ("<urn:x:Pet>", True)},
    }
    assert classes["<urn:x:Cat>"].equivalent == ("<urn:x:Feline>",)
    assert [entry.term for entry in classes.children("<urn:x:Animal>")] == ["<urn:x:Cat>"]


def test_counts_explicit_and_derived_facts_in_every_mode() -> None:
    for options in ({}, {"mode": "hybrid"}, {"equality": "rewrite"}):
        schema = loaded("owl-rl", ANIMALS, **options).schema()
        kitten, animal = schema.classes["<urn:x:Kitten>"], schema.classes["<urn:x:Animal>"]
        assert (kitten.explicit, kitten.derived, animal.explicit, animal.count) == (1, 0, 0, 1)
        knows = schema.properties["<urn:x:knows>"]
        assert (knows.explicit, knows.derived, knows.positions) == (0, 1, ())
        chases = schema.properties["<urn:x:chases>"]
        assert chases.positions == (Position("<urn:x:knows>", False),)


def test_prints_repeated_entries_once() -> None:
    lines = str(loaded("owl-rl", ANIMALS).schema()).splitlines()
    assert lines == [
        "classes",
        "  :Animal   1, 1 derived",
        "    :Cat = :Feline   1, 1 derived",
        "      :Kitten   1",
        "  :Pet   1, 1 derived",
        "    :Dog   0   inferred",
        "    :Kitten   1   inferred",
        "properties",
        "  :knows   1, 1 derived",
        "    :chases   1",
    ]


def test_leaves_no_trace_in_the_dictionary() -> None:
    kb = loaded("rdfs", ANIMALS)
    before = len(kb.state.dictionary)
    assert len(kb.schema().to_json()["classes"]) > 2
    assert len(kb.state.dictionary) == before


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14))
def test_positions_are_the_transitive_reduction(edges: set[tuple[int, int]]) -> None:
    text = "".join(f"<urn:{a}> rdfs:subClassOf <urn:{b}> .\n" for a, b in sorted(edges))
    kb = co.KnowledgeBase()
    with kb.transaction() as tx:
        tx.insert(text)
    found = kb.schema().classes
    closure = {(a, b) for a, b in edges if a != b}
    while new := {(a, d) for a, b in closure for c, d in closure if b == c} - closure:
        closure |= new
    name = {
        f"<urn:{n}>": min([n, *(m for m in range(7) if (n, m) in closure and (m, n) in closure)])
        for pair in closure
        for n in pair
    }
    above = {(name[f"<urn:{a}>"], name[f"<urn:{b}>"]) for a, b in closure}
    above = {(a, b) for a, b in above if a != b}
    direct = {
        (a, c) for a, c in above if not any((a, b) in above and (b, c) in above for b in range(7))
    }
    assert {(e.term, p.parent) for e in found for p in e.positions} == {
        (f"<urn:{a}>", f"<urn:{b}>") for a, b in direct
    }
