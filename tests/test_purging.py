"""Purges: nothing of the statements remains in any file, and the rest is as it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

import corollary as co
from corollary import KnowledgeBase
from corollary.core.tables import decode
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base import purging
from corollary.knowledge_base.purging import purge
from corollary.knowledge_base.verify import verify_store
from corollary.lang.program import Program
from corollary.lang.reference import materialize
from corollary.lang.syntax import Atom
from corollary.store import Store, compaction, steps
from tests.cli.calls import call
from tests.effort import first
from tests.test_reverts import is_fact
from tests.test_stored_streams import visible, writable

PREFIX = "@prefix : <http://e/> .\n"


def sets(kb: KnowledgeBase) -> tuple[set[Atom], set[Atom]]:
    reasoner, dictionary = kb.state.reasoner, kb.state.dictionary
    return set(decode(reasoner.explicit, dictionary)), set(decode(reasoner.facts, dictionary))


def contents(folder: Path) -> str:
    """All texts in the files of a store."""
    parts = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            parts.append(str(pq.read_table(str(path)).to_pydict()))
        elif path.is_file():
            parts.append(path.read_bytes().decode("latin-1"))
    return "\n".join(parts)


def people(path: Path) -> KnowledgeBase:
    rules = co.rules("rdfs")
    kb = KnowledgeBase(rules)
    with kb.transaction() as tx:
        tx.add_rules(PREFIX + "[?y, :knownBy, ?x] :- [?x, :knows, ?y] .")
    kb.save(path, message="begin")
    with kb.transaction(message="people", batch="b1") as tx:
        tx.insert(PREFIX + ':ann :knows :bob ; :mail "ann@example.org" . :bob :age 35 .')
    with kb.transaction(message="more") as tx:
        tx.insert(PREFIX + ":cid :knows :ann , :bob .")
        tx.delete(PREFIX + ":bob :age 35 .")
    with kb.transaction() as tx:
        tx.delete(PREFIX + ':ann :mail "ann@example.org" .')
        tx.add_rules(PREFIX + "[:ann, a, :Person] . [:bob, a, :Person] .")
    return kb


def test_all_about_a_person(tmp_path: Path) -> None:
    path = tmp_path / "s"
    kb = people(path)
    prefixes = [dict(c.prefixes) for c in kb.log()]
    before = [(c.version, c.time, c.author, c.message, c.batch, c.kind) for c in kb.log()]
    done = purge(path, about=["<http://e/ann>", '"ann@example.org"'])
    assert (done.version, done.versions, done.statements, done.terms) == (5, 4, 4, 3)
    assert done.axioms == ("[:ann, a, :Person]",)
    assert (done.rules, done.messages) == ((), ())
    text = contents(path)
    assert "http://e/ann" not in text
    assert "ann@example.org" not in text
    assert "http://e/bob" in text
    again = KnowledgeBase.open(path)
    after = [(c.version, c.time, c.author, c.message, c.batch, c.kind) for c in again.log()]
    assert after[1:] == before
    assert [dict(c.prefixes) for c in again.log()][1:] == prefixes
    assert after[0][3] == "purged 4 statements"
    assert "[<http://e/bob>, <http://e/knownBy>, <http://e/cid>]" in again
    assert "[<http://e/bob>, a, <http://e/Person>]" in again
    assert KnowledgeBase.open(path, at_version=2).count("[?x, <http://e/age>, ?y]") == 1
    assert not [line for line in again.diff(1, 4).lines() if "ann" in line]
    assert not verify_store(path).problems
    with pytest.raises(OperationFailed) as caught, kb.transaction() as tx:  # it has the old ids
        tx.insert(PREFIX + ":dan :knows :bob .")
    assert caught.value.code in ("E502", "E503")
    assert sets(KnowledgeBase.open(path)) == sets(again)


def test_what_still_mentions_a_term_is_reported(tmp_path: Path) -> None:
    kb = KnowledgeBase("friend(?x) :- knows(?x, <http://e/ann>) . p(?x) :- knows(?x, ?y) .")
    kb.save(tmp_path / "s")
    with kb.transaction(message="from http://e/ann") as tx:
        tx.insert("knows(1, <http://e/ann>) . knows(1, 2) .")
    done = purge(tmp_path / "s", about=["<http://e/ann>"])
    assert done.rules == ("friend(?x) :- knows(?x, <http://e/ann>) .",)
    assert done.messages == (2,)
    assert (done.statements, done.facts) == (1, 2)


@pytest.mark.parametrize("number", first(4, range(16)))
def test_streams(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version is the closure of what is left of its explicit facts."""
    monkeypatch.setattr(compaction, "SMALL_FILES", 3)
    random, one, path = Random(number), writable(number), tmp_path / "s"
    kb = KnowledgeBase(one.program)
    kb.save(path)
    for commit in one.commits:
        with kb.transaction() as tx:
            tx.insert([atom for atom in commit.inserted if is_fact(atom)])
            tx.delete([atom for atom in commit.deleted if is_fact(atom)])
            tx.remove_rules(list(commit.removed))
            tx.add_rules(list(commit.added))
    versions = range(1, kb.version + 1)
    old = {v: KnowledgeBase.open(path, at_version=v) for v in versions}
    states = {v: (sets(one)[0], one.program) for v, one in old.items()}
    every = sorted(set().union(*(explicit for explicit, _ in states.values())), key=repr)
    erased = {atom for atom in every if is_fact(atom) and random.random() < 0.3}
    if not erased:
        return
    done = purge(path, statements=[list(erased)])
    assert done.statements == len(erased)
    assert done.version == kb.version + 1
    for version, (explicit, program) in states.items():
        now = KnowledgeBase.open(path, at_version=version)
        assert now.program == program
        left = explicit - erased
        assert sets(now) == (left, visible(materialize(Program.of(program.rules, left))))
    assert not verify_store(path).problems


def test_a_vacuumed_store(tmp_path: Path) -> None:
    path = tmp_path / "s"
    people(path)
    store = Store.open(path)
    compaction.compact(store, full=True)
    compaction.vacuum(store, keep=1, older_than=0)
    oldest, newest = store.oldest(), store.latest()
    assert oldest > 1
    expected = {a for a in sets(KnowledgeBase.open(path))[0] if "ann" not in repr(a)}
    done = purge(path, about=["<http://e/ann>"])
    assert (done.version, Store.open(path).oldest()) == (newest + 1, oldest)
    assert sets(KnowledgeBase.open(path))[0] == expected
    assert "http://e/ann" not in contents(path)
    assert not verify_store(path).problems


def test_equal_terms(tmp_path: Path) -> None:
    kb = KnowledgeBase(co.rules("owl-rl"), equality="rewrite")
    with kb.transaction() as tx:
        tx.insert(PREFIX + ":ann owl:sameAs :anna ; :knows :bob . :cid :knows :bob .")
    kb.save(tmp_path / "s")
    purge(tmp_path / "s", about=["<http://e/ann>"])
    again = KnowledgeBase.open(tmp_path / "s")
    assert again.query("ASK { <http://e/anna> ?p ?o }") is False
    assert again.query("ASK { <http://e/cid> <http://e/knows> <http://e/bob> }") is True


def test_other_files_modes_and_links_stay(tmp_path: Path) -> None:
    """Nothing is removed that Corollary did not write, and what a link refers to is erased."""
    path, link = tmp_path / "there" / "s", tmp_path / "link"
    people(path)
    others = ("notes.txt", "mine/deep/x", "facts/own.csv", "cache/own/x", "chunks/own")
    for name in others:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("kept", "utf-8")
    path.chmod(0o700)
    (path / "facts").chmod(0o750)
    link.symlink_to(path, target_is_directory=True)
    purge(link, about=["<http://e/ann>", '"ann@example.org"'])
    assert [(path / name).read_text("utf-8") for name in others] == ["kept"] * len(others)
    assert link.is_symlink()
    assert (path.stat().st_mode & 0o777, (path / "facts").stat().st_mode & 0o777) == (0o700, 0o750)
    assert "http://e/ann" not in contents(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["s"]
    assert KnowledgeBase.open(link).version == 5


def test_a_failure_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    kb = people(path)
    text = contents(path)
    with pytest.raises(InvalidInput) as caught:
        purge(path)
    assert caught.value.code == "E518"
    original = purging._replay

    def replay(source: purging._Purged, folder: Path, author: str) -> purging.Purged:
        done = original(source, folder, author)
        with kb.transaction() as tx:  # another writer
            tx.insert(PREFIX + ":dan :knows :bob .")
        return done

    monkeypatch.setattr(purging, "_replay", replay)
    with pytest.raises(OperationFailed) as failed:
        purge(path, about=["<http://e/ann>"])
    assert failed.value.code == "E516"
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]
    assert "http://e/dan" in contents(path)
    assert text != ""
    assert KnowledgeBase.open(path).version == 5
    hybrid = KnowledgeBase("q(?x) :- p(?x) . p(1) .", mode="hybrid")
    hybrid.save(tmp_path / "h")
    for place in (tmp_path / "h", "s3://bucket/store"):
        with pytest.raises(InvalidInput) as caught:
            purge(place, about=["1"])
        assert caught.value.code == "E517"


KILLED = """
import os, signal, sys
from corollary.core import files
from corollary.knowledge_base.purging import purge
from corollary.store import steps

def watch(passed):
    if passed == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[3] == "renames":
    files._exchange_atomically = lambda one, other: False
steps.watch = watch
purge(sys.argv[1], about=["<http://e/ann>", '"ann@example.org"'])
"""


@pytest.mark.parametrize("way", ["exchange", pytest.param("renames", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("step", "is_purged"),
    [
        ("facts: committed", False),
        ("purge: replayed", False),
        ("purge: exchanged", True),
        ("purge: before the removal", True),
    ],
)
def test_a_killed_purge_leaves_a_whole_store(
    step: str, is_purged: bool, way: str, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    people(path)
    (path / "notes.txt").write_text("kept", "utf-8")
    command = [sys.executable, "-c", KILLED, str(path), step, way]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert KnowledgeBase.open(path).version == (5 if is_purged else 4)
    assert ("http://e/ann" in contents(path)) is not is_purged
    assert len([*tmp_path.iterdir()]) == 2  # what the next purge removes
    purge(path, about=["<http://e/ann>", '"ann@example.org"'])
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]
    assert "http://e/ann" not in contents(path)
    assert (path / "notes.txt").read_text("utf-8") == "kept"
    assert KnowledgeBase.open(path, at_version=2).query("ASK { ?x <http://e/age> 35 }") is True


def test_one_purge_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    people(path)
    codes: list[str] = []

    def watch(step: str) -> None:
        if step == "purge: replayed" and not codes:
            codes.append("")
            with pytest.raises(OperationFailed) as caught:
                purge(path, about=["<http://e/bob>"])
            codes.append(caught.value.code)

    monkeypatch.setattr(steps, "watch", watch)
    purge(path, about=["<http://e/ann>"])
    assert codes == ["", "E516"]


def test_the_command_line(tmp_path: Path) -> None:
    people(tmp_path / "s")
    (tmp_path / "gone.ttl").write_text(PREFIX + ":ann :knows :bob .", "utf-8")
    done = call("purge", "s", "--statements", "gone.ttl", "--json", folder=tmp_path)
    report = json.loads(done.stdout)
    assert (report["version"], report["statements"], report["facts"]) == (5, 1, 2)
    done = call("purge", "s", "--about", "<http://e/ann>", folder=tmp_path)
    assert "erased          " in done.stderr
    assert call("purge", "s", folder=tmp_path).returncode == 2
