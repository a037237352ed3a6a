"""Knowledge bases over RDF, and the constraints that their facts contradict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import corollary as co
from corollary import KnowledgeBase
from corollary.errors import InvalidInput
from tests.test_knowledge_base import EXAMPLE, rdflib_graph

# -- RDF ------------------------------------------------------------------------------------------


def test_blank_nodes_of_texts_and_objects_keep_their_labels() -> None:
    kb = KnowledgeBase()
    text = "@prefix : <http://example.org/> . _:x :p _:y ."
    for data in (text, pa.table({"s": ["_:x"], "p": ["http://example.org/p"], "o": ["_:y"]})):
        with kb.transaction() as tx:
            tx.insert(data)
        assert kb.count("[_:x, :p, _:y]") == 1
    with kb.transaction() as tx:
        tx.insert("[] :p [] . [] :p [] .")
        tx.insert("[] :p [] .")
    assert kb.count() == 4
    with kb.transaction() as tx:
        tx.delete(kb.facts("[?s, ?p, ?o]"))  # what is shown reads back
    assert kb.count() == 0


def test_tables_of_triples() -> None:
    kb = KnowledgeBase("@prefix : <http://example.org/> .")
    property_ = "http://example.org/p"
    with kb.transaction() as tx:
        tx.insert(pl.DataFrame({"s": ["urn:a", "urn:b"], "p": [property_] * 2, "o": [1, 2]}))
        tx.insert([("<urn:c>", ":p", '"two words"'), ("<urn:c>", ":p", '"http://no.iri"')])
        tx.insert(pa.table({"subject": ["urn:d"], "predicate": [property_], "object": ["urn:a"]}))
    assert kb.count("[?s, :p, 1]") == kb.count('[?s, :p, "two words"]') == 1
    shown = kb.facts("[?s, :p, ?o]").drop_columns(["explicit"]).to_pandas()
    with kb.transaction() as tx:
        tx.delete(shown)
    assert kb.count() == 0


def test_statements_that_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> .\n<urn:a> <urn:p> <urn:b> .\n", "utf-8")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.ttl").write_text("<urn:c> <urn:p> <urn:d> .", "utf-8")
    kb = KnowledgeBase()
    with pytest.raises(InvalidInput):
        kb.load(tmp_path)
    table = pa.table(
        {"subject": ["urn:e", ""], "predicate": ["urn:p"] * 2, "object": ["urn:f"] * 2}
    )
    seen: list[Any] = []
    changes = kb.load(tmp_path, table, on_error="skip", on_progress=seen.append)
    assert (len(changes), changes.skipped, kb.count()) == (3, 2, 3)
    assert sorted(sample.line or 0 for sample in changes.samples) == [1, 2]
    assert seen[-1].statements == 2
    assert kb.load(tmp_path / "deep").skipped == 0


def test_prefixes_of_files_and_graphs(tmp_path: Path) -> None:
    (tmp_path / "a.rdf").write_text(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="urn:ex:">'
        '<ex:C rdf:about="urn:ex:a"/></rdf:RDF>',
        "utf-8",
    )
    kb = KnowledgeBase()
    kb.load(tmp_path / "a.rdf")
    graph = rdflib_graph()
    graph.bind("e", EXAMPLE)
    kb.load(graph)
    assert kb.count("[ex:a, a, ex:C]") == kb.count("[e:john, ?p, e:math]") == 1


def test_mistakes_in_texts_have_their_place() -> None:
    kb = KnowledgeBase("@prefix : <http://example.org/> .")
    for text, line, column in ((":a :b .", 1, 7), (":a :b :c .\n:a :b .", 2, 7)):
        with pytest.raises(InvalidInput) as caught, kb.transaction() as tx:
            tx.insert(text)
        assert (caught.value.code, caught.value.file) == ("E320", "<text>")
        assert (caught.value.line, caught.value.column) == (line, column)


# -- constraints ----------------------------------------------------------------------------------


def test_inconsistencies_come_and_go() -> None:
    kb = KnowledgeBase(co.rules("owl-rl"))
    assert kb.inconsistencies() == []
    with kb.transaction() as tx:
        tx.insert("@prefix : <urn:> . :C owl:disjointWith :D . :E rdfs:subClassOf :C .")
        tx.insert("@prefix : <urn:> . :a a :E, :D . :b a :C, :D . :c a :D .")
    facts = kb.count()
    [found] = kb.inconsistencies(limit=1)
    assert (found.name, found.count, len(found.proofs)) == ("cax-dw", 2, 1)
    assert [len(one.proofs) for one in kb.inconsistencies(limit=None)] == [2]
    proof = found.proofs[0]
    assert (proof.kind, proof.rule) == ("derived", found.rule)
    assert {*proof.premises} <= {*proof.nodes()}
    assert all(premise.fact in kb for premise in proof.premises)
    assert found.to_json()["proofs"][0]["premises"]
    assert str(found).startswith("cax-dw is contradicted in 2 ways\n  false   by [cax-dw]\n")
    assert kb.count() == facts, "constraints are never mixed with facts"
    with kb.transaction() as tx:
        tx.delete("@prefix : <urn:> . :a a :D . :b a :D .")
    assert kb.inconsistencies() == []
    assert str(found), "what was found is a value"


def test_constraints_are_rules_that_come_and_go() -> None:
    kb = KnowledgeBase("[one] false :- p(?x), NOT q(?x) . p(1) . p(2) .")
    assert [one.count for one in kb.inconsistencies()] == [2]
    with kb.transaction() as tx:
        tx.remove_rules("false :- p(?y), NOT q(?y) .")
        tx.add_rules("[two] false :- p(?x), p(?y), FILTER(?x < ?y) .")
    assert [rule.name for rule in tx.changes.added_rules] == ["two"]
    assert [(one.name, one.count) for one in kb.inconsistencies()] == [("two", 1)]


def test_constraints_over_aggregates() -> None:
    kb = KnowledgeBase(
        "[many] false :- AGGREGATE(p(?x, ?y) ON ?x BIND count(?y) AS ?n), FILTER(?n > 1) ."
        "p(1, 1) . p(1, 2) . p(3, 1) ."
    )
    assert str(*kb.inconsistencies()).splitlines()[1:] == [
        "  false   by [many]",
        "  └─ AGGREGATE(p(1, ?y) ON 1 BIND count(?y) AS 2)   computed from",
    ]


def test_constraints_over_auxiliary_relations() -> None:
    kb = KnowledgeBase("_q(?x) :- p(?x) . [none] false :- _q(?x), r(?x) . p(1) . r(1) .")
    assert str(*kb.inconsistencies()) == (
        "none is contradicted in 1 way\n"
        "  false   by [none]\n"
        "  ├─ _q(1)   by _q(?x) :- p(?x)\n"
        "  │  └─ p(1)   explicit\n"
        "  └─ r(1)   explicit"
    )


def test_auxiliary_relations_are_no_results() -> None:
    kb = KnowledgeBase("_q(?x) :- p(?x, ?y) . r(?x) :- _q(?x) .")
    with kb.transaction() as tx:
        tx.insert("p(1, 2) .")
    assert str(tx.changes) == "+ p(1, 2)\n+ r(1)"
    assert kb.count() == 2
    assert kb.explain("r(1)").height == 2
