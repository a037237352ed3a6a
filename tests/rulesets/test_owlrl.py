"""OWL 2 RL on real ontologies: the closure of `owlrl`, up to differences explained here."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from benchmarks.report import DATA
from corollary.lang.parser import WELL_KNOWN_PREFIXES
from corollary.lang.syntax import IRI, RDF, TRIPLE, TYPE, XSD, Atom, BlankNode, Constant, Literal
from tests.conformance.graphs import closure, read
from tests.rulesets.test_rulesets import ontologies

rdflib: Any = pytest.importorskip("rdflib")
owlrl: Any = pytest.importorskip("owlrl")

SKOS = DATA / "skos" / "skos-core.nt"
LUBM = DATA / "lubm"
BRICK = DATA / "brick" / "Brick-1.3.ttl"

for needed in (SKOS, LUBM, BRICK):
    if not needed.exists():
        pytest.skip(f"the ontologies are not here: {needed}", allow_module_level=True)

_SAME = IRI(WELL_KNOWN_PREFIXES["owl"] + "sameAs")
_OF_PROPERTIES = {
    IRI(WELL_KNOWN_PREFIXES["rdfs"] + "subPropertyOf"),
    IRI(WELL_KNOWN_PREFIXES["owl"] + "equivalentProperty"),
}
_OF_CLASSES = {
    IRI(WELL_KNOWN_PREFIXES["rdfs"] + "subClassOf"),
    IRI(WELL_KNOWN_PREFIXES["owl"] + "equivalentClass"),
}
_MESSAGE = IRI("http://www.daml.org/2002/03/agents/agent-ont#ErrorMessage")
_ERROR = IRI("http://www.daml.org/2002/03/agents/agent-ont#error")
# owlrl knows these datatypes too; OWL 2 RL does not have them.
_MORE_DATATYPES = {IRI(XSD + "date"), IRI(XSD + "time"), IRI(RDF + "HTML"), IRI(RDF + "langString")}


def explained(fact: Atom, ours: frozenset[Atom]) -> str | None:
    """Why only one of the two has a fact; None if there is no reason."""
    subject, property_, object_ = fact.constants()
    if fact in ours:
        if isinstance(subject, Literal) and property_ == TYPE:
            return "dt-type2: every datatype that has the value, not just the literal's own"
        if property_ in _OF_PROPERTIES | _OF_CLASSES and subject == object_:
            return "scm-spo or scm-sco around a cycle, of which owlrl leaves out what is reflexive"
        # The property of such triples is then a term that owlrl does not have.
        if property_ == _SAME and subject == object_ and subject in _OF_PROPERTIES | _OF_CLASSES:
            return "eq-ref of what the reflexive triples are said by"
    elif property_ == _ERROR or object_ in (_ERROR, _MESSAGE):
        return "how owlrl reports an inconsistency"
    elif property_ in (TYPE, _SAME) and subject in _MORE_DATATYPES:
        return "a datatype that OWL 2 RL does not have"
    elif property_ in _OF_PROPERTIES and subject == object_:
        return "scm-op and scm-dp of all properties, not just of object and datatype properties"
    return None


def by_owlrl(graph: set[Atom]) -> frozenset[Atom]:
    found = rdflib.Graph()
    for atom in graph:
        found.add(tuple(map(_to_rdflib, atom.constants())))
    reasoner = owlrl.DeductiveClosure(
        owlrl.OWLRL_Semantics, axiomatic_triples=False, datatype_axioms=False
    )
    reasoner.expand(found)
    return frozenset(Atom(TRIPLE, tuple(map(_from_rdflib, triple))) for triple in found)


def _to_rdflib(term: Constant) -> Any:
    if isinstance(term, IRI):
        return rdflib.URIRef(term.value)
    if isinstance(term, BlankNode):
        return rdflib.BNode(term.label)
    datatype = None if term.language else rdflib.URIRef(term.datatype)
    return rdflib.Literal(term.lexical, lang=term.language, datatype=datatype, normalize=False)


def _from_rdflib(term: Any) -> Constant:
    if isinstance(term, rdflib.URIRef):
        return IRI(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if term.language:
        return Literal(str(term), RDF + "langString", term.language)
    return Literal(str(term), str(term.datatype or XSD + "string"))


def assert_equal_up_to_reasons(graph: set[Atom]) -> None:
    ours, theirs = closure(graph, "owl-rl"), by_owlrl(graph)
    assert len(ours.facts & theirs) > len(graph)
    unexplained = {f for f in ours.facts ^ theirs if explained(f, ours.facts) is None}
    assert unexplained == set()
    # The converse does not hold: owlrl does not find an item that stands in a list twice.
    if any(_ERROR in fact.terms for fact in theirs):
        assert ours.inconsistencies


def test_skos() -> None:
    assert_equal_up_to_reasons(read(SKOS))


def test_lubm(tmp_path: Path) -> None:
    """The ontology and so much of the data as owlrl closes in a few seconds."""
    data = tmp_path / "data.nt"
    with gzip.open(LUBM / "lubm-1.nt.gz", "rt", encoding="utf-8") as lines:
        data.write_text("".join(sorted(lines)[:4000]), encoding="utf-8")
    assert_equal_up_to_reasons(read(LUBM / "univ-bench.swat-ns.nt", data))


@pytest.mark.slow
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
