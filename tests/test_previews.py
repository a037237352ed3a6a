"""Previews and dry runs: exactly what a commit then does, and no trace."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import corollary as co
from corollary import KnowledgeBase
from corollary.core.tables import decode
from corollary.errors import InvalidInput
from corollary.knowledge_base.inconsistencies import Inconsistency
from corollary.knowledge_base.transaction import Transaction
from corollary.lang.program import Program
from corollary.lang.reference import materialize
from corollary.lang.syntax import Atom
from tests.cli.calls import call
from tests.effort import first
from tests.streams import Commit
from tests.test_reverts import is_fact
from tests.test_stored_streams import visible, writable

PREFIX = "@prefix : <http://e/> .\n"
RULES = (
    PREFIX
    + "[?x, a, :Person] :- [?x, a, :Student] . [apart] false :- [?x, a, :Person], [?x, a, :Dog] ."
)


def digests(folder: Path) -> dict[str, str]:
    """The names and contents of all files."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def request(tx: Transaction, commit: Commit) -> None:
    tx.insert([atom for atom in commit.inserted if is_fact(atom)])
    tx.delete([atom for atom in commit.deleted if is_fact(atom)])
    tx.remove_rules(list(commit.removed))
    tx.add_rules(list(commit.added))


def facts_of(kb: KnowledgeBase) -> tuple[set[Atom], set[Atom]]:
    reasoner, dictionary = kb.state.reasoner, kb.state.dictionary
    return set(decode(reasoner.facts, dictionary)), set(decode(reasoner.explicit, dictionary))


@pytest.mark.parametrize("number", first(4, range(20)))
@pytest.mark.parametrize("stored", [False, True])
def test_streams_with_previews(number: int, stored: bool, tmp_path: Path) -> None:
    one = writable(number)
    kb = KnowledgeBase(one.program)
    if stored:
        kb.save(tmp_path / "store")
    for commit in one.commits:
        before, terms = facts_of(kb), len(kb.state.dictionary)
        version, rules = kb.version, kb.program
        files = digests(tmp_path)
        with kb.transaction() as tx:
            request(tx, commit)
            preview = tx.preview()
            again = tx.preview()
            tx.rollback()
        assert facts_of(kb) == before
        assert len(kb.state.dictionary) == terms
        assert (kb.version, kb.program, digests(tmp_path)) == (version, rules, files)
        with kb.transaction() as tx:
            request(tx, commit)
        assert set(preview) == set(again) == set(tx.changes)
        assert str(preview) == str(tx.changes)
        assert preview.added_rules == tx.changes.added_rules
        facts, explicit = facts_of(kb)
        assert facts == visible(materialize(Program.of(kb.program.rules, explicit)))


def test_new_contradictions_hide_auxiliary_steps() -> None:
    kb = KnowledgeBase("owl-rl")
    kb.insert("@prefix : <urn:> . :Both owl:intersectionOf ( :A :B ) . :A owl:disjointWith :C .")
    with kb.transaction() as tx:
        tx.insert("@prefix : <urn:> . :x a :Both , :C .")
        [found] = tx.preview().contradictions
        tx.rollback()
    assert "cls-int2" in str(found)
    assert not re.search(r"\b_(member|cell|list)", str(found))


def test_only_new_contradictions_are_reported() -> None:
    kb = KnowledgeBase(RULES)
    kb.update("PREFIX : <http://e/> INSERT DATA { :rex a :Dog , :Person . :ann a :Student }")
    with kb.transaction() as tx:
        tx.update("PREFIX : <http://e/> INSERT { ?x a :Dog } WHERE { ?x a :Person }")
        (one,) = tx.preview().contradictions
        assert one.count == len(one.proofs) == 1
        assert ":ann" in str(one)
        tx.add_rules("[other] false :- [?x, a, :Dog] .".replace(":Dog", "<http://e/Dog>"))
        assert [(one.name, one.count) for one in tx.preview().contradictions] == [
            ("apart", 1),
            ("other", 2),
        ]
        tx.rollback()
    assert kb.count("[?x, a, :Dog]") == 1


@pytest.mark.parametrize("number", first(3, range(20)))
def test_new_contradictions_are_the_difference(number: int) -> None:
    """Constraints with and without negation, kept and added, over random facts."""
    random = Random(number)
    bodies = (
        "p(?x), q(?x)",
        "p(?x), NOT q(?x)",
        "r(?x, ?y), q(?y), FILTER(?x < ?y)",
        "_h(?x), p(?x)",
    )
    text = "q(?y) :- r(?x, ?y) . _h(?x) :- r(?x, ?x) . " + "".join(
        f"[c{n}] false :- {body} . " for n, body in enumerate(bodies) if random.random() < 0.7
    )
    kb = KnowledgeBase(text)
    for _ in range(5):
        new = [f"p({random.randrange(4)}) ." for _ in range(3)]
        new += [f"r({random.randrange(4)}, {random.randrange(4)}) ." for _ in range(2)]
        before = {(one.name, *premises) for one, premises in violations(kb)}
        with kb.transaction() as tx:
            tx.insert("".join(new))
            tx.delete(f"r({random.randrange(4)}, {random.randrange(4)}) .")
            found = {one.name: one.count for one in tx.preview().contradictions}
        after = [(one.name, *premises) for one, premises in violations(kb)]
        assert found == Counter(name for name, *rest in after if (name, *rest) not in before)


def violations(kb: KnowledgeBase) -> Iterator[tuple[Inconsistency, tuple[str, ...]]]:
    """The violated constraints with the premises of each violation."""
    for one in kb.inconsistencies(limit=None):
        for proof in one.proofs:
            yield one, _premises(str(proof))


def _premises(proof: str) -> tuple[str, ...]:
    """The premises of `false`: the lines of the first level."""
    lines = [line for line in proof.splitlines() if line[:1] in "├└"]
    return tuple(line[3:].partition("   ")[0] for line in lines)


def test_a_transaction_goes_on_after_a_preview() -> None:
    kb = KnowledgeBase(RULES)
    with kb.transaction() as tx:
        tx.update("PREFIX : <http://e/> INSERT DATA { :ann a :Student }")
        assert len(tx.preview()) == 2
        tx.update("PREFIX : <http://e/> INSERT { ?x a :Cat } WHERE { ?x a :Person }")
        assert len(tx.preview()) == 3
        assert kb.count() == 0
    assert len(tx.changes) == kb.count() == 3


def test_a_rolled_back_transaction_is_over() -> None:
    kb = KnowledgeBase(RULES)
    with kb.transaction() as tx:
        tx.insert(PREFIX + ":ann a :Student .")
        tx.rollback()
        for change in (tx.preview, tx.rollback, lambda: tx.insert(PREFIX + ":bob a :Student .")):
            with pytest.raises(InvalidInput) as caught:
                change()
            assert caught.value.code == "E343"
    with pytest.raises(InvalidInput):
        _ = tx.changes
    assert (kb.count(), kb.version) == (0, 0)
    kb.load(co.Program.parse("[<http://e/ann>, a, <http://e/Student>] ."))
    assert kb.count() == 2


@pytest.mark.parametrize(
    "options",
    [{"mode": "hybrid"}, {"equality": "rewrite"}, {"specialize": True}, {"specialize": False}],
    ids=str,
)
def test_modes(options: dict[str, object], tmp_path: Path) -> None:
    kb = KnowledgeBase(co.rules("owl-rl"), **options)  # type: ignore[arg-type]
    text = "PREFIX : <http://e/> PREFIX owl: <http://www.w3.org/2002/07/owl#> INSERT DATA { %s }"
    kb.update(text % ":S <http://www.w3.org/2000/01/rdf-schema#subClassOf> :P . :ann a :S")
    kb.save(tmp_path / "store")
    request = text % ":bob a :S ; owl:sameAs :robert ; :knows :ann"
    with kb.transaction() as tx:
        tx.update(request)
        preview = tx.preview()
        tx.rollback()
    terms = len(kb.state.dictionary)
    assert kb.query("ASK { <http://e/bob> ?p ?o }") is False
    changes = kb.update(request)
    assert str(preview) == str(changes)
    assert len(kb.state.dictionary) > terms
    again = KnowledgeBase.open(tmp_path / "store")
    assert facts_of(again) == facts_of(kb)
    assert again.query("ASK { <http://e/robert> a <http://e/P> }") is True


def test_a_dry_run_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "data.ttl").write_text(PREFIX + ":ann a :Student .", "utf-8")
    (tmp_path / "more.ttl").write_text(PREFIX + ":ann a :Dog . :bob a :Student .", "utf-8")
    (tmp_path / "rules.dl").write_text(RULES, "utf-8")
    store = tmp_path / "s"
    build = ("build", "s", "data.ttl", "--rules", "rules.dl", "--engine", "columnar", "--quiet")
    assert not call(*build, folder=tmp_path).returncode
    for cache in store.glob("cache*"):  # opening for a dry run writes no cache, either
        for path in cache.rglob("*"):
            if path.is_file():
                path.unlink()
    before = digests(store)
    done = call("update", "s", "--insert", "more.ttl", "--dry-run", folder=tmp_path)
    assert done.stdout.splitlines()[:3] == [
        "+ [:ann, a, :Dog]",
        "+ [:bob, a, :Person]   derived",
        "+ [:bob, a, :Student]",
    ]
    assert done.stdout.splitlines()[3] == "new: apart is contradicted in 1 way"
    assert digests(store) == before
    sparql = ("update", "s", "--sparql", "CLEAR ALL", "--dry-run", "--json")
    done = call(*sparql, folder=tmp_path)
    report = json.loads(done.stdout)
    assert (report["version"], report["deleted"], report["facts"]) == (1, 2, 0)
    assert report["dry_run"] is True
    assert report["contradictions"] == []
    assert len(report["changes"]) == 2
    assert digests(store) == before
    for others in (["--patch", "p.rdfp"], ["--insert", "more.ttl", "--engine", "spark"]):
        done = call("update", "s", *others, "--dry-run", folder=tmp_path)
        assert (done.returncode, "E313" in done.stderr) == (2, True)
