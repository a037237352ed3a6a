"""Random OWL 2 RL ontologies in every configuration: what follows is what follows from scratch."""

from __future__ import annotations

from random import Random

import pytest

import corollary as co
from tests.configurations import (
    DIMENSIONS,
    Change,
    Configuration,
    History,
    Triple,
    configurations,
    pairwise_cover,
    replay,
)
from tests.effort import first
from tests.fuzz import ontologies as lane
from tests.random_ontologies import DATA, KINDS, Ontology, known, random_history


def test_every_kind_of_axiom_is_read_by_a_rule() -> None:
    """Each has terms of the vocabulary that stand in a rule or constraint of OWL 2 RL."""
    program = co.rules("owl-rl")
    text = str(program)
    of = Ontology(Random(0), names=3, things=3, wild=0)
    for kind, make in KINDS.items():
        names = {
            term.rpartition("#")[2].rstrip(">")
            for triple in make(of)
            for term in triple
            if "/owl#" in term or "rdf-schema#" in term
        }
        assert any(f":{name}" in text for name in names), kind
    assert len(DATA) == 3


def test_every_two_settings_meet() -> None:
    rows = pairwise_cover(DIMENSIONS, lambda row: Configuration(**row).suits(co.rules("owl-rl")))
    assert len(rows) < 25
    met = {(a, row[a], b, row[b]) for row in rows for a in DIMENSIONS for b in DIMENSIONS if a != b}
    excluded = {
        ("equality", "rewrite", "mode", "hybrid"),
        ("mode", "hybrid", "equality", "rewrite"),
    }
    wanted = {
        (a, x, b, y)
        for a in DIMENSIONS
        for b in DIMENSIONS
        if a != b
        for x in DIMENSIONS[a]
        for y in DIMENSIONS[b]
    }
    assert met == wanted - excluded


@pytest.mark.parametrize("seed", first(3, range(12)))
def test_tiny(seed: int) -> None:
    lane.check(random_history(seed), _chosen(random_history(seed), seed, 3), Random(seed))


@pytest.mark.parametrize("seed", range(3))
def test_medium(seed: int) -> None:
    history = random_history(seed, "medium", changes=4)
    lane.check(history, _chosen(history, seed, 2), Random(seed))


def _chosen(history: History, seed: int, number: int) -> list[Configuration]:
    return Random(seed).sample(configurations(history.program, seed), number)


def test_begins_with_axioms_that_data_derive() -> None:
    """Rules that derive axioms open only after the known facts were looked at."""
    replay(random_history(76, changes=5), Configuration(specialize=True, resumes=True, limits=3))
    for limits in (None, 448873172):
        replay(random_history(76, changes=5), Configuration(resumes=True, limits=limits))


def many_restrictions(number: int) -> History:
    """Restrictions on one property, and an update that concerns none of them."""
    first: set[Triple] = {
        ("<urn:x>", "<urn:p>", "<urn:v0>"),
        ("<urn:a>", "<urn:license>", "<urn:l1>"),
    }
    for at in range(number):
        first |= {
            (f"<urn:r{at}>", known("owl:onProperty"), "<urn:p>"),
            (f"<urn:r{at}>", known("owl:hasValue"), f"<urn:v{at}>"),
            (f"<urn:y{at}>", "<urn:q>", f"<urn:z{at}>"),
        }
    old = frozenset({("<urn:a>", "<urn:license>", "<urn:l1>")})
    new = frozenset({("<urn:a>", "<urn:license>", "<urn:l2>")})
    changes = (Change(new, old), Change(old, new))
    return History(f"{number} restrictions", co.rules("owl-rl"), frozenset(first), changes)


def test_many_restrictions() -> None:
    """Beyond the thresholds as they are, where specialization and modules meet."""
    replay(many_restrictions(520), Configuration(), {1})


@pytest.mark.parametrize("seed", [21, 23, 35, 37])
def test_few_restrictions(seed: int) -> None:
    """The same on 20 triples, with the thresholds below them."""
    replay(many_restrictions(6), Configuration(limits=seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 115))
def test_many_tiny(seed: int) -> None:
    """Every two settings meet for every ontology."""
    history = random_history(seed)
    lane.check(history, configurations(history.program, seed), Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_large(seed: int) -> None:
    history = random_history(seed, "large", changes=2)
    others = _chosen(history, seed, 1)
    lane.check(history, [Configuration(), *others], Random(seed))
