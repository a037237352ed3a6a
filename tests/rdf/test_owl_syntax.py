"""Functional, Manchester and OWL/XML syntax."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary import CorollaryError, KnowledgeBase
from corollary.rdf import owl_syntax

DOCUMENTS = {
    "ofn": """# pets
Prefix(:=<http://e/>)
Ontology(<http://e/o> Declaration(Class(:A)) SubClassOf(:A :B) DisjointClasses(:A :C :D)
ClassAssertion(:A :x) ClassAssertion(:A _:anyone) ObjectPropertyAssertion(:p :x _:anyone)
DataPropertyAssertion(:name :x "say \\"hi\\" _:no"))
""",
    "omn": """Prefix: : <http://e/>
Ontology: <http://e/o>
Class: :A
  SubClassOf: :B
Class: :B
Class: :C
Class: :D
DisjointClasses: :A, :C, :D
ObjectProperty: :p
DataProperty: :name
Individual: :x
  Types: :A
  Facts: :p _:anyone, :name "say \\"hi\\" _:no"
Individual: _:anyone
  Types: :A
""",
    "owx": """<?xml version="1.0"?>
<!-- pets -->
<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://e/o">
<Prefix name="" IRI="http://e/"/>
<SubClassOf><Class abbreviatedIRI=":A"/><Class abbreviatedIRI=":B"/></SubClassOf>
<DisjointClasses>
<Class abbreviatedIRI=":A"/><Class abbreviatedIRI=":C"/><Class abbreviatedIRI=":D"/>
</DisjointClasses>
<ClassAssertion><Class abbreviatedIRI=":A"/><NamedIndividual abbreviatedIRI=":x"/></ClassAssertion>
<ClassAssertion><Class abbreviatedIRI=":A"/>
<AnonymousIndividual nodeID="_:anyone"/></ClassAssertion>
<ObjectPropertyAssertion><ObjectProperty abbreviatedIRI=":p"/>
<NamedIndividual abbreviatedIRI=":x"/><AnonymousIndividual nodeID="_:anyone"/>
</ObjectPropertyAssertion>
<DataPropertyAssertion><DataProperty abbreviatedIRI=":name"/><NamedIndividual abbreviatedIRI=":x"/>
<Literal>say "hi" _:no</Literal></DataPropertyAssertion>
</Ontology>
""",
}


@pytest.mark.parametrize("suffix", ["own", "owl", "ttl", "rdf", "txt", "protege"])
@pytest.mark.parametrize("syntax", DOCUMENTS)
def test_documents_are_recognized_by_content(syntax: str, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"pets.{syntax if suffix == 'own' else suffix}"
    file.write_text(DOCUMENTS[syntax], "utf-8")
    kb = KnowledgeBase("owl-rl")
    kb.load(file)
    for fact in (":x a :B", ":A owl:disjointWith :C", ":A owl:disjointWith :D"):
        assert fact in kb
    assert ":C owl:disjointWith :D" in kb or ":D owl:disjointWith :C" in kb
    assert kb.count("[?x, a, :B]") == 2
    [row] = kb.match(":x", ":p").to_pylist()
    assert kb.match(row["object"], "a", ":A").to_pylist()
    assert kb.match(":x", ":name").to_pylist(native=True)[0]["object"] == 'say "hi" _:no'
    assert kb.prefixes[""] == "http://e/"


def test_other_files_with_unknown_names_are_refused(tmp_path: Path) -> None:
    for number, text in enumerate(("some notes", "<urn:a> <urn:b> <urn:c> .", "")):
        file = tmp_path / f"notes{number}.txt"
        file.write_text(text, "utf-8")
        with pytest.raises(CorollaryError) as error:
            KnowledgeBase("owl-rl").load(file)
        assert error.value.code == "E341"


def test_other_documents_are_not_taken_for_owl() -> None:
    for head in (b"<rdf:RDF>", b"@prefix Prefix: <urn:> .", b"Prefix:a Prefix:b Prefix:c .", b""):
        assert owl_syntax.syntax_of(head) is None


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad.ofn"
    bad.write_text("Prefix(:=<http://e/>)\nOntology(SubClassOf(:A))", "utf-8")
    with pytest.raises(CorollaryError) as caught:
        KnowledgeBase().load(bad)
    assert (caught.value.code, caught.value.line) == ("E361", 2)
    deep = tmp_path / "deep.ofn"
    nested = "ObjectComplementOf(" * 20_000 + ":B" + ")" * 20_000
    deep.write_text(f"Prefix(:=<http://e/>) Ontology(SubClassOf(:A {nested}))", "utf-8")
    with pytest.raises(CorollaryError) as caught:
        KnowledgeBase().load(deep)
    assert caught.value.code == "E325"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CorollaryError, match=r"corollary\[owl\]") as caught:
        KnowledgeBase().load(bad)
    assert caught.value.code == "E403"
