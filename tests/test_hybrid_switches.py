"""Hybrid knowledge bases whose redundant rules change with the facts.

A rule that explicit facts make redundant is needed again when one of these facts goes. Random
programs and ontologies turn such facts on and off; see `tests.switches`.
"""

from __future__ import annotations

import pytest

import corollary as co
from tests.fuzz.hybrid import check_ontology, check_switches
from tests.switches import switch_axioms

SWITCH = """
    q(?x) :- on(1), p(?x) .
    q(?x) :- p(?x), s(?x) .
    p(7) . p(8) . s(7) . on(1) . on(2) .
"""
CHAIN = "<u:A> rdfs:subClassOf <u:B> . <u:B> rdfs:subClassOf <u:C> ."
TRANSITIVE = "rdfs:subClassOf a owl:TransitiveProperty ."


def values(kb: co.KnowledgeBase) -> set[str]:
    return {row["arg0"] for row in kb.facts("q").to_pylist()}


@pytest.mark.parametrize("specialize", [True, False])
def test_a_rule_comes_back_when_the_fact_that_replaced_it_goes(specialize: bool) -> None:
    kb = co.KnowledgeBase(
        SWITCH, mode="hybrid", materialize=["q(?x)", "on(?x)"], specialize=specialize
    )
    assert values(kb) == {"7", "8"}
    with kb.transaction() as tx:
        tx.delete("on(1) .")
    assert values(kb) == {"7"}
    assert str(tx.changes) == "- on(1)\n- q(8)"
    with kb.transaction() as tx:
        tx.insert("on(1) .")
    assert values(kb) == {"7", "8"}
    with kb.transaction() as tx:
        tx.delete("s(7) . on(1) .")
    assert values(kb) == set()
    kb.state.reasoner.verify()


@pytest.mark.parametrize("specialize", [True, False])
def test_transitivity_of_subclasses_does_not_need_its_axiom(specialize: bool) -> None:
    kb = co.KnowledgeBase(co.rules("owl-rl"), mode="hybrid", specialize=specialize)
    with kb.transaction() as tx:
        tx.insert(f"{CHAIN} {TRANSITIVE} <u:p> a owl:TransitiveProperty .")
    assert "[<u:A>, rdfs:subClassOf, <u:C>]" in kb
    with kb.transaction() as tx:
        tx.delete(TRANSITIVE)
    assert "[<u:A>, rdfs:subClassOf, <u:C>]" in kb
    assert "[rdfs:subClassOf, a, owl:TransitiveProperty]" not in kb


def test_rule_sets_have_switches() -> None:
    """Else streams of ontologies would turn nothing on and off."""
    assert len(switch_axioms("owl-rl")) >= 4


@pytest.mark.parametrize("seed", range(0, 40, 10))
def test_oracle_switches(seed: int) -> None:
    for one in range(seed, seed + 10):
        check_switches(one)


@pytest.mark.parametrize("specialize", [True, False])
def test_differential_ontologies(specialize: bool) -> None:
    check_ontology(1, "rhodf", specialize=specialize)


@pytest.mark.long
def test_oracle_more_switches() -> None:
    for seed in range(1_000, 1_250):
        check_switches(seed, commits=12)


@pytest.mark.long
@pytest.mark.parametrize("specialize", [True, False])
@pytest.mark.parametrize("name", ["rhodf", "rdfs", "owl-rl"])
def test_differential_more_ontologies(name: str, specialize: bool) -> None:
    for seed in range(8 if name == "rhodf" else 2):
        check_ontology(seed, name, specialize=specialize, commits=3)
