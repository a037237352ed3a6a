"""Differences of versions, feeds, compaction and vacuum, on random histories."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.errors import InvalidInput
from corollary.knowledge_base.differences import changes_since, diff
from corollary.knowledge_base.verify import verify_store
from corollary.store import Store, compaction
from corollary.store.changes import _compare, between, feed
from corollary.store.compaction import compact, vacuum
from corollary.store.slices import slices

PATHS = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
State = dict[tuple[object, ...], bool]


def state(store: Store, version: int) -> State:
    """The facts of a version, and whether they are explicit."""
    rows = store.snapshot(version).facts().to_pylist()
    return {tuple(list(row.values())[:-1]): row["explicit"] for row in rows}


def applied(before: State, rows: list[dict[str, object]]) -> State:
    after = dict(before)
    for row in rows:
        fact = tuple(value for name, value in row.items() if name not in ("change", "explicit"))
        match row["change"]:
            case "inserted":
                assert fact not in after
                after[fact] = bool(row["explicit"])
            case "deleted":
                assert after.pop(fact) == row["explicit"]
            case "explicit":
                assert after[fact] is False
                after[fact] = True
            case _:
                assert after[fact] is True
                after[fact] = False
    return after


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Some versions of edges and paths, a rule that comes and goes, and a compaction."""
    chance = random.Random(3)
    path = tmp_path_factory.mktemp("history") / "s"
    kb = KnowledgeBase(PATHS + "[?x, <urn:to>, ?y] :- path(?x, ?y) .")
    with kb.transaction() as tx:
        tx.insert("edge(0, 1) . edge(1, 2) . edge(2, 3) . [<a>, a, <B>] . [<a>, <b>, <c>] .")
    kb.save(path)
    for number in range(14):
        if number == 7:
            compact(Store.open(path), full=True)
            kb = KnowledgeBase.open(path)
        with kb.transaction() as tx:
            for _ in range(3):
                relation = chance.choice(["edge", "edge", "path"])
                fact = f"{relation}({chance.randrange(5)}, {chance.randrange(5)}) ."
                (tx.insert if chance.random() < 0.6 else tx.delete)(fact)
            if number == 4:
                tx.add_rules("path(?y, ?x) :- path(?x, ?y) .")
            if number == 9:
                tx.remove_rules("path(?y, ?x) :- path(?x, ?y) .")
    return Store.open(path)


@pytest.mark.parametrize("format_", ["parquet", "arrow", "rdfp", "text", "nt"])
def test_differences_in_a_file_named_like_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    monkeypatch.chdir(tmp_path)
    KnowledgeBase("p(1) .").save("s")
    assert main(["diff", "s", "0", "1", "--format", format_, "--out", "s3:y"]) == 0
    assert Path("s3:y").exists()


def test_changes_lead_from_any_version_to_any_other(history: Store) -> None:
    newest = history.latest()
    assert newest == 16
    states = [state(history, version) for version in range(newest + 1)]
    pairs = [(first, second) for first in range(newest + 1) for second in range(newest + 1)]
    for first, second in random.Random(1).sample(pairs, 60):
        rows = between(history, first, second).to_pylist()
        assert applied(states[first], rows) == states[second]


def test_written_changes_are_what_a_comparison_finds(history: Store) -> None:
    for version in range(1, history.latest() + 1):
        ours = between(history, version - 1, version).to_pylist()
        theirs = _compare(history, version - 1, version).to_pylist()
        assert {tuple(row.values()) for row in ours} == {tuple(row.values()) for row in theirs}


def test_a_feed_goes_through_all_versions(history: Store) -> None:
    now = state(history, 0)
    for commit, rows in feed(history, 0):
        now = applied(now, rows.to_pylist())
        assert now == state(history, commit.version)
        assert commit.statistics.facts == len(now)
        assert commit.statistics.explicit == sum(now.values())
    assert commit.version == history.latest()


def test_differences_are_told_apart(history: Store) -> None:
    found = diff(history, 1, history.latest())
    counts = found.counts()
    assert sum(counts.values()) == len(found)
    assert found.inserted.num_rows == counts["inserted_explicit"] + counts["inserted_derived"]
    assert len(list(found.lines("all"))) == len(found)
    total = len(list(found.lines("explicit"))) + len(list(found.lines("derived")))
    assert total == len(found)
    assert [commit.version for commit, _ in changes_since(history, 14)] == [15, 16]


def test_compaction_changes_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "SMALL_FILES", 4)
    kb = KnowledgeBase(PATHS)
    with kb.transaction() as tx:
        tx.insert("edge(0, 1) .")
    kb.save(tmp_path / "s")
    kinds = []
    for number in range(20):
        with kb.transaction() as tx:
            tx.insert(f"edge({number}, {number + 1}) .")
            tx.delete(f"edge({number // 2}, {number // 2 + 1}) .")
        store = Store.open(tmp_path / "s")
        assert kb.version == store.latest()
        assert store.commit(tx.changes.version).kind == "update"
        assert len(store.snapshot().fact_data) <= 12
        kinds.append(store.commit().kind)
        again = KnowledgeBase.open(tmp_path / "s")
        assert again.count() == kb.count()
    assert 1 < kinds.count("compact") < 12
    assert len(store.terms.files()) <= 12
    assert len(store.changes.files()) <= 12
    assert verify_store(tmp_path / "s").problems == []
    # Every version can still be read, until a vacuum.
    assert all(len(state(store, version)) >= 0 for version in range(store.latest() + 1))
    assert vacuum(store, older_than=0.0) != []  # files of terms and changes that were merged
    states = {
        version: state(store, version) for version in range(store.latest() - 4, store.latest())
    }
    newest = store.latest()
    gone = vacuum(store, keep=5, older_than=0.0)
    assert gone
    assert store.latest() == newest + 1
    for version in range(newest - 3, newest):
        assert state(store, version) == states[version]
    with pytest.raises(InvalidInput, match="was removed by a vacuum"):
        store.snapshot(3)
    assert verify_store(tmp_path / "s").problems == []
    assert KnowledgeBase.open(tmp_path / "s").count() == kb.count()
    assert vacuum(store, keep=5, older_than=0.0, dry_run=True) == []


def test_files_of_a_writer_at_work_are_left_alone(tmp_path: Path) -> None:
    KnowledgeBase("p(1) .").save(tmp_path / "s")
    store = Store.open(tmp_path / "s")
    stray = tmp_path / "s" / "facts" / f"{uuid.uuid4().hex}.parquet"
    stray.write_bytes(b"PAR1")
    assert vacuum(store) == []
    assert stray.exists()
    assert vacuum(store, older_than=0.0) == [stray]
    assert not stray.exists()


@pytest.mark.parametrize("rows", [1, 3, 10, 1000])
def test_slices_hold_every_row_once(history: Store, rows: int) -> None:
    for version in (1, 9, history.latest()):
        snapshot = history.snapshot(version)
        parts = list(slices(snapshot, rows=rows))
        found = [tuple(row.values()) for part in parts for row in part.to_pylist()]
        everything = next(slices(snapshot, rows=10**9)).to_pylist()
        assert sorted(map(str, found)) == sorted(str(tuple(row.values())) for row in everything)
        # No relation is in two of them, and no property.
        owners: dict[tuple[object, ...], int] = {}
        for number, part in enumerate(parts):
            for row in part.to_pylist():
                key = (row["relation"], row["relation"] == "triples" and row["arg1"])
                assert owners.setdefault(key, number) == number
        if rows < 10:
            assert len(parts) > 2
