"""Exports: RDF that reads back, Parquet, and Delta tables that follow a store by merges."""

from __future__ import annotations

import io
import json
from pathlib import Path
from random import Random

import polars
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary as co
from corollary.errors import CorollaryError
from corollary.knowledge_base.export import RDF_FORMATS, export
from tests.cli.calls import call
from tests.effort import first

RULES = """
    path(?x, ?y) :- edge(?x, ?y) .
    path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
    [?x, <urn:knows>, ?y] :- [?y, <urn:knows>, ?x] .
    known(?x) :- [?x, <urn:knows>, ?y] .
"""

Row = tuple[object, ...]


def small_store(folder: Path) -> co.KnowledgeBase:
    kb = co.KnowledgeBase(RULES)
    kb.save(folder)
    with kb.transaction() as tx:
        tx.insert('edge(1, 2) . edge(2, "b c") . [<urn:a>, <urn:knows>, "é\\n"@en] .')
        tx.insert("[<urn:a>, <urn:knows>, <urn:b>] .")
    return kb


def expected(kb: co.KnowledgeBase, relation: str, which: str = "all") -> set[Row]:
    pattern = "[?s, ?p, ?o]" if relation == "triples" else relation
    rows = {tuple(row.values()) for row in kb.facts(pattern).to_pylist()}
    return rows if which == "all" else {row for row in rows if row[-1] == (which == "explicit")}


def delta_rows(path: Path) -> set[Row]:
    """The rows of a Delta table, read by a library that knows nothing of Corollary."""
    rows = polars.read_delta(str(path)).rows()
    assert len({*rows}) == len(rows)
    return {*rows}


@pytest.mark.parametrize("format_", RDF_FORMATS)
@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_rdf_reads_back(tmp_path: Path, format_: str, which: str) -> None:
    kb = small_store(tmp_path / "store")
    target = tmp_path / f"out.{format_}"
    done = export(kb.state, target, format_, which)  # type: ignore[arg-type]
    copy = co.KnowledgeBase()
    copy.load(target)
    every = {row[:3] for row in expected(kb, "triples", which)}
    rdf = {row for row in every if not str(row[0]).startswith('"')}
    assert {row[:3] for row in expected(copy, "triples")} == rdf
    assert done.rows == {"triples": len(rdf)}
    assert done.generalized == len(every) - len(rdf)
    stream = io.BytesIO()
    export(kb.state, stream, format_, which)  # type: ignore[arg-type]
    assert stream.getvalue() == target.read_bytes()


def test_parquet_has_a_file_for_each_relation(tmp_path: Path) -> None:
    kb = small_store(tmp_path / "store")
    done = export(kb.state, tmp_path / "out", "parquet")
    names = {"edge", "path", "known", "triples"}
    assert {path.stem for path in (tmp_path / "out").iterdir()} == names == {*done.rows}
    for name in names:
        rows = pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist()
        assert {tuple(row.values()) for row in rows} == expected(kb, name)


@pytest.mark.parametrize("seed", first(2, range(8)))
@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_delta_tables_follow_a_random_stream(tmp_path: Path, seed: int, which: str) -> None:
    random = Random(seed)
    kb = small_store(tmp_path / "store")
    target = tmp_path / "lake"
    removable = "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    has_rule = True
    for _ in range(5):
        for _ in range(random.randrange(1, 3)):
            with kb.transaction() as tx:
                for _ in range(random.randrange(6)):
                    one, two = random.randrange(5), random.randrange(5)
                    change = random.choice([tx.insert, tx.delete])
                    change(
                        random.choice(
                            [
                                f"edge({one}, {two}) .",
                                f"path({one}, {two}) .",
                                f"[<urn:{one}>, <urn:knows>, <urn:{two}>] .",
                                f"extra{one}({two}) .",
                            ]
                        )
                    )
                if random.random() < 0.3:
                    (tx.remove_rules if has_rule else tx.add_rules)(removable)
                    has_rule = not has_rule
        # Some exports go back to an older version of the store.
        version = random.randrange(1, kb.version + 1) if random.random() < 0.2 else kb.version
        shown = co.KnowledgeBase.open(tmp_path / "store", at_version=version)
        done = export(shown.state, target, "delta", which)  # type: ignore[arg-type]
        for relation, count in done.rows.items():
            rows = delta_rows(target / relation)
            assert rows == expected(shown, relation, which)
            assert len(rows) == count


def test_later_exports_write_changes_only(tmp_path: Path) -> None:
    kb = small_store(tmp_path / "store")
    target = tmp_path / "lake"
    assert export(kb.state, target, "delta").changed["edge"] == 2
    again = export(kb.state, target, "delta")
    assert not any(again.changed.values())
    versions = {name: DeltaTable(target / name).version() for name in again.rows}
    with kb.transaction() as tx:
        tx.insert("edge(7, 8) .")
    changed = export(kb.state, target, "delta").changed
    assert changed == {"edge": 1, "path": 1, "known": 0, "triples": 0}
    assert DeltaTable(target / "known").version() == versions["known"]
    [entry] = DeltaTable(target / "edge").history(1)
    assert entry["operation"] == "MERGE"


def test_refuses_tables_of_something_else(tmp_path: Path) -> None:
    kb = small_store(tmp_path / "store")
    export(kb.state, tmp_path / "lake", "delta")
    with pytest.raises(CorollaryError, match="something else") as caught:
        export(kb.state, tmp_path / "lake", "delta", "explicit")
    assert caught.value.code == "E430"
    write_deltalake(tmp_path / "other/edge", polars.DataFrame({"a": [1]}))
    with pytest.raises(CorollaryError, match="something else"):
        export(kb.state, tmp_path / "other", "delta")
    assert polars.read_delta(str(tmp_path / "other/edge")).rows() == [(1,)]
    with pytest.raises(CorollaryError) as caught:
        export(kb.state, tmp_path / "100%", "delta")
    assert caught.value.code == "E510"


def test_hybrid_stores_and_knowledge_bases_in_memory(tmp_path: Path) -> None:
    for mode in ("materialized", "hybrid"):
        kb = co.KnowledgeBase(f"{RULES} edge(1, 2) . edge(2, 3) .", mode=mode)
        for _ in range(2):
            export(kb.state, tmp_path / mode, "delta")
            assert delta_rows(tmp_path / mode / "path") == expected(kb, "path")
            assert len(expected(kb, "path")) in (3, 6)
            with kb.transaction() as tx:
                tx.insert("edge(3, 4) .")


def test_delta_tables_at_an_address(address: str, s3: object, tmp_path: Path) -> None:
    kb = small_store(tmp_path / "store")
    for _ in range(2):
        done = export(kb.state, address, "delta")
        assert done.rows["edge"] == len(expected(kb, "edge"))
        table = DeltaTable(f"{address.replace(' ', '%20')}/edge")
        assert table.count() == done.rows["edge"]
        with kb.transaction() as tx:
            tx.insert("edge(7, 8) .")


def test_command(tmp_path: Path) -> None:
    small_store(tmp_path / "store")
    printed = call("export", tmp_path / "store", "--explicit", "--quiet").stdout
    assert printed.splitlines() == [
        '<urn:a> <urn:knows> "é\\n"@en .',
        "<urn:a> <urn:knows> <urn:b> .",
    ]
    done = call("export", tmp_path / "store", "--format", "ttl", "--out", tmp_path / "x.ttl")
    assert done.returncode == 0
    assert "not RDF" in done.stderr
    assert "plain relations" in done.stderr
    done = call(
        "export", tmp_path / "store", "--format", "delta", "--out", tmp_path / "d", "--json"
    )
    assert json.loads(done.stdout)["rows"]["edge"] == 2
    first_version = call("export", tmp_path / "store", "--at-version", "1", "--quiet")
    assert (first_version.returncode, first_version.stdout) == (0, "")
    for wrong in (["--format", "delta"], ["--json"], ["--explicit", "--derived"]):
        assert call("export", tmp_path / "store", *wrong).returncode == 2
    assert call("export", tmp_path / "none").returncode in (1, 2)
