"""Refreshing: an open knowledge base that follows the commits of others is what opening gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from corollary import InvalidInput, KnowledgeBase, Program
from corollary.knowledge_base import refreshing
from corollary.knowledge_base.purging import purge
from corollary.knowledge_base.state import KnowledgeState
from corollary.lang import reference
from corollary.query.results import Solutions
from corollary.store import Store, compaction
from corollary.store.delta import Table
from tests.effort import first
from tests.test_stored_streams import explicit, facts, visible, writable

QUERIES = (
    "SELECT * { ?s ?p ?o }",
    "SELECT ?x { ?x a ?c }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * FROM <urn:x-corollary:explicit> { ?s ?p ?o }",
)
ONTOLOGY = """
@prefix : <urn:> .
:Chair rdfs:subClassOf :Professor . :Professor rdfs:subClassOf :Person .
:headOf rdfs:subPropertyOf :worksFor . :worksFor rdfs:domain :Person .
:ann a :Chair ; :headOf :lab .
"""


def answers(kb: KnowledgeBase) -> list[list[str]]:
    """The answers to all queries, whose tables a knowledge base keeps."""
    found = []
    for query in QUERIES:
        solutions = kb.query(query)
        assert isinstance(solutions, Solutions)
        found.append(sorted(map(str, solutions.to_pylist())))
    return found


def same(one: KnowledgeBase, path: Path) -> None:
    """The knowledge base equals one that is opened now."""
    fresh = KnowledgeBase.open(path)
    assert one.version == fresh.version
    assert facts(one) == facts(fresh)
    assert explicit(one) == explicit(fresh)
    assert one.program == fresh.program
    assert one.prefixes == fresh.prefixes
    assert one.state.arities == fresh.state.arities
    assert one.state.axioms.asserted == fresh.state.axioms.asserted
    assert answers(one) == answers(fresh)


@pytest.fixture
def reopened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions at which a store was opened again."""
    found: list[int] = []
    reopen = refreshing._reopen

    def counted(state: KnowledgeState) -> None:
        found.append(state.version)
        reopen(state)

    monkeypatch.setattr(refreshing, "_reopen", counted)
    return found


@pytest.mark.parametrize("seed", first(4, range(12)))
def test_oracle_readers_follow_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, reopened: list[int]
) -> None:
    monkeypatch.setattr(compaction, "SMALL_FILES", 4)
    found, random = writable(700 + seed), Random(seed)
    path = tmp_path / "s"
    KnowledgeBase(found.program).save(path)
    rules, known = Program.of(found.program.rules), set(found.program.facts)
    readers = [KnowledgeBase.open(path) for _ in range(2)]
    changed_rules = 0
    for commit in found.commits:
        with readers[0].transaction() as tx:  # a reader that also writes
            tx.delete(commit.deleted)
            tx.insert(commit.inserted)
            tx.remove_rules(commit.removed)
            tx.add_rules(commit.added)
        changed_rules += bool(commit.removed or commit.added)
        rules = rules.removed(*commit.removed).added(*commit.added)
        known = (known - commit.deleted) | commit.inserted
        if random.random() < 0.3:
            continue  # the next refresh follows several commits
        readers[1].refresh()
        assert visible(facts(readers[1])) == visible(set(reference.materialize(rules, known)))
        same(readers[1], path)
        readers.reverse()
    assert len(reopened) <= 2 * changed_rules


@pytest.mark.parametrize(
    "options",
    [{}, {"equality": "rewrite"}, {"mode": "hybrid"}],
    ids=("rules", "representatives", "hybrid"),
)
def test_readers_of_ontologies(
    tmp_path: Path, options: dict[str, str], reopened: list[int]
) -> None:
    writer = KnowledgeBase("owl-rl", **options)  # type: ignore[arg-type]
    writer.insert(ONTOLOGY)
    path = tmp_path / "s"
    writer.save(path)
    reader = KnowledgeBase.open(path)
    same(reader, path)
    random = Random(7)
    for number in range(12):
        person, other = f":p{random.randrange(4)}", f":p{random.randrange(4)}"
        text = random.choice(
            (
                f"{person} a :Chair .",
                f"{person} :headOf :lab{number} .",
                f"{person} owl:sameAs {other} .",
                f":g {{ {person} a :Professor }}",
                ":Lab rdfs:subClassOf :Place .",
            )
        )
        (writer.delete if random.random() < 0.3 else writer.insert)(f"@prefix : <urn:> . {text}")
        reader.refresh()
        same(reader, path)
    # Queries of hybrid mode give terms ids that the store does not know.
    assert not reopened or options.get("mode") == "hybrid"


def test_new_prefixes_terms_and_axioms_of_the_data(tmp_path: Path, reopened: list[int]) -> None:
    writer = KnowledgeBase("[?x, a, <urn:C>] :- [?x, a, <urn:D>] . [<urn:D>, <urn:p>, <urn:C>] .")
    path = tmp_path / "s"
    writer.save(path)
    reader = KnowledgeBase.open(path)
    writer.insert("@prefix e: <http://e.org/> . e:x a <urn:D> . <urn:D> <urn:p> <urn:C> .")
    writer.insert([(1, 2)], relation="edge")
    assert reader.refresh() == writer.version
    same(reader, path)
    assert "e:x a <urn:C>" in reader
    assert reader.count("edge") == 1
    writer.delete("<urn:D> <urn:p> <urn:C> .")
    reader.refresh()
    same(reader, path)
    assert not reopened


def test_changed_rules_open_the_store_again(tmp_path: Path, reopened: list[int]) -> None:
    writer = KnowledgeBase("q(?x) :- p(?x) .")
    path = tmp_path / "s"
    writer.save(path)
    reader = KnowledgeBase.open(path, algorithm="dred")
    with writer.transaction() as tx:
        tx.add_rules("r(?x) :- q(?x) .")
        tx.insert("p(1) .")
    assert reader.refresh() == 2
    same(reader, path)
    assert reopened == [1]
    assert reader.state.settings.algorithm == "dred"
    with reader.transaction() as tx:
        tx.insert("p(2) .")
    assert tx.changes.statistics.algorithm == "dred"
    writer.refresh()
    assert writer.count("r(2)") == 1


def test_a_purged_store_is_opened_again(tmp_path: Path, reopened: list[int]) -> None:
    writer = KnowledgeBase("[?x, a, <urn:C>] :- [?x, a, <urn:D>] .")
    path = tmp_path / "s"
    writer.insert("<urn:a> a <urn:D> . <urn:b> a <urn:D> .")
    writer.save(path)
    reader = KnowledgeBase.open(path)
    purge(path, about=["<urn:a>"])
    reader.refresh()
    same(reader, path)
    assert (reopened, reader.count("[?x, a, <urn:C>]")) == ([1], 1)


def test_an_older_version_moves_to_the_newest(tmp_path: Path) -> None:
    writer = KnowledgeBase("q(?x) :- p(?x) .")
    path = tmp_path / "s"
    writer.save(path)
    writer.insert("p(1)")
    writer.insert("p(2)")
    old = KnowledgeBase.open(path, at_version=1)
    assert old.refresh() == 3
    same(old, path)
    old.insert("p(3)")  # it can be changed now
    assert KnowledgeBase.open(path).count("q") == 3


def test_a_refresh_of_nothing_new(tmp_path: Path, reopened: list[int]) -> None:
    kb = KnowledgeBase("q(?x) :- p(?x) . p(1) .")
    kb.save(tmp_path / "s")
    before = kb.state.reasoner
    assert kb.refresh() == kb.refresh() == 1
    assert kb.state.reasoner is before
    assert not reopened


def test_refreshes_that_cannot_be(tmp_path: Path) -> None:
    kb = KnowledgeBase("q(?x) :- p(?x) .")
    with pytest.raises(InvalidInput) as error:
        kb.refresh()
    assert error.value.code == "E500"
    kb.save(tmp_path / "s")
    with kb.transaction() as tx:
        with pytest.raises(InvalidInput) as error:
            kb.refresh()
        tx.rollback()
    assert error.value.code == "E343"


def test_states_after_log_entries_are_those_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SMALL_FILES", 5)
    writer = KnowledgeBase("q(?x) :- p(?x) .")
    writer.save(tmp_path / "s")
    follower, followed = Store.open(tmp_path / "s"), 0
    apply = Table._state_after_recent
    for number in range(14):
        writer.insert(f"p({number})" if number % 5 else f"wide({number}, 1, 2, 3, 4, 5)")
        fresh = Store.open(tmp_path / "s")
        for name in ("facts", "terms", "changes"):
            table: Table = getattr(follower, name)
            followed += apply(table, table.latest()) is not None
            mine, right = table.state(), getattr(fresh, name).state()
            assert {f.path: f for f in mine.files} == {f.path: f for f in right.files}
            assert mine.columns == right.columns
    assert followed >= 14
