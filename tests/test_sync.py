"""Relations that follow Delta tables: what changed is read, exactly once."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary as co
from corollary.cli.main import main
from corollary.errors import CorollaryError
from corollary.knowledge_base.sync import TableSource, sync
from corollary.store import Store

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
Edge = tuple[int, int]


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store")
    co.KnowledgeBase(RULES).save(path)
    return path


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


def rows(edges: list[Edge]) -> pa.Table:
    """Edges with another column, in another order."""
    columns = {
        "dst": [b for _, b in edges],
        "note": ["x"] * len(edges),
        "src": [a for a, _ in edges],
    }
    types = [("dst", pa.int64()), ("note", pa.string()), ("src", pa.int64())]
    return pa.table(columns, pa.schema(types))


def facts(store: str, relation: str = "edge") -> set[Edge]:
    table = co.KnowledgeBase.open(store).facts(relation)
    return {(int(str(a)), int(str(b))) for a, b in zip(table["arg0"], table["arg1"], strict=True)}


def shown(lake: str) -> set[Edge]:
    table = DeltaTable(lake).to_pyarrow_table()
    return set(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))


def test_what_changed_is_read_and_maintained(store: str, lake: str) -> None:
    write_deltalake(lake, rows([(1, 2), (2, 3)]))
    first = sync(store, [f"edge(src, dst)={lake}"])
    assert (first.version, first.tables["edge"].since, first.inserted) == (2, None, 5)
    assert facts(store, "path") == {(1, 2), (2, 3), (1, 3)}
    write_deltalake(lake, rows([(3, 4)]), mode="append")
    second = sync(store)
    assert (second.tables["edge"].since, second.tables["edge"].inserted) == (0, 1)
    assert (second.inserted, second.deleted) == (4, 0)
    DeltaTable(lake).delete("src = 1")
    third = sync(store)
    assert (third.tables["edge"].inserted, third.tables["edge"].deleted) == (0, 1)
    assert facts(store, "path") == {(2, 3), (3, 4), (2, 4)}
    # Files that are only rewritten change nothing, and make no version.
    DeltaTable(lake).optimize.compact()
    again = sync(store)
    assert (again.version, again.inserted, again.deleted) == (third.version, 0, 0)
    co.KnowledgeBase.open(store).state.reasoner.verify()


def test_random_histories(store: str, lake: str) -> None:
    """Appends, deletions, updates, duplicates, overwrites and compactions, against the rows."""
    draw = random.Random(19)

    def some() -> list[Edge]:
        return [(draw.randrange(6), draw.randrange(6)) for _ in range(draw.randrange(1, 5))]

    write_deltalake(lake, rows(some()))
    sync(store, [f"edge(src, dst)={lake}"])
    read_partly = 0
    for _ in range(30):
        table = DeltaTable(lake)
        match draw.randrange(6):
            case 0 | 1:
                write_deltalake(lake, rows(some()), mode="append")
            case 2:
                table.delete(f"src = {draw.randrange(6)}")
            case 3:
                table.update(
                    updates={"dst": str(draw.randrange(6))}, predicate=f"src = {draw.randrange(6)}"
                )
            case 4:
                write_deltalake(lake, rows(some()), mode="overwrite")
            case _:
                table.optimize.compact()
        if draw.random() < 0.6:
            done = sync(store)
            read_partly += done.tables["edge"].since is not None
            assert facts(store) == shown(lake)
    sync(store)
    assert facts(store) == shown(lake)
    assert read_partly > 5
    co.KnowledgeBase.open(store).state.reasoner.verify()


def test_several_tables_and_triples(store: str, lake: str, tmp_path: Path) -> None:
    write_deltalake(lake, rows([(1, 2)]))
    people = str(tmp_path / "people of the lake")
    names = {"subject": ["urn:a"], "predicate": ["urn:knows"], "object": ["_:b"]}
    write_deltalake(tmp_path / "people", pa.table(names), partition_by=["predicate"])
    Path(tmp_path / "people").rename(people)
    done = sync(store, [f"edge(src,dst)={lake}", f"triples={people}"])
    assert done.inserted == 3
    kb = co.KnowledgeBase.open(store)
    assert kb.query("ASK { <urn:a> <urn:knows> ?x }")
    # One table alone is read; what is recorded of the other stays.
    write_deltalake(lake, rows([(5, 6)]), mode="append")
    assert [*sync(store, [TableSource("edge", lake, ("src", "dst"))]).tables] == ["edge"]
    assert {*sync(store).tables} == {"edge", "triples"}
    record = json.loads(str(next(c.batch for c in Store.open(store).log() if c.batch))[5:])
    assert {name: one["version"] for name, one in record.items()} == {"edge": 1, "triples": 0}


def test_everything_is_read_if_the_past_is_gone(store: str, lake: str) -> None:
    write_deltalake(lake, rows([(1, 2), (2, 3)]))
    sync(store, [f"edge(src, dst)={lake}"])
    DeltaTable(lake).delete("src = 1")
    DeltaTable(lake).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert sync(store).tables["edge"].since is None
    assert facts(store) == {(2, 3)}
    shutil.rmtree(lake)  # a table that replaces another one
    write_deltalake(lake, rows([(7, 8)]))
    assert sync(store).tables["edge"].since is None
    assert facts(store) == {(7, 8)}
    # A fact that somebody else has inserted is no row.
    with (kb := co.KnowledgeBase.open(store)).transaction() as tx:
        tx.insert([(9, 9)], relation="edge")
    assert kb.count("edge") == 2
    assert sync(store).inserted == 0
    assert sync(store, full=True).deleted == 2
    assert facts(store) == {(7, 8)}


def test_a_commit_that_fails_is_made_again(
    store: str, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(lake, rows([(1, 2)]))
    sync(store, [f"edge(src, dst)={lake}"])
    write_deltalake(lake, rows([(2, 3)]), mode="append")
    from corollary.knowledge_base.transaction import Transaction

    with monkeypatch.context() as broken:
        broken.setattr(Transaction, "_store", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sync(store)
    assert facts(store) == {(1, 2)}
    assert sync(store).tables["edge"].since == 0
    assert facts(store) == {(1, 2), (2, 3)}


def test_mistakes(store: str, lake: str, tmp_path: Path) -> None:
    write_deltalake(lake, rows([(1, 2)]))
    empty = pa.table({"src": [1, None], "dst": [2, 3]})
    write_deltalake(tmp_path / "null", empty)
    write_deltalake(tmp_path / "when", pa.table({"x": pa.array([0], pa.timestamp("us"))}))
    for sources, code in (
        ([], "E552"),
        (["edge"], "E552"),
        ([f"1edge={lake}"], "E552"),
        ([f"edge(src, dts)={lake}"], "E552"),
        ([f"edge(src, dst)={lake}", f"edge={lake}"], "E552"),
        ([f"edge={tmp_path / 'none'}"], "E553"),
        ([f"edge={tmp_path / 'a%20b'}"], "E510"),
        ([f"edge={lake}"], "E203"),
        ([f"edge={tmp_path / 'null'}"], "E341"),
        ([f"when={tmp_path / 'when'}"], "E341"),
    ):
        with pytest.raises(CorollaryError) as caught:
            sync(store, sources)
        assert caught.value.code == code, sources
    with pytest.raises(CorollaryError) as caught:
        sync(tmp_path / "no store", [f"edge={lake}"])
    assert caught.value.code == "E500"
    assert Store.open(store).latest() == 1


def test_the_command(store: str, lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_deltalake(lake, rows([(1, 2)]))
    assert main(["sync", store, f"edge(src, dst)={lake}", "--message", "nightly"]) == 0
    text = capsys.readouterr().err
    assert "version  2 (+2 -0 facts)" in text
    assert "edge     +1 -0 rows (all of version 0)" in text
    assert next(iter(Store.open(store).log())).message == "nightly"
    assert main(["sync", store, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tables"]["edge"] == {
        "table": lake, "since": 0, "version": 0, "inserted": 0, "deleted": 0
    }  # fmt: skip
    assert main(["sync", store, "edge=nowhere", "--quiet"]) == 1
    assert "E553" in capsys.readouterr().err
