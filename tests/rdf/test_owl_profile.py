"""Axioms outside OWL 2 RL: a case for every construct, and real ontologies."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary.core.dictionary import Dictionary
from corollary.rdf import formats
from corollary.rdf.owl_profile import OutsideAxiom, outside_rl

DATA = Path(__file__).parents[2] / "../shared/data"
PREFIXES = """
@prefix : <urn:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix swrl: <http://www.w3.org/2003/11/swrl#> .
:d a owl:DatatypeProperty .
"""
SOME = "[ owl:onProperty :p ; owl:someValuesFrom :B ]"
ALL = "[ owl:onProperty :p ; owl:allValuesFrom :B ]"
HAS = "[ owl:onProperty :p ; owl:hasValue :b ]"
UNION = "[ owl:unionOf (:A :B) ]"
BOTH = "[ owl:intersectionOf (:A :B) ]"
NOT = "[ owl:complementOf :B ]"
ONE = "[ owl:oneOf (:a :b) ]"
SELF = "[ owl:onProperty :p ; owl:hasSelf true ]"
DATA_SOME = "[ owl:onProperty :d ; owl:someValuesFrom xsd:string ]"
DATA_ALL = "[ owl:onProperty :d ; owl:allValuesFrom xsd:string ]"
DATA_HAS = "[ owl:onProperty :d ; owl:hasValue 1 ]"


def cardinality(name: str, number: int, more: str = "", property_: str = ":p") -> str:
    value = f'"{number}"^^xsd:nonNegativeInteger'
    return f"[ owl:onProperty {property_} ; owl:{name} {value} {more} ]"


MAX1 = cardinality("maxCardinality", 1)
# Each expression, and the positions where it may stand: subclass, superclass, equivalent class.
EXPRESSIONS = {
    ":A": "sub super equivalent",
    "owl:Nothing": "sub super equivalent",
    "owl:Thing": "",
    SOME: "sub",
    "[ owl:onProperty :p ; owl:someValuesFrom owl:Thing ]": "sub",
    f"[ owl:onProperty :p ; owl:someValuesFrom {ONE} ]": "sub",
    f"[ owl:onProperty :p ; owl:someValuesFrom {NOT} ]": "",
    "[ owl:onProperty [ owl:inverseOf :p ] ; owl:someValuesFrom :B ]": "sub",
    ALL: "super",
    f"[ owl:onProperty :p ; owl:allValuesFrom {SOME} ]": "",
    f"[ owl:onProperty :p ; owl:allValuesFrom {ALL} ]": "super",
    HAS: "sub super equivalent",
    SELF: "",
    UNION: "sub",
    BOTH: "sub super equivalent",
    f"[ owl:intersectionOf (:A {UNION}) ]": "sub",
    f"[ owl:intersectionOf (:A {ALL}) ]": "super",
    f"[ owl:intersectionOf (:A {HAS}) ]": "sub super equivalent",
    f"[ owl:unionOf (:A {ALL}) ]": "",
    NOT: "super",
    f"[ owl:complementOf {UNION} ]": "super",
    f"[ owl:complementOf {ALL} ]": "",
    ONE: "sub",
    cardinality("maxCardinality", 0): "super",
    MAX1: "super",
    cardinality("maxCardinality", 2): "",
    cardinality("minCardinality", 1): "",
    cardinality("cardinality", 1): "",
    cardinality("maxQualifiedCardinality", 1, "; owl:onClass :B"): "super",
    cardinality("maxQualifiedCardinality", 1, "; owl:onClass owl:Thing"): "super",
    cardinality("maxQualifiedCardinality", 1, f"; owl:onClass {UNION}"): "super",
    cardinality("maxQualifiedCardinality", 1, f"; owl:onClass {ALL}"): "",
    cardinality("maxQualifiedCardinality", 2, "; owl:onClass :B"): "",
    cardinality("minQualifiedCardinality", 1, "; owl:onClass :B"): "",
    cardinality("qualifiedCardinality", 1, "; owl:onClass :B"): "",
    cardinality("maxCardinality", 1, property_=":d"): "super",
    cardinality("maxQualifiedCardinality", 1, "; owl:onDataRange xsd:int", ":d"): "super",
    cardinality("maxQualifiedCardinality", 1, "; owl:onDataRange owl:real", ":d"): "",
    cardinality("minCardinality", 1, property_=":d"): "",
    DATA_SOME: "sub",
    "[ owl:onProperty :d ; owl:someValuesFrom owl:rational ]": "",
    "[ owl:onProperties (:d :e) ; owl:someValuesFrom xsd:string ]": "",
    DATA_ALL: "super",
    "[ owl:onProperty :d ; owl:allValuesFrom [ a rdfs:Datatype ; owl:oneOf (1 2) ] ]": "",
    DATA_HAS: "sub super equivalent",
    '[ owl:onProperty :d ; owl:hasValue "1/2"^^owl:rational ]': "",
    "[ owl:onProperty owl:topObjectProperty ; owl:someValuesFrom :B ]": "",
}
AXIOMS = {
    "sub": ["{} rdfs:subClassOf :C .", ":C owl:disjointWith {} .", "{} owl:hasKey (:p) ."],
    "super": [":C rdfs:subClassOf {} .", ":p rdfs:domain {} .", ":q rdfs:range {} .", ":a a {} ."],
    "equivalent": [":C owl:equivalentClass {} ."],
}


def found(text: str) -> list[OutsideAxiom]:
    dictionary = Dictionary()
    triples = formats.read_text(PREFIXES + text, dictionary)
    terms = (dictionary.terms(column.tolist()) for column in triples.columns)
    return outside_rl(zip(*terms, strict=True), {"": "urn:"})


@pytest.mark.parametrize("position", AXIOMS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_class_expressions_by_position(expression: str, position: str) -> None:
    for axiom in AXIOMS[position]:
        if axiom == ":q rdfs:range {} ." and "owl:real" in expression:
            continue
        outside = found(axiom.replace("{}", expression))
        assert bool(outside) == (position not in EXPRESSIONS[expression].split()), outside
        for one in outside:
            assert one.reason


INSIDE = [
    ":p a owl:FunctionalProperty, owl:InverseFunctionalProperty, owl:IrreflexiveProperty .",
    ":p a owl:SymmetricProperty, owl:AsymmetricProperty, owl:TransitiveProperty .",
    ":p rdfs:subPropertyOf :q ; owl:equivalentProperty :r ; owl:propertyDisjointWith :s .",
    ":p owl:inverseOf :q ; owl:propertyChainAxiom (:q :r) .",
    "[] a owl:AllDisjointProperties ; owl:members (:p :q) .",
    "[] a owl:AllDisjointClasses ; owl:members (:A :B) .",
    "[] a owl:AllDifferent ; owl:distinctMembers (:a :b) . :a owl:sameAs :b .",
    "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; owl:assertionProperty :p ;"
    " owl:targetIndividual :b .",
    ":d rdfs:range xsd:integer . :d rdfs:subPropertyOf :e . :C owl:hasKey (:p :d) .",
    ":T a rdfs:Datatype ; owl:equivalentClass [ a rdfs:Datatype ; owl:intersectionOf (xsd:int"
    " xsd:nonNegativeInteger) ] . :d rdfs:range :T .",
    ":n a owl:AnnotationProperty ; rdfs:range owl:Thing ; rdfs:domain owl:Thing .",
    ':a a :A ; :p :b ; :d 1 ; rdfs:label "a" . :A a owl:Class .',
    ":C owl:intersectionOf (:A :B) .",
    ':n a owl:AnnotationProperty . :a :n "2026-01-01"^^xsd:date ; :undeclared "2026"^^xsd:gYear .',
    "[] owl:inverseOf :p . :R owl:onProperty :p ; owl:hasValue :b .",
]


@pytest.mark.parametrize("axiom", INSIDE)
def test_axioms_inside(axiom: str) -> None:
    assert found(axiom) == []


OUTSIDE = {
    ":p a owl:ReflexiveProperty .": "ReflexiveObjectProperty",
    ":C owl:disjointUnionOf (:A :B) .": "DisjointUnion",
    ":C owl:unionOf (:A :B) .": "ObjectUnionOf",
    ":C owl:complementOf :A .": "ObjectComplementOf",
    ":C owl:oneOf (:a :b) .": "ObjectOneOf",
    f"[] a owl:AllDisjointClasses ; owl:members (:A {ALL}) .": "ObjectAllValuesFrom",
    ":d rdfs:range owl:real .": "owl:real",
    ":d rdfs:range xsd:date .": "xsd:date",
    ":d rdfs:range [ a rdfs:Datatype ; owl:unionOf (xsd:int xsd:string) ] .": "DataUnionOf",
    ":d rdfs:range [ a rdfs:Datatype ; owl:datatypeComplementOf xsd:int ] .": "DataComplementOf",
    ":d rdfs:range [ a rdfs:Datatype ; owl:oneOf (1 2) ] .": "DataOneOf",
    ":d rdfs:range [ a rdfs:Datatype ; owl:onDatatype xsd:int ; owl:withRestrictions"
    " ([ xsd:minInclusive 5 ]) ] .": "DatatypeRestriction",
    ":T a rdfs:Datatype ; owl:equivalentClass [ a rdfs:Datatype ; owl:oneOf (1 2) ] .": "DataOneOf",
    ":p rdfs:subPropertyOf owl:bottomObjectProperty .": "owl:bottomObjectProperty",
    ":r a swrl:Imp .": "DLSafeRule",
    ":R owl:onProperty :p ; owl:someValuesFrom :B .": "ObjectSomeValuesFrom",
    "owl:topObjectProperty a owl:TransitiveProperty .": "owl:topObjectProperty",
    "owl:topObjectProperty rdfs:domain :C .": "owl:topObjectProperty",
    "owl:topDataProperty rdfs:range xsd:int .": "owl:topDataProperty",
    ":p owl:propertyChainAxiom (:q owl:bottomObjectProperty) .": "owl:bottomObjectProperty",
    ":C owl:hasKey (owl:topObjectProperty) .": "owl:topObjectProperty",
    ":A rdfs:subClassOf [ owl:onProperty [ owl:inverseOf owl:topObjectProperty ] ;"
    " owl:allValuesFrom :B ] .": "owl:topObjectProperty",
    "[] a owl:AllDisjointProperties ; owl:members (:p owl:topObjectProperty) .": (
        "owl:topObjectProperty"
    ),
    ":a owl:topObjectProperty :b .": "owl:topObjectProperty",
    ":a owl:bottomDataProperty 1 .": "owl:bottomDataProperty",
    "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; owl:assertionProperty"
    " owl:topObjectProperty ; owl:targetIndividual :b .": "owl:topObjectProperty",
    ':a :d "1/2"^^owl:rational .': "owl:rational",
    "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; owl:assertionProperty :d ;"
    ' owl:targetValue "1/2"^^owl:rational .': "owl:rational",
}


@pytest.mark.parametrize("axiom", OUTSIDE)
def test_axioms_outside(axiom: str) -> None:
    [one] = found(axiom)
    assert one.construct == OUTSIDE[axiom]


def test_assertions_of_one_property_are_one_finding_and_come_last() -> None:
    values = ", ".join(f'"2026-01-0{day}"^^xsd:date' for day in (1, 2, 3))
    first, one = found(f":a :d {values} . :p a owl:ReflexiveProperty .")
    assert first.construct == "ReflexiveObjectProperty"
    assert one.axiom == 'DataPropertyAssertion(:d :a "2026-01-01"^^xsd:date)'
    assert one.reason.endswith("(the same in 2 more of its assertions)")


def test_text_is_functional_syntax() -> None:
    [one] = found(f":C rdfs:subClassOf [ owl:intersectionOf (:A {SOME} {NOT}) ] .")
    assert one.axiom == (
        "SubClassOf(:C ObjectIntersectionOf(:A ObjectSomeValuesFrom(:p :B) ObjectComplementOf(:B)))"
    )
    [one] = found(
        f":C rdfs:subClassOf {cardinality('minQualifiedCardinality', 3, '; owl:onClass :B')} ."
    )
    assert one.axiom == "SubClassOf(:C ObjectMinCardinality(3 :p :B))"
    assert one.to_json()["construct"] == "ObjectMinCardinality"
    facets = "([ xsd:minInclusive 5 ] [ xsd:maxExclusive 10 ])"
    [one] = found(f":d rdfs:range [ owl:onDatatype xsd:int ; owl:withRestrictions {facets} ] .")
    restricted = "DatatypeRestriction(xsd:int xsd:minInclusive 5 xsd:maxExclusive 10)"
    assert one.axiom == f"DataPropertyRange(:d {restricted})"


def test_malformed_triples_end() -> None:
    assert found("_:x owl:complementOf _:x . :C rdfs:subClassOf _:x .") != []
    assert found(":C rdfs:subClassOf [ owl:intersectionOf _:l ] . _:l rdf:rest _:l .") == []
    assert found(':C rdfs:subClassOf "literal" .')[0].construct == "literal"


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are absent")
@pytest.mark.parametrize(
    ("file", "constructs"),
    [
        ("lubm/univ-bench.owl", {"ObjectSomeValuesFrom"}),
        ("skos/skos-core.nt", {"ObjectUnionOf"}),
        ("brick/Brick-1.3.ttl", set()),
    ],
)
def test_real_ontologies(file: str, constructs: set[str]) -> None:
    dictionary = Dictionary()
    triples = formats.read(DATA / file, dictionary)
    terms = (dictionary.terms(column.tolist()) for column in triples.columns)
    outside = outside_rl(zip(*terms, strict=True), triples.prefixes)
    assert {one.construct for one in outside} == constructs
