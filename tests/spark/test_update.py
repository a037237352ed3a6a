"""Updates on Spark: exact changes, committed once, on the terms that the store has."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corollary import spark as co
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import read_rules
from corollary.store import Store
from tests.spark.data import embedded, held, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
DYNAMITE = SHARED / "dynamite"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def put(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line} .\n" for line in lines))
    return path


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Path:
    data = put(
        tmp_path / "data.nt",
        f"<urn:A> {SUB} <urn:B>",
        f"<urn:B> {SUB} <urn:C>",
        f"<urn:x> {TYPE} <urn:A>",
        f"<urn:y> {TYPE} <urn:B>",
        f"_:z {TYPE} <urn:A>",
    )
    co.build(tmp_path / "store", data, rules="rhodf", session=spark)
    return tmp_path / "store"


def terms(store: Path) -> list[str]:
    found: list[str] = Store.open(store).snapshot().terms()["term"].to_pylist()
    return found


def changed(store: Path, version: int) -> set[tuple[Any, ...]]:
    """What the changes table says of a version."""
    texts = terms(store)
    table = Store.open(store).changes.open().to_pyarrow_table()
    return {
        (row["change"], row["explicit"], *(texts[row[f"arg{place}"]] for place in range(3)))
        for row in table.to_pylist()
        if row["version"] == version
    }


def test_facts_axioms_and_rules(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    known = terms(store)
    more = put(tmp_path / "more.nt", f"<urn:new> {TYPE} <urn:A>", f"<urn:x> {TYPE} <urn:C>")
    less = put(tmp_path / "less.nt", f"<urn:x> {TYPE} <urn:A>", f"<urn:no> {TYPE} <urn:A>")
    built = co.update(store, insert=[more], delete=[less], session=spark, message="one")
    assert (built.version, built.inserted, built.deleted) == (2, 3, 2)
    # What was known keeps its id, and nothing is encoded twice.
    assert terms(store)[: len(known)] == known
    assert {*terms(store)[len(known) :]} <= {"<urn:new>", "<urn:no>"}
    a, b, c = "<urn:A>", "<urn:B>", "<urn:C>"
    assert changed(store, 2) == {
        ("inserted", True, "<urn:new>", TYPE, a),
        ("inserted", False, "<urn:new>", TYPE, b),
        ("inserted", False, "<urn:new>", TYPE, c),
        ("deleted", True, "<urn:x>", TYPE, a),
        ("deleted", False, "<urn:x>", TYPE, b),
        ("explicit", True, "<urn:x>", TYPE, c),
    }
    axiom = put(tmp_path / "axiom.nt", f"<urn:B> {SUB} <urn:C>")
    built = co.update(store, delete=[axiom], session=spark, batch="the axiom")
    assert Store.open(store).commit().batch == "the axiom"
    rule = tmp_path / "rule.dl"
    rule.write_text("[?x, a, <urn:D>] :- [?x, a, <urn:A>], [?x, a, <urn:B>] .")
    built = co.update(store, add_rules=[str(rule)], session=spark)
    rows = stored(store)
    assert {row[2] for row in rows if row[4] == "<urn:D>"} == {"_:z", "<urn:new>"}
    kb = KnowledgeBase.open(store)
    kb.state.reasoner.verify()
    assert held(kb) == rows
    assert (built.facts, built.explicit) == (len(rows), sum(1 for row in rows if row[0]))
    co.update(store, remove_rules=[str(rule)], session=spark)
    assert not any(row[4] == "<urn:D>" for row in stored(store))


def test_engines_alternate_on_one_store(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    """What either one commits, the other one goes on from."""
    one = put(tmp_path / "one.nt", f"<urn:one> {TYPE} <urn:A>")
    axiom = put(tmp_path / "axiom.nt", f"<urn:C> {SUB} <urn:D>")
    kb = KnowledgeBase.open(store)
    with kb.transaction() as tx:
        tx.insert("<urn:two> a <urn:B> . <urn:B> rdfs:subClassOf <urn:E> .")
    co.update(store, insert=[one, axiom], session=spark)
    kb = KnowledgeBase.open(store)
    assert kb.version == 3
    with kb.transaction() as tx:
        tx.delete("<urn:B> rdfs:subClassOf <urn:C> .")
    co.update(store, delete=[one], session=spark)
    kb = KnowledgeBase.open(store)
    kb.state.reasoner.verify()
    assert held(kb) == stored(store)
    classes = {row[4] for row in stored(store) if row[2] == "<urn:two>" and row[3] == TYPE}
    assert classes == {"<urn:B>", "<urn:E>"}
    assert not any(row[2] == "<urn:one>" for row in stored(store))
    assert [kb.count(f"[?x, a, <urn:{name}>]") for name in "ABCDE"] == [2, 4, 0, 0, 4]


def test_blank_nodes_are_deleted_by_the_labels_of_the_store(
    spark: SparkSession, store: Path, tmp_path: Path
) -> None:
    [label] = [term for term in terms(store) if term.startswith("_:")]
    built = co.update(
        store, delete=[put(tmp_path / "z.nt", f"{label} {TYPE} <urn:A>")], session=spark
    )
    assert built.deleted == 3
    # In an inserted document they are its own.
    built = co.update(store, insert=[put(tmp_path / "z.nt", f"_:z {TYPE} <urn:A>")], session=spark)
    assert built.inserted == 3
    assert len([term for term in terms(store) if term.startswith("_:")]) == 2


def test_a_failed_update_changes_nothing(
    spark: SparkSession, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(store)
    bad = tmp_path / "bad.nt"
    bad.write_text("oops\n")
    with pytest.raises(InvalidInput) as caught:
        co.update(store, insert=[bad], session=spark)
    assert (caught.value.code, caught.value.line) == ("E320", 1)
    good = put(tmp_path / "good.nt", f"<urn:new> {TYPE} <urn:A>")
    from corollary.knowledge_base.spark import updating

    def full(*arguments: Any, **options: Any) -> int:
        raise OperationFailed("E542", "no space")

    monkeypatch.setattr(updating, "_write", full)
    with pytest.raises(OperationFailed):
        co.update(store, insert=[good], session=spark)
    assert Store.open(store).latest() == 1
    assert stored(store) == before
    monkeypatch.undo()
    co.update(store, insert=[good], session=spark)
    assert len(stored(store)) == len(before) + 3


@pytest.mark.long
@pytest.mark.skipif(not DYNAMITE.exists(), reason="no ../shared/data/dynamite")
def test_the_updates_of_dynamite(spark: SparkSession, tmp_path: Path) -> None:
    base = DYNAMITE / "base-onto+U0.nt.gz"
    built = co.build(tmp_path / "store", base, rules="rhodf", session=spark)
    assert built.facts == 127_309
    kb = KnowledgeBase(read_rules("rhodf"))
    kb.load(base)
    for number in range(1, 5):
        for kind in ("add", "remove"):
            file = DYNAMITE / "updates" / f"{kind}_update{number}" / "update.nt.gz"
            asked: dict[str, Any] = {"insert" if kind == "add" else "delete": [file]}
            built = co.update(tmp_path / "store", session=spark, **asked)
            with kb.transaction() as tx:
                if kind == "add":
                    tx.load(file)
                else:
                    tx.delete_from(file)
            assert (built.inserted, built.deleted) == (
                tx.changes.inserted.num_rows,
                tx.changes.deleted.num_rows,
            )
            assert built.facts == kb.count()
    found = stored(tmp_path / "store")
    explicit = tmp_path / "explicit.nt.gz"
    rows = [" ".join(map(str, row[2:])) + " .\n" for row in found if row[0]]
    explicit.write_bytes(gzip.compress("".join(rows).encode()))
    assert found == embedded([explicit], "rhodf") == held(kb)


def test_patterns_about_relations_without_rules(spark: SparkSession, tmp_path: Path) -> None:
    """A hybrid store keeps a pattern when no rule mentions its relation any more."""
    path, program, rules = tmp_path / "store", tmp_path / "p.dl", tmp_path / "rules.dl"
    rules.write_text("q(?x) :- p(?x) .")
    program.write_text("q(?x) :- p(?x) . q(7) . p(1) .")
    more = put(tmp_path / "more.dl", "p(2)", "q(8)")
    co.build(path, program, rules="none", mode="hybrid", materialize=["q(?x)"], session=spark)
    co.update(path, remove_rules=[rules], session=spark)
    co.update(path, insert=[more], session=spark)
    found = {row["arg0"] for row in KnowledgeBase.open(path).facts("q").to_pylist()}
    assert found == {"7", "8"}
