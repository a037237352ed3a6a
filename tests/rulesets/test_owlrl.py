"""OWL 2 RL on real ontologies: the closure of `owlrl`, up to differences explained here."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from benchmarks.owlrl_peer import ERROR, closed, explained, to_rdflib
from benchmarks.report import DATA
from corollary.lang.syntax import IRI, XSD, Atom, Constant, Literal
from tests.conformance.graphs import closure, read
from tests.rulesets.test_rulesets import ontologies

rdflib: Any = pytest.importorskip("rdflib")
pytest.importorskip("owlrl")

SKOS = DATA / "skos" / "skos-core.nt"
LUBM = DATA / "lubm"
BRICK = DATA / "brick" / "Brick-1.3.ttl"

for needed in (SKOS, LUBM, BRICK):
    if not needed.exists():
        pytest.skip(f"the ontologies are not here: {needed}", allow_module_level=True)


def by_owlrl(graph: set[Atom]) -> frozenset[Atom]:
    found = rdflib.Graph()
    for atom in graph:
        found.add(tuple(map(to_rdflib, atom.constants())))
    return closed(found)


def assert_equal_up_to_reasons(graph: set[Atom]) -> None:
    ours, theirs = closure(graph, "owl-rl"), by_owlrl(graph)
    assert len(ours.facts & theirs) > len(graph)
    unexplained = {f for f in ours.facts ^ theirs if explained(f, ours.facts) is None}
    assert unexplained == set()
    # The converse does not hold: owlrl does not find an item that stands in a list twice.
    if any(ERROR in fact.terms for fact in theirs):
        assert ours.inconsistencies


def test_skos() -> None:
    assert_equal_up_to_reasons(read(SKOS))


def test_lubm(tmp_path: Path) -> None:
    """The ontology and so much of the data as owlrl closes in a few seconds."""
    data = tmp_path / "data.nt"
    with gzip.open(LUBM / "lubm-1.nt.gz", "rt", encoding="utf-8") as lines:
        data.write_text("".join(sorted(lines)[:4000]), encoding="utf-8")
    assert_equal_up_to_reasons(read(LUBM / "univ-bench.swat-ns.nt", data))


@pytest.mark.long
def test_brick() -> None:
    """Without literals and shapes, with which owlrl takes too long."""
    shacl = "http://www.w3.org/ns/shacl#"

    def is_shape(term: Constant) -> bool:
        return isinstance(term, IRI) and term.value.startswith(shacl)

    graph = {
        atom
        for atom in read(BRICK)
        if not any(isinstance(term, Literal) or is_shape(term) for term in atom.constants())
    }
    assert_equal_up_to_reasons(graph)


def _is_plain(fact: Atom) -> bool:
    """Whether a fact has no literal, no datatype, and no cardinality, which owlrl fails at."""
    return not any(
        isinstance(term, Literal)
        or (isinstance(term, IRI) and (XSD in term.value or "Cardinality" in term.value))
        for term in fact.constants()
    )


@settings(max_examples=60)
@given(ontologies())
def test_random_ontologies(graph: set[Atom]) -> None:
    """Where the oracle would share a mistake in the rules, owlrl does not."""
    assert_equal_up_to_reasons({fact for fact in graph if _is_plain(fact)})
