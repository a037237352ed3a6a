"""rdflib's store plugin, SHACL shapes, and log records."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import rdflib

from corollary import CorollaryError, KnowledgeBase
from corollary.knowledge_base.rdflib_store import CorollaryStore
from tests.cli.calls import call

EX = rdflib.Namespace("http://example.org/")
ROOT = Path(__file__).parents[2]
DATA = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Cat rdfs:subClassOf :Pet . :tom a :Cat .
"""


def test_a_graph_that_reasons(tmp_path: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module, _, name = declared["entry-points"]["rdf.plugins.store"]["corollary"].partition(":")
    rdflib.plugin.register("corollary", rdflib.store.Store, module, name)
    graph = rdflib.Graph(store="corollary").parse(data=DATA, format="turtle")
    assert (EX.tom, rdflib.RDF.type, EX.Pet) in graph
    row: Any
    [row] = graph.query("SELECT ?x { ?x a <http://example.org/Pet> }")
    assert row[0] == EX.tom
    bound = graph.query("SELECT ?c { ?x a ?c }", initBindings={"c": EX.Pet})
    assert len(list(bound)) >= 1
    assert graph.query("ASK { ?x a <http://example.org/Pet> }").askAnswer is True
    made = graph.query("CONSTRUCT { ?x a <urn:C> } WHERE { ?x a <http://example.org/Pet> }").graph
    assert made is not None
    assert len(made) == 1
    graph.remove((EX.tom, None, None))
    assert (EX.tom, rdflib.RDF.type, EX.Pet) not in graph
    graph.add((EX.rex, rdflib.RDF.type, EX.Cat))
    assert EX.rex in set(graph.subjects(rdflib.RDF.type, EX.Pet))
    assert len(graph) == len(list(graph)) > 2


def test_updates_and_queries_as_rdflib_has_them(tmp_path: Path) -> None:
    graph = rdflib.Graph(store=CorollaryStore()).parse(data=DATA, format="turtle")
    graph.bind("ex", EX)
    graph.update("INSERT DATA { ex:rex a ex:Cat ; ex:age 3 }")
    assert (EX.rex, rdflib.RDF.type, EX.Pet) in graph
    graph.update("DELETE { ?x a ex:Cat } WHERE { ?x a ex:Pet }")  # by a derived triple
    assert list(graph.subjects(rdflib.RDF.type, EX.Pet)) == []
    named: Any = {"initNs": {"e": EX}, "initBindings": {"x": EX.rex}}
    graph.update("INSERT { ?x a e:Cat } WHERE { ?x e:age 3 }", **named)
    assert [*graph.subjects(rdflib.RDF.type, EX.Pet)] == [EX.rex]
    assert len(graph.query("SELECT ?c { ?x a ?c }", **named)) == 2
    prepared = rdflib.plugins.sparql.prepareQuery("SELECT ?x { ?x a <http://example.org/Pet> }")
    assert len(graph.query(prepared)) == 1
    store: Any = graph.store
    assert str(store.knowledge_base.explain((EX.rex, "a", EX.Pet))).startswith("[ex:rex, a, ex:Pet")
    for ask in (graph.query, graph.update):
        with pytest.raises(CorollaryError, match=r"<(query|update)>:1:1: E560"):
            ask("SELEC ?x")


def test_generalized_triples_are_not_in_a_graph() -> None:
    store = CorollaryStore("[?y, <urn:q>, ?x] :- [?x, <urn:p>, ?y] .")
    graph = rdflib.Graph(store=store)
    graph.add((EX.a, rdflib.URIRef("urn:p"), rdflib.Literal(1)))
    graph.add((EX.a, rdflib.URIRef("urn:p"), EX.b))
    assert len(store.knowledge_base) == 4
    assert len(graph) == len(list(graph)) == 3


def test_changes_are_one_transaction_when_the_graph_is_read() -> None:
    store = CorollaryStore("rhodf")
    graph = rdflib.Graph(store=store)
    for number in range(5):
        graph.add((EX[f"x{number}"], rdflib.RDF.type, EX.C))
    assert len(graph) == 5
    assert store.knowledge_base.version == 1
    graph.add((EX.y, rdflib.RDF.type, EX.C))
    graph.rollback()
    assert len(graph) == 5


def test_a_graph_over_a_store(tmp_path: Path) -> None:
    path = str(tmp_path / "pets.store")
    graph = rdflib.Graph(store=CorollaryStore())
    graph.parse(data=DATA, format="turtle")
    graph.open(path, create=True)
    assert (EX.tom, rdflib.RDF.type, EX.Pet) in KnowledgeBase.open(path)
    other = rdflib.Graph(store=CorollaryStore())
    other.open(path)
    other.add((EX.rex, rdflib.RDF.type, EX.Cat))
    other.close()
    assert (EX.rex, rdflib.RDF.type, EX.Pet) in KnowledgeBase.open(path)


SHAPES = """
@prefix : <http://example.org/> . @prefix sh: <http://www.w3.org/ns/shacl#> .
:PetShape a sh:NodeShape ; sh:targetClass :Pet ;
  sh:property [ sh:path :name ; sh:minCount 1 ; sh:message "a pet has a name" ] .
"""


def test_shapes_see_derived_triples(tmp_path: Path) -> None:
    pytest.importorskip("pyshacl")
    (tmp_path / "pets.ttl").write_text(DATA, "utf-8")
    (tmp_path / "shapes.ttl").write_text(SHAPES, "utf-8")
    run = ("check", "pets.ttl", "--shapes", "shapes.ttl", "--quiet")
    done = call(*run, folder=tmp_path)
    assert done.returncode == 1
    assert "violated SHACL shapes: 1" in done.stdout
    [found] = json.loads(call(*run, "--json", folder=tmp_path).stdout)["shapes"]
    assert (found["message"], found["severity"]) == ("a pet has a name", "Violation")
    named = DATA + ':tom :name "Tom" .'
    (tmp_path / "pets.ttl").write_text(named, "utf-8")
    assert call(*run, folder=tmp_path).returncode == 0
    (tmp_path / "shapes.ttl").write_text("no turtle", "utf-8")
    assert call(*run, folder=tmp_path).returncode == 2
    assert call("check", "pets.ttl", "--shapes", "no.ttl", folder=tmp_path).returncode == 2


def test_log_records(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kb = KnowledgeBase("q(?x) :- p(?x) .")
    kb.save(tmp_path / "p.store")
    with caplog.at_level("INFO", logger="corollary"):
        kb.insert("p(1)")
        KnowledgeBase.open(tmp_path / "p.store")
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("<changes of version 2: +2 -0> by ")
    assert second == f"opened {tmp_path / 'p.store'} at version 2"
