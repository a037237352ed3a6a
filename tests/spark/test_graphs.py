"""Named graphs on Spark: builds, updates, queries and streams equal the embedded engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corollary import spark as co
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.spark.streaming import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

DOMAIN = "<http://www.w3.org/2000/01/rdf-schema#domain>"
START = [
    "<urn:a> <urn:p> <urn:b> <urn:g>",
    "<urn:a> <urn:p> <urn:b> <urn:h>",
    "<urn:c> <urn:p> <urn:d>",
    f"<urn:p> {DOMAIN} <urn:C> <urn:g>",
]
INSERTED = ["<urn:e> <urn:p> <urn:f> <urn:g>", "<urn:c> <urn:p> <urn:d> <urn:h>"]
DELETED = ["<urn:a> <urn:p> <urn:b> <urn:g>", "<urn:c> <urn:p> <urn:d>"]
QUERIES = [
    "SELECT ?g ?s ?o { GRAPH ?g { ?s <urn:p> ?o } }",
    "SELECT ?s ?o FROM <urn:g> { ?s <urn:p> ?o }",
    "SELECT ?s { ?s a <urn:C> }",
    "SELECT ?s { GRAPH <urn:x-corollary:derived> { ?s a ?c } }",
]


def write(path: Path, statements: list[str]) -> Path:
    path.write_text("".join(f"{statement} .\n" for statement in statements))
    return path


def content(store: Path) -> tuple[list[str], list[str]]:
    """All statements with their graphs, and all triples."""
    kb = KnowledgeBase.open(store)
    quads = kb.facts("[?s, ?p, ?o] ?g").to_pylist()
    triples = kb.facts("[?s, ?p, ?o]").to_pylist()
    return sorted(map(str, quads)), sorted(map(str, triples))


def answers(kb: KnowledgeBase, query: str) -> list[str]:
    found = kb.query(query)
    assert not isinstance(found, bool)
    return sorted(str(tuple(row.values())) for row in found.to_pylist())


@pytest.mark.parametrize("way", ["update", "stream"])
def test_graphs_equal_those_of_the_embedded_engine(
    way: str, spark: SparkSession, tmp_path: Path
) -> None:
    data = write(tmp_path / "data.nq", START)
    co.build(tmp_path / "store", data, rules="rhodf", session=spark)
    kb = KnowledgeBase("rhodf")
    kb.load(data)
    kb.save(tmp_path / "embedded")
    assert content(tmp_path / "store") == content(tmp_path / "embedded")
    folder = tmp_path / "changes"
    folder.mkdir()
    inserted = write(folder / "1.insert.nq", INSERTED)
    deleted = write(folder / "2.delete.nq", DELETED)
    if way == "update":
        co.update(tmp_path / "store", insert=[inserted], session=spark)
        co.update(tmp_path / "store", delete=[deleted], session=spark)
    else:
        stream(tmp_path / "store", folder, session=spark, engine="spark", once=True)
    with kb.transaction() as tx:
        tx.load(inserted)
    with kb.transaction() as tx:
        tx.delete_from(deleted)
    assert content(tmp_path / "store") == content(tmp_path / "embedded")
    for query in QUERIES:
        frame = co.query(tmp_path / "store", query, session=spark)
        assert not isinstance(frame, bool)
        assert sorted(str(tuple(row)) for row in frame.collect()) == answers(kb, query), query
    KnowledgeBase.open(tmp_path / "store").state.reasoner.verify()


def test_axioms_hold_whatever_graphs_rules_read(spark: SparkSession, tmp_path: Path) -> None:
    data = write(tmp_path / "data.nq", START)
    co.build(tmp_path / "store", data, rules="owl-rl", reason_over=["<urn:g>"], session=spark)
    kb = KnowledgeBase("owl-rl", reason_over=["<urn:g>"])
    assert "owl:Thing a owl:Class" in kb
    kb.load(data)
    kb.save(tmp_path / "embedded")
    assert content(tmp_path / "store") == content(tmp_path / "embedded")
