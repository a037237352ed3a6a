"""Knowledge bases in stores: what is opened is what was there, and goes on as if never closed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from corollary import KnowledgeBase, rules
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.program import Program
from corollary.store import Store

PATHS = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."


def state(kb: KnowledgeBase) -> set[tuple[str, ...]]:
    """All facts with their flags, as text."""
    found = set()
    for relation in sorted(kb.state.arities):
        if not relation.startswith("_"):
            for row in kb.facts(relation).to_pylist():
                found.add((relation, *map(str, row.values())))
    for row in kb.facts("[?s, ?p, ?o]").to_pylist():
        found.add(("[]", *map(str, row.values())))
    return found


def change(
    kb: KnowledgeBase, insert: str = "", delete: str = "", *, add: str = "", remove: str = ""
) -> None:
    with kb.transaction() as tx:
        tx.insert(insert)
        tx.delete(delete)
        tx.add_rules(add)
        tx.remove_rules(remove)


def assert_follows(kb: KnowledgeBase, **options: object) -> None:
    """The facts are what follows from the explicit ones, from scratch."""
    fresh = KnowledgeBase(Program(kb.program.rules, (), {}, kb.program.constraints), **options)  # type: ignore[arg-type]
    with fresh.transaction() as tx:
        for relation in sorted(kb.state.arities):
            table = kb.facts(relation)
            if table.num_rows:
                own = table.filter(table["explicit"]).drop(["explicit"])
                if own.num_rows:
                    tx.insert(own, relation=relation)
        triples = kb.facts("[?s, ?p, ?o]")
        own = triples.filter(triples["explicit"]).drop(["explicit"])
        if own.num_rows:
            tx.insert(own)
    assert state(kb) == state(fresh)


def test_a_store_is_opened_as_it_was_saved(tmp_path: Path) -> None:
    kb = KnowledgeBase(
        PATHS + " r(?x, ?y, ?z, ?w) :- path(?x, ?y), path(?z, ?w) . yes() :- edge(1, 2) ."
    )
    with kb.transaction() as tx:
        tx.insert("edge(1, 2) . edge(2, 3) . path(1, 2) .")
        tx.insert('[<a>, <knows>, "b"@en] . [<a>, a, <C>] .')
    assert kb.save(tmp_path / "s", message="first") == 1
    again = KnowledgeBase.open(tmp_path / "s")
    assert state(again) == state(kb)
    assert (again.version, again.count(), again.program) == (1, kb.count(), kb.program)
    assert again.prefixes == kb.prefixes
    # Without the cache, from the tables:
    for path in (tmp_path / "s" / "cache").rglob("*.bin"):
        path.unlink()
    assert state(KnowledgeBase.open(tmp_path / "s")) == state(kb)
    assert list((tmp_path / "s" / "cache").rglob("*.bin"))  # made again


def test_transactions_are_commits(tmp_path: Path) -> None:
    kb = KnowledgeBase(PATHS)
    with kb.transaction() as tx:
        tx.insert("edge(1, 2) . edge(2, 3) .")
    kb.save(tmp_path / "s")
    kb = KnowledgeBase.open(tmp_path / "s")
    with kb.transaction(message="shortcut") as tx:
        tx.insert("path(1, 2) . edge(3, 4) .")
        tx.delete("edge(1, 2) .")
    assert tx.changes.version == kb.version == 2
    assert str(tx.changes).splitlines() == [
        "+ edge(3, 4)",
        "+ path(1, 4)",
        "+ path(2, 4)",
        "+ path(3, 4)",
        "- edge(1, 2)",
    ]
    again = KnowledgeBase.open(tmp_path / "s")
    assert state(again) == state(kb)
    assert_follows(again)
    with again.transaction() as tx:
        tx.add_rules("path(?y, ?x) :- path(?x, ?y) .")
        tx.remove_rules("path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .")
    third = KnowledgeBase.open(tmp_path / "s")
    assert third.version == 3
    assert third.program == again.program
    assert state(third) == state(again)
    assert_follows(third)
    old = KnowledgeBase.open(tmp_path / "s", at_version=1)
    assert old.count() == 5
    assert "edge(1, 2)" in old
    with pytest.raises(OperationFailed, match="not the newest"), old.transaction() as tx:
        tx.insert("edge(7, 8) .")
    commit = Store.open(tmp_path / "s").commit(2)
    assert commit.message == "shortcut"
    assert commit.statistics.inserted == 4
    assert commit.statistics.relations["path"] == (2, 1, 6)


def test_two_knowledge_bases_on_one_store(tmp_path: Path) -> None:
    KnowledgeBase(PATHS).save(tmp_path / "s")
    one, two = KnowledgeBase.open(tmp_path / "s"), KnowledgeBase.open(tmp_path / "s")
    with one.transaction() as tx:
        tx.insert("edge(1, 2) .")
    before = state(two)
    with pytest.raises(OperationFailed, match="another writer") as caught:
        change(two, "edge(5, 6) .", add="path(?y, ?x) :- path(?x, ?y) .")
    assert caught.value.code == "E502"
    assert state(two) == before
    assert (two.version, two.program) == (1, Program.parse(PATHS))
    again = KnowledgeBase.open(tmp_path / "s")
    assert again.count() == 2
    with again.transaction() as tx:
        tx.insert("edge(5, 6) .")
    assert KnowledgeBase.open(tmp_path / "s").count() == 4


def test_a_commit_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = KnowledgeBase(PATHS)
    with kb.transaction() as tx:
        tx.insert("edge(1, 2) . edge(2, 3) .")
    kb.save(tmp_path / "s")
    before = state(kb)

    def full(*arguments: object, **options: object) -> int:
        raise OperationFailed("E504", "no space left")

    for table in ("facts", "changes", "terms"):
        with monkeypatch.context() as patch:
            patch.setattr(getattr(kb.state.opened_store, table), "commit", full)
            rule = "path(?x, ?y) :- edge(?x, ?y) ."
            with pytest.raises(OperationFailed, match="no space left"):
                change(kb, f"edge(3, {table}) .", "edge(1, 2) .", remove=rule)
        assert state(kb) == before
        assert kb.version == 1
    with kb.transaction() as tx:  # and goes on, though terms may have been written
        tx.insert("edge(3, facts) . edge(3, more) .")
    assert state(KnowledgeBase.open(tmp_path / "s")) == state(kb)


ONTOLOGY = """
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://example.org/> .
:Student rdfs:subClassOf :Person . :Person rdfs:subClassOf :Agent . :knows a owl:SymmetricProperty .
:partOf a owl:TransitiveProperty . :head rdfs:subPropertyOf :member . :member rdfs:range :Agent .
:email a owl:InverseFunctionalProperty . :ann a :Student ; :knows :bob ; :email "x" .
:anna :email "x" ; :partOf :lab . :lab :partOf :uni . :uni :partOf :world . :bob :head :lab .
"""
EDITS = [
    (":carl a :Student ; :knows :ann .", ":ann :knows :bob ."),
    (":Agent rdfs:subClassOf :Thing .", ":Student rdfs:subClassOf :Person ."),
    (":bob :email 'x' .", ":lab :partOf :uni ."),
    ("", ":anna :email 'x' . :Agent rdfs:subClassOf :Thing ."),
]


@pytest.mark.parametrize(
    ("name", "equality"),
    [("owl-rl", "rules"), ("owl-rl", "rewrite"), ("rdfs", "rules"), ("owl-horst", "rules")],
)
def test_ontologies_go_on_after_opening(tmp_path: Path, name: str, equality: str) -> None:
    kb = KnowledgeBase(rules(name), equality=equality)
    with kb.transaction() as tx:
        tx.insert(ONTOLOGY)
    kb.save(tmp_path / "s")
    for insert, delete in EDITS:
        opened = KnowledgeBase.open(tmp_path / "s")
        assert state(opened) == state(kb)
        for one in (kb, opened):
            if one is kb:
                one.state.store = None  # it goes on in memory
            with one.transaction() as tx:
                tx.insert(insert)
                tx.delete(delete)
        assert state(opened) == state(kb)
        assert {(c.rule, c.count) for c in opened.inconsistencies()} == {
            (c.rule, c.count) for c in kb.inconsistencies()
        }
    assert_follows(KnowledgeBase.open(tmp_path / "s"), equality=equality)


def test_a_folder_with_a_store_is_not_overwritten(tmp_path: Path) -> None:
    KnowledgeBase("p(1) .").save(tmp_path / "s")
    with pytest.raises(InvalidInput, match="there is a store in"):
        KnowledgeBase("p(2) .").save(tmp_path / "s")
    assert KnowledgeBase.open(tmp_path / "s").count() == 1


def test_an_empty_store_may_be_filled(tmp_path: Path) -> None:
    Store.create(tmp_path / "s")
    assert KnowledgeBase.open(tmp_path / "s").count() == 0
    assert KnowledgeBase("p(1) .").save(tmp_path / "s") == 1


def test_auxiliary_and_aggregate_relations_are_made_again(tmp_path: Path) -> None:
    text = """
    _even(?x) :- _start(?x) . _even(?z) :- _even(?x), next(?x, ?y), next(?y, ?z) .
    even(?x) :- _even(?x) .
    degree(?x, ?n) :- node(?x), AGGREGATE(next(?x, ?y) ON ?x BIND count(?y) AS ?n) .
    """
    kb = KnowledgeBase(text)
    with kb.transaction() as tx:
        tx.insert("_start(0) . next(0, 1) . next(1, 2) . next(2, 3) . next(3, 4) .")
        tx.insert("node(0) . node(3) .")
    kb.save(tmp_path / "s")
    for change in ("next(4, 5) . next(5, 6) .", "next(0, 7) . next(7, 8) ."):
        opened = KnowledgeBase.open(tmp_path / "s")
        assert state(opened) == state(kb)
        kb.state.store = None
        for one in (kb, opened):
            with one.transaction() as tx:
                tx.insert(change)
                tx.delete("next(1, 2) .")
        assert state(opened) == state(kb)


def test_rows_of_arrow_are_committed(tmp_path: Path) -> None:
    KnowledgeBase("").save(tmp_path / "s")
    kb = KnowledgeBase.open(tmp_path / "s")
    kb.load(pa.table({"a": [1, 2], "b": ["x", "y"]}), relation="pair")
    assert state(KnowledgeBase.open(tmp_path / "s")) == state(kb)


def test_auxiliary_facts_are_no_results(tmp_path: Path) -> None:
    """Stores keep those that are explicit, and show none, as knowledge bases in memory do."""
    kb = KnowledgeBase("z(?x) :- _a(?x, ?y) . _a(1, 2) . _a(3, 4) . _a(5, 6) .")
    kb.save(tmp_path / "s")
    opened = KnowledgeBase.open(tmp_path / "s")
    assert (
        (opened.count("_a"), opened.count("z"), opened.count())
        == (0, 3, 3)
        == (
            kb.count("_a"),
            kb.count("z"),
            kb.count(),
        )
    )
    with opened.transaction() as tx:
        tx.delete("_a(5, 6) .")
    assert [(sign, str(atom.relation)) for sign, atom in tx.changes] == [("-", "z")]
    for again in (opened, KnowledgeBase.open(tmp_path / "s")):
        assert (again.count("_a"), again.count("z"), again.count()) == (0, 2, 2)
    with opened.transaction() as tx:
        tx.insert("_a(7, 8) .")
    assert KnowledgeBase.open(tmp_path / "s").facts("z")["arg0"].to_pylist() == ["1", "3", "7"]
