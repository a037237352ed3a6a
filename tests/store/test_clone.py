"""Clones of stores: at any version, beside writers, after a vacuum."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.core.tables import decode
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.verify import verify_store
from corollary.lang.syntax import Atom
from corollary.store import Store, clone, compaction
from tests.cli.calls import call

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."


def facts(path: Path, version: int | None = None) -> set[Atom]:
    kb = KnowledgeBase.open(path, at_version=version)
    return set(decode(kb.state.reasoner.facts, kb.state.dictionary))


def grown(path: Path, commits: int) -> KnowledgeBase:
    kb = KnowledgeBase(RULES)
    kb.save(path)
    for number in range(commits):
        with kb.transaction(message=f"edge {number}") as tx:
            tx.insert(f"edge({number}, {number + 1}) .")
    return kb


def test_a_clone_has_all_versions_and_is_independent(tmp_path: Path) -> None:
    kb = grown(tmp_path / "one", 3)
    done = clone.clone(tmp_path / "one", tmp_path / "two")
    assert (done.version, Store.open(tmp_path / "two").latest()) == (4, 4)
    assert [c.message for c in Store.open(tmp_path / "two").log()] == [c.message for c in kb.log()]
    for version in range(5):
        assert facts(tmp_path / "one", version) == facts(tmp_path / "two", version)
    copy = KnowledgeBase.open(tmp_path / "two")
    assert len(copy.diff(2)) == len(kb.diff(2))
    with copy.transaction() as tx:
        tx.insert("edge(7, 0) .")
    with kb.transaction() as tx:
        tx.delete("edge(1, 2) .")
    assert facts(tmp_path / "one") != facts(tmp_path / "two")
    for name in ("one", "two"):
        assert not verify_store(tmp_path / name).problems


def test_a_clone_of_an_older_version(tmp_path: Path) -> None:
    grown(tmp_path / "one", 4)
    assert clone.clone(tmp_path / "one", tmp_path / "two", at_version=2).version == 2
    assert facts(tmp_path / "two") == facts(tmp_path / "one", 2)
    kb = KnowledgeBase.open(tmp_path / "two")
    with kb.transaction() as tx:
        tx.insert("edge(1, 9) .")
    assert not verify_store(tmp_path / "two").problems
    assert kb.version == 3
    assert facts(tmp_path / "two") == set(decode(kb.state.reasoner.facts, kb.state.dictionary))
    assert len(kb.diff(2, 3)) == 3


def test_a_clone_after_a_vacuum(tmp_path: Path) -> None:
    kb = grown(tmp_path / "one", 4)
    compaction.compact(kb.state.opened_store, full=True)
    kb = KnowledgeBase.open(tmp_path / "one")
    with kb.transaction() as tx:
        tx.insert("edge(9, 9) .")
    compaction.vacuum(Store.open(tmp_path / "one"), keep=2, older_than=0)
    oldest = Store.open(tmp_path / "one").oldest()
    assert oldest > 1
    clone.clone(tmp_path / "one", tmp_path / "two", at_version=oldest)
    clone.clone(tmp_path / "one", tmp_path / "three")
    for name in ("two", "three"):
        assert Store.open(tmp_path / name).oldest() == oldest
        assert facts(tmp_path / name, oldest) == facts(tmp_path / "one", oldest)
        assert not verify_store(tmp_path / name).problems
        with pytest.raises(InvalidInput) as caught:
            KnowledgeBase.open(tmp_path / name, at_version=oldest - 1)
        assert caught.value.code == "E505"


def test_clones_beside_a_writer(tmp_path: Path) -> None:
    kb = grown(tmp_path / "one", 1)
    stop = threading.Event()

    def write() -> None:
        number = 10
        while not stop.is_set():
            with kb.transaction() as tx:
                tx.insert(f"edge({number}, {number + 1}) .")
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        versions = [clone.clone(tmp_path / "one", tmp_path / f"c{n}").version for n in range(4)]
    finally:
        stop.set()
        writer.join()
    for number, version in enumerate(versions):
        assert facts(tmp_path / f"c{number}") == facts(tmp_path / "one", version)
        assert not verify_store(tmp_path / f"c{number}").problems


def test_mistakes_leave_nothing(tmp_path: Path) -> None:
    grown(tmp_path / "one", 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine", "utf-8")
    for target, code in ((tmp_path / "full", "E506"), (tmp_path / "one", "E506")):
        with pytest.raises(InvalidInput) as caught:
            clone.clone(tmp_path / "one", target)
        assert caught.value.code == code
    with pytest.raises(InvalidInput) as caught:
        clone.clone(tmp_path / "one", "s3://bucket/store")
    assert caught.value.code == "E515"
    (file,) = Store.open(tmp_path / "one").facts.files(2)[-1:]
    (tmp_path / "one" / "facts" / file.path).unlink()
    with pytest.raises(OperationFailed) as failed:
        clone.clone(tmp_path / "one", tmp_path / "two")
    assert failed.value.code == "E516"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "one"]


def test_the_command_line(tmp_path: Path) -> None:
    grown(tmp_path / "one", 2)
    done = call("clone", "one", "two", "--at-version", "2", "--json", folder=tmp_path)
    assert json.loads(done.stdout)["version"] == 2
    assert call("clone", "one", "three", folder=tmp_path).stderr.startswith("three: version 3, ")
