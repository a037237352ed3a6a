"""Stores as tables: versions, writers, what is read back."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corollary.core.checksum import checksum_of
from corollary.errors import InvalidInput, OperationFailed
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom, Literal, Rule, Variable
from corollary.store import Statistics, Store
from corollary.store.changes import between
from corollary.store.check import check_caches
from corollary.store.commits import Count
from corollary.store.layout import FORMAT, TERMS_SCHEMA, facts_schema
from corollary.store.term_hash import hashes

RULES = Program.parse("path(?x, ?y) :- edge(?x, ?y) . false :- edge(?x, ?x) .")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "s", author="ann")


def folder_of(store: Store) -> Path:
    assert isinstance(store.path, Path)
    return store.path


def rows(*facts: tuple[str, int, int]) -> pa.Table:
    relation, first, second = zip(*facts, strict=True)
    return pa.table({"relation": relation, "arg0": first, "arg1": second})


def statistics(edges: int, *, inserted: int = 0, deleted: int = 0) -> Statistics:
    counts = {"edge": Count(2, edges, edges), "path": Count(2, 0, edges)}
    return Statistics(counts, inserted, deleted, algorithm="auto", seconds={"update": 0.5})


def first_version(store: Store) -> int:
    writer = store.writer()
    writer.add_terms(pa.array(['"a"', '"b"', "<http://example.org/é>"]))
    writer.add_facts(rows(("edge", 0, 1), ("edge", 1, 2)), explicit=True)
    writer.add_facts(rows(("path", 1, 2), ("path", 0, 1)))
    return writer.commit(
        program=RULES, statistics=statistics(2, inserted=4), message="begin", kind="build"
    )


def facts(store: Store, version: int | None = None) -> set[tuple[str, int, int, bool]]:
    found = store.snapshot(version).facts().to_pylist()
    return {(f["relation"], f["arg0"], f["arg1"], f["explicit"]) for f in found}


def test_versions_are_read_back(store: Store) -> None:
    assert store.latest() == 0
    assert len(store.snapshot().facts()) == 0
    assert first_version(store) == 1
    writer = store.writer(author="bob")
    assert (writer.version, writer.first_term) == (2, 3)
    writer.add_facts(rows(("edge", 0, 1)), explicit=True, deleted=True)
    writer.add_facts(rows(("path", 0, 1)), deleted=True)
    writer.add_facts(rows(("path", 1, 2)), explicit=True)
    assert writer.commit(statistics=statistics(1, deleted=2)) == 2
    again = Store.open(store.path)
    assert facts(again, 0) == set()
    assert facts(again, 1) == {
        ("edge", 0, 1, True),
        ("edge", 1, 2, True),
        ("path", 0, 1, False),
        ("path", 1, 2, False),
    }
    assert facts(again) == {("edge", 1, 2, True), ("path", 1, 2, True)}
    assert again.snapshot().program == RULES
    assert again.snapshot(0).program == Program()
    assert again.snapshot().terms()["term"].to_pylist() == ['"a"', '"b"', "<http://example.org/é>"]
    log = list(again.log())
    assert [(c.version, c.author, c.kind) for c in log] == [
        (2, "bob", "update"),
        (1, log[1].author, "build"),
        (0, "ann", "create"),
    ]
    assert log[1].message == "begin"
    assert log[0].statistics.seconds == {"update": 0.5}
    assert log[0].time > log[2].time


def test_files_that_others_wrote(store: Store) -> None:
    writer = store.writer()
    texts = pa.array(['"a"', '"b"'])
    terms = pa.table([pa.array([0, 1]), texts, hashes(texts)], schema=TERMS_SCHEMA)
    folder = folder_of(store) / "terms" / "batch=1"
    folder.mkdir()
    pq.write_table(terms, folder / "part-0.parquet")
    found = rows(("edge", 0, 1), ("edge", 1, 0))
    for name, value in (("arg2", None), ("explicit", True), ("deleted", False), ("version", 1)):
        found = found.append_column(name, pa.array([value] * 2, facts_schema(3).field(name).type))
    pq.write_table(found.cast(facts_schema(3)), folder_of(store) / "facts" / "part-0.parquet")
    writer.add_term_files(["batch=1/part-0.parquet"])
    writer.add_fact_files(["part-0.parquet"])
    assert writer.commit(statistics=statistics(2, inserted=2), batch="batch 7") == 1
    snapshot = store.snapshot()
    assert snapshot.commit.batch == "batch 7"
    assert snapshot.commit.changes == "facts"
    assert snapshot.commit.terms == 2
    assert facts(store) == {("edge", 0, 1, True), ("edge", 1, 0, True)}
    assert [path.name for path in snapshot.fact_files()] == ["part-0.parquet"]
    later = store.writer()
    with pytest.raises(InvalidInput, match="carry version 1, but this writer makes version 2"):
        later.add_fact_files(["part-0.parquet"])


def test_rules_that_cannot_be_written_are_refused(store: Store) -> None:
    x = Variable("x")
    head = Atom(TRIPLE, (x, Literal("p"), x))
    program = Program.of([Rule(head, (Atom("p", (x,)),))])
    with pytest.raises(InvalidInput, match="cannot be written as text"):
        store.writer().commit(program=program, statistics=Statistics())
    assert store.latest() == 0


def test_versions_without_changes_are_compared(store: Store) -> None:
    first_version(store)
    before = facts(store)
    writer = store.writer()
    writer.add_facts(rows(("edge", 2, 2)), explicit=True)
    writer.commit(statistics=statistics(3, inserted=1))
    assert facts(store) == before | {("edge", 2, 2, True)}
    assert len(facts(store, 1)) == 4
    assert store.commit().changes == "diff"
    assert between(store, 1, 2).num_rows == 1


def test_relations_with_many_arguments(store: Store) -> None:
    first_version(store)
    writer = store.writer()
    wide = pa.table({"relation": ["r"], **{f"arg{n}": [n] for n in range(5)}})
    with pytest.raises(InvalidInput, match="is not one"):
        writer.add_facts(wide)
    writer.reserve(5)
    assert writer.version == 3
    writer.add_facts(wide, explicit=True)
    writer.add_changes(wide.append_column("change", pa.array(["inserted"])))
    assert writer.commit(statistics=statistics(2, inserted=1)) == 3
    [row] = store.snapshot().facts("r").to_pylist()
    assert [row[f"arg{n}"] for n in range(5)] == [0, 1, 2, 3, 4]
    assert len(store.snapshot().facts()) == 5
    assert [commit.kind for commit in store.log()] == ["update", "widen", "build", "create"]
    assert len(facts(store, 2)) == 4
    assert store.writer().width == 5


def test_of_two_writers_one_succeeds(store: Store) -> None:
    first_version(store)
    one, two = store.writer(), store.writer()
    one.add_facts(rows(("edge", 2, 2)), explicit=True)
    two.add_facts(rows(("edge", 0, 2)), explicit=True)
    assert two.commit(statistics=statistics(3)) == 2
    with pytest.raises(OperationFailed, match="another writer has committed version 2") as caught:
        one.commit(statistics=statistics(3))
    assert caught.value.code == "E502"
    assert ("edge", 0, 2, True) in facts(store)
    assert ("edge", 2, 2, True) not in facts(store)


def test_of_two_writers_with_terms_one_succeeds(store: Store) -> None:
    first_version(store)
    one, two = store.writer(), store.writer()
    one.add_terms(pa.array(['"one"']))
    two.add_terms(pa.array(['"two"']))
    two._commit_terms()  # and ends before the facts
    with pytest.raises(OperationFailed, match="another writer has added terms"):
        one.commit(statistics=statistics(2))
    assert store.latest() == 1
    # The terms that are left do no harm.
    third = store.writer()
    assert third.first_term == 4
    third.add_terms(pa.array(['"three"']))
    third.commit(statistics=statistics(2))
    assert store.snapshot().terms()["term"].to_pylist()[3:] == ['"two"', '"three"']


def test_statistics_of_files_let_readers_skip(store: Store) -> None:
    first_version(store)
    actions = [action["add"] for action in store.facts.actions(1) if "add" in action]
    stats = [json.loads(action["stats"]) for action in actions]
    assert [s["minValues"]["relation"] for s in stats] == ["edge", "path"]
    assert stats[0]["numRecords"] == 2
    assert stats[0]["nullCount"]["arg2"] == 2
    assert "explicit" not in stats[0]["minValues"]


def test_the_hash_of_terms_is_that_of_spark() -> None:
    # From the documentation of `xxhash64`, and of an empty string.
    assert hashes(pa.array(["ABC", ""])).to_pylist() == [4105715581806190027, -7444071767201028348]


def test_what_is_no_store(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InvalidInput, match="there is no store in"):
        Store.open(tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="there is a store in"):
        Store.create(store.path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious")
    with pytest.raises(InvalidInput, match="is not empty"):
        Store.create(tmp_path / "other")
    with pytest.raises(InvalidInput, match="is a file"):
        Store.create(tmp_path / "other" / "thesis.txt")
    with pytest.raises(InvalidInput, match="no version 9"):
        store.snapshot(9)


def test_what_an_unfinished_creation_left_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "s"
    Store.create(path)
    for log in (path / "facts" / "_delta_log").iterdir():
        log.unlink()
    with pytest.raises(InvalidInput, match="there is no store"):
        Store.open(path)
    assert Store.create(path).latest() == 0


def test_a_store_of_an_earlier_release(store: Store) -> None:
    """Without manifests, checksums in names and a marker; the next commit has them."""
    first_version(store)
    for entry in folder_of(store).glob("*/_delta_log/*.json"):
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        for line in lines:
            info = line.get("commitInfo", {})
            info.pop("corollary.manifest", None)
            if "corollary" in info:
                info["corollary"] = json.dumps(json.loads(info["corollary"]) | {"format": 1})
        text = "\n".join(map(json.dumps, lines))
        entry.write_text(re.sub(r"([0-9a-f]{32})-[0-9a-f]{8}\.parquet", r"\1.parquet", text))
    for file in folder_of(store).glob("*/*.parquet"):
        file.rename(file.with_name(f"{file.name[:32]}.parquet"))
    (folder_of(store) / "corollary-store.json").unlink()
    for place in (f"cache/1-{'0' * 8}/directory.json", f"chunks/{'0' * 32}.json"):
        described = folder_of(store) / place
        described.parent.mkdir(parents=True)
        described.write_text('{"format": 1, "version": 1}')
    old = Store.open(store.path)
    assert check_caches(old) == []
    expected = store.snapshot(1).statistics
    assert old.snapshot().facts().num_rows == expected.facts
    writer = old.writer()
    writer.add_terms(pa.array(['"new"']))
    assert writer.commit(statistics=expected) == 2
    assert [Store.open(store.path).commit(version).format for version in (1, 2)] == [1, FORMAT]
    assert Store.open(store.path).facts.record(1).manifest is None
    assert Store.open(store.path).facts.record(2).manifest is not None
    assert Store.open(store.path).snapshot().facts().num_rows == expected.facts
    first = folder_of(store) / "facts" / "_delta_log" / f"{1:020d}.json"
    os.truncate(first, 0)
    for version in (1, 2):
        with pytest.raises(OperationFailed) as caught:
            _ = Store.open(store.path).snapshot(version).fact_data
        assert (caught.value.code, caught.value.file) == ("E503", str(first))


def test_a_newer_format_is_refused(store: Store) -> None:
    first_version(store)
    path = folder_of(store) / "facts" / "_delta_log" / f"{1:020d}.json"
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        if "commitInfo" in entry:
            found = entry["commitInfo"]
            info = json.dumps(json.loads(found["corollary"]) | {"format": 99})
            manifest = json.loads(found["corollary.manifest"]) | {
                "info": checksum_of(info.encode())
            }
            found |= {"corollary": info, "corollary.manifest": json.dumps(manifest)}
    path.write_text("\n".join(map(json.dumps, entries)))
    with pytest.raises(OperationFailed, match="the store has format 99") as caught:
        Store.open(store.path)
    assert caught.value.code == "E501"
    assert caught.value.file == str(path)


@pytest.mark.parametrize("how", ["missing", "empty", "truncated", "corrupted"])
@pytest.mark.parametrize("table", ["facts", "terms", "rules"])
def test_a_damaged_file_is_named(store: Store, table: str, how: str) -> None:
    first_version(store)
    path = next((folder_of(store) / table).glob("*.parquet"))
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(b"\xff" * 100 + data[100:])
    snapshot = Store.open(store.path).snapshot()
    with pytest.raises(OperationFailed) as caught:
        snapshot.terms() if table == "terms" else snapshot.facts() and snapshot.program
    assert caught.value.code == "E503"
    assert caught.value.file == str(path)
    assert store.latest() == 1


@pytest.mark.parametrize("how", ["missing", "corrupted"])
def test_a_damaged_log_is_named(store: Store, how: str) -> None:
    first_version(store)
    path = folder_of(store) / "facts" / "_delta_log" / f"{1:020d}.json"
    if how == "missing":
        os.truncate(path, 0)
    else:
        path.write_text("{" + path.read_text())
    with pytest.raises(OperationFailed) as caught:
        Store.open(store.path).snapshot()
    assert caught.value.code == "E503"
    assert caught.value.file == str(path)
