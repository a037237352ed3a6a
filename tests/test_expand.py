"""`expand` against `owlrl`, and what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

import corollary as co

rdflib: Any = pytest.importorskip("rdflib")
owlrl: Any = pytest.importorskip("owlrl")

PREFIXES = """
@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
GRAPHS = {
    "classes": ":C rdfs:subClassOf :D . :D owl:equivalentClass :E . :x a :C .",
    "properties": ":p a owl:TransitiveProperty ; rdfs:domain :C ; owl:inverseOf :q ."
    " :x :p :y . :y :p :z . :s a owl:SymmetricProperty . :x :s _:b .",
    "literals": ':x :age 3, "03"^^xsd:int, "a"^^xsd:string, "b"@en ; :name 1.50 .'
    " :age rdfs:subPropertyOf :value .",
    "equality": ":f a owl:FunctionalProperty . :x :f :y, :z . :y :p 1 .",
    "restrictions": "[] owl:onProperty :p ; owl:someValuesFrom :C ; rdfs:subClassOf :D ."
    " :x :p :y . :y a :C .",
    "list": ":C owl:intersectionOf ( :A :B ) . :x a :A, :B .",
}
NAMES = ("date", "time", "HTML", "langString")  # datatypes that only owlrl knows


def graph_of(text: str) -> Any:
    return rdflib.Graph().parse(data=PREFIXES + text, format="turtle")


def of_interest(triples: Any) -> set[Any]:
    """Without literals as subjects, other datatypes, which of them differ, what is reflexive."""
    return {
        (s, p, o)
        for s, p, o in triples
        if s != o
        and not (str(s).startswith(str(rdflib.XSD)) and p == rdflib.OWL.disjointWith)
        and not isinstance(s, rdflib.Literal)
        and not str(s).endswith(tuple(f"#{name}" for name in NAMES))
    }


@pytest.mark.parametrize("name", GRAPHS)
def test_as_owlrl(name: str) -> None:
    ours, theirs = graph_of(GRAPHS[name]), rdflib.Graph()
    for triple in ours:  # the same blank nodes
        theirs.add(triple)
    before = len(ours)
    added = co.expand(ours, "owl-rl")
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(theirs)
    assert len(ours) == before + added
    assert of_interest(ours) == of_interest(theirs)
    assert not any(isinstance(subject, rdflib.Literal) for subject in ours.subjects())
    assert co.expand(ours) == 0, "all that follows is there"


def test_destination_and_axioms() -> None:
    graph, destination = graph_of(GRAPHS["classes"]), rdflib.Graph()
    before = set(graph)
    added = co.expand(graph, "rdfs", destination=destination, axioms=False)
    assert set(graph) == before
    assert len(destination) == added
    assert not set(destination) & before
    assert not any("XMLSchema" in str(subject) for subject in destination.subjects())
    x, type_ = rdflib.URIRef("http://example.org/x"), rdflib.RDF.type
    assert (x, type_, rdflib.URIRef("http://example.org/D")) in destination
    assert co.expand(graph, "rdfs") > added


def test_own_rules_and_auxiliary_relations() -> None:
    graph = graph_of(":x :p :y . :y :p :z .")
    rules = co.Program.parse(
        "@prefix : <http://example.org/> . _two(?x, ?z) :- [?x, :p, ?y], [?y, :p, ?z] ."
        "[?x, :far, ?z] :- _two(?x, ?z) . plain(?x) :- _two(?x, ?z) ."
    )
    assert co.expand(graph, ["none", rules]) == 1
    assert len(graph) == 3


def test_datasets() -> None:
    dataset = rdflib.Dataset()
    dataset.graph(rdflib.URIRef("urn:g")).parse(data=PREFIXES + GRAPHS["classes"], format="turtle")
    assert co.expand(dataset, "rhodf") >= 1
    x, type_ = rdflib.URIRef("http://example.org/x"), rdflib.RDF.type
    assert (x, type_, rdflib.URIRef("http://example.org/D")) in dataset.default_graph


def test_unknown_rules() -> None:
    with pytest.raises(co.InvalidInput, match="unknown rule set"):
        co.expand(rdflib.Graph(), "owl-full")
