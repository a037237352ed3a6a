"""The check report: what contradicts, what cannot be, what has no effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary import CorollaryError, KnowledgeBase
from corollary.lang.syntax import is_auxiliary
from tests.cli.calls import call

PREFIXES = """
@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""


def checked(text: str, rules: str = "owl-rl") -> KnowledgeBase:
    kb = KnowledgeBase(rules)
    kb.insert(PREFIXES + text)
    return kb


# -- contradictions ------------------------------------------------------------------------------


def test_the_smallest_proof_is_first() -> None:
    deep = " ".join(f":C{n} rdfs:subClassOf :C{n + 1} ." for n in range(4))
    members = " ".join(f":m{n} a :C0, :D ." for n in range(5))
    kb = checked(f":C4 owl:disjointWith :D . {deep} {members} :x a :C4, :D .")
    [found] = kb.check(limit=2).contradictions
    assert found.count == 6
    assert [proof.size for proof in found.proofs] == sorted(p.size for p in found.proofs)
    assert ":x" in str(found.proofs[0])
    assert found.proofs[0].height == 1


def test_auxiliary_steps_are_hidden() -> None:
    kb = checked("[] a owl:AllDisjointClasses ; owl:members (:A :B :C) . :x a :A, :B .")
    [found] = kb.check().contradictions
    assert found.count == 1  # A with B, and B with A, are one
    for proof in found.proofs:
        for node in proof.nodes():
            assert not is_auxiliary(getattr(node.fact, "relation", ""))
    assert any("_cell" in str(one) for one in kb.inconsistencies())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (":a owl:differentFrom :b . :b owl:differentFrom :a . :a owl:sameAs :b .", 3),
        (":A owl:disjointWith :B . :B owl:disjointWith :A . :x a :A, :B . :y a :A, :B .", 2),
        (":p a owl:AsymmetricProperty . :x :p :y . :y :p :x .", 1),
        (":p a owl:AsymmetricProperty . :x :p :x .", 1),
        (":p owl:propertyDisjointWith :q . :q owl:propertyDisjointWith :p . :x :p :y ; :q :y .", 1),
    ],
)
def test_symmetric_variants_count_once(text: str, count: int) -> None:
    [found] = checked(text).check().contradictions
    assert found.count == count == len(found.proofs)


# -- classes and properties without members --------------------------------------------------------

CLASSES = [f":C{number}" for number in range(4)]
AXIOMS = st.one_of(
    st.builds("{} rdfs:subClassOf {} .".format, st.sampled_from(CLASSES), st.sampled_from(CLASSES)),
    st.builds(
        "{} owl:disjointWith {} .".format, st.sampled_from(CLASSES), st.sampled_from(CLASSES)
    ),
    st.builds(
        "{} rdfs:subClassOf [ owl:onProperty :f ; owl:hasValue {} ] .".format,
        st.sampled_from(CLASSES),
        st.sampled_from([":a", ":b"]),
    ),
    st.builds(":f rdfs:range {} .".format, st.sampled_from(CLASSES)),
    st.builds(":a a {} .".format, st.sampled_from(CLASSES)),
    st.sampled_from([":f a owl:FunctionalProperty .", ":a owl:differentFrom :b ."]),
    st.sampled_from([":f rdfs:domain :C0 .", ":f a owl:SymmetricProperty ."]),
)


@settings(max_examples=10)
@given(st.lists(AXIOMS, min_size=2, max_size=6))
def test_unsatisfiable_classes_are_those_whose_member_contradicts(axioms: list[str]) -> None:
    """Compare with the same knowledge base after the insertion of a member."""
    declared = " ".join(f"{name} a owl:Class ." for name in CLASSES)
    kb = checked(f"{declared} {' '.join(axioms)}")
    before = sum(found.count for found in kb.inconsistencies())
    expected = set()
    for name in CLASSES:
        kb.insert(f"{PREFIXES} _:new a {name} .")
        if sum(found.count for found in kb.inconsistencies()) > before:
            expected.add(f"http://example.org/{name[1:]}")
        kb.delete(f"{PREFIXES} _:new a {name} .")
    found = kb.check(limit=1).unsatisfiable
    assert {one.term.value for one in found if one.kind == "class"} == expected


def test_properties_that_cannot_have_values() -> None:
    kb = checked(
        ":p rdfs:domain :A ; rdfs:range :B . :A owl:disjointWith :B . :p a owl:SymmetricProperty ."
        " :q rdfs:domain :A . :x a :A ."
    )
    [found] = kb.check().unsatisfiable
    assert (found.kind, found.term.value) == ("property", "http://example.org/p")
    assert "the property :p cannot have values" in str(found)
    assert len(kb) == kb.count()
    assert "member" not in kb.serialize("nt")  # hypothetical members are in a copy


# -- literals, SKOS, profile -----------------------------------------------------------------------


def test_literals_that_do_not_fit() -> None:
    kb = checked(
        ':x :age "old"^^xsd:integer, "7"^^xsd:integer ; :on "2026-02-30T00:00:00"^^xsd:dateTime .'
        ' :y :age "old"^^xsd:integer ; :z "x"^^:unknown .'
    )
    found = {one.literal.lexical: one for one in kb.check().literals}
    assert found.keys() == {"old", "2026-02-30T00:00:00"}
    assert found["old"].count == 2
    assert found["old"].to_json()["datatype"].endswith("integer")


SKOS = {
    "S9": ":c a skos:Concept, skos:ConceptScheme .",
    "S13": ':c skos:prefLabel "a"@en ; skos:altLabel "a"@en .',
    "S14": ':c skos:prefLabel "a"@en, "b"@en .',
    "S27": ":c skos:related :d . :c skos:broader :e . :e skos:broader :d .",
    "S37": ":c a skos:OrderedCollection, skos:Concept .",
    "S46": ":c skos:exactMatch :d . :d skos:narrowMatch :c .",
}


@pytest.mark.parametrize("condition", SKOS)
def test_integrity_conditions_of_skos(condition: str) -> None:
    [found] = checked(SKOS[condition]).check().skos
    assert (found.name, found.count) == (f"skos-{condition}", 1)
    for rules in ("skos", "owl-rl+skos"):
        report = checked(SKOS[condition], rules).check()
        assert f"skos-{condition}" in [one.name for one in report.contradictions]
        assert report.skos == ()


def test_skos_without_violations() -> None:
    kb = checked(
        ':c skos:prefLabel "a"@en, "b"@de, "c" ; skos:broader :d ; skos:inScheme :s .'
        " :o skos:memberList (:c :d) .",
        "owl-rl+skos",
    )
    assert kb.check()
    assert ":d skos:narrowerTransitive :c" in kb
    assert ":o skos:member :d" in kb
    assert ":s a skos:ConceptScheme" in kb


# -- the command -----------------------------------------------------------------------------------


def test_exit_status_fits_a_job(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(
        PREFIXES
        + ":p a owl:ReflexiveProperty . :A rdfs:subClassOf :B, :C . :B owl:disjointWith :C ."
        ' :x :age "old"^^xsd:integer . :c a skos:Concept, skos:ConceptScheme .',
        "utf-8",
    )
    run = ("check", "o.ttl", "--json", "--quiet")
    done = call(*run, folder=tmp_path)
    report = json.loads(done.stdout)
    assert (done.returncode, report["consistent"]) == (0, True)
    kinds = ("unsatisfiable", "literals", "skos", "outside_profile")
    assert [len(report[kind]) for kind in kinds] == [1, 1, 1, 1]
    assert report["unsatisfiable"][0]["proof"]["premises"]
    for kind in ("unsatisfiable", "literals", "skos", "profile", "all"):
        assert call(*run, "--fail-on", kind, folder=tmp_path).returncode == 1
    assert call(*run, "--fail-on", "contradictions", folder=tmp_path).returncode == 0
    text = call("check", "o.ttl", "--quiet", folder=tmp_path).stdout
    assert text.startswith("consistent\n\ncannot have members: 1\n  the class :A cannot have")


def test_profile_alone(tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(PREFIXES + ":p a owl:ReflexiveProperty .", "utf-8")
    (tmp_path / "good.ttl").write_text(PREFIXES + ":x a :A .", "utf-8")
    done = call("check", "o.ttl", "--profile", "--quiet", folder=tmp_path)
    assert done.stdout.splitlines() == [
        "ReflexiveObjectProperty(:p)",
        "  OWL 2 RL has no reflexive properties",
    ]
    assert call("check", "good.ttl", "--profile", "--quiet", folder=tmp_path).stdout == (
        "all axioms are in OWL 2 RL\n"
    )
    done = call("check", "o.ttl", "--profile", "--fail-on", "profile", folder=tmp_path)
    assert done.returncode == 1


def test_profile_reads_the_values_of_data_properties() -> None:
    kb = checked(
        ':d a owl:DatatypeProperty . :x :d 1, "a", "b"@en, "1/2"^^owl:rational, "x"^^:own .'
        ' :own a rdfs:Datatype . :x :e "2026-01-01"^^xsd:date ; rdfs:label "l"^^xsd:date .'
    )
    [found] = kb.check().outside_profile
    assert found.axiom == 'DataPropertyAssertion(:d :x "1/2"^^owl:rational)'


def test_findings_of_an_unknown_kind() -> None:
    with pytest.raises(CorollaryError, match="E314"):
        KnowledgeBase().check().findings(["typos"])
