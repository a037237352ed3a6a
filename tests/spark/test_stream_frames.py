"""Streaming DataFrames of insertions and deletions are applied exactly once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corollary.errors import CorollaryError
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.spark.streaming import Applied, stream
from corollary.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
EDGES = "change string, predicate string, arg0 long, arg1 long, offset long"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    KnowledgeBase(RULES + "edge(1, 2) .").save(tmp_path / "store")
    return tmp_path / "store"


def rows(spark: SparkSession, folder: Path, schema: str) -> Any:
    """A stream of the lines of files of JSON, one file in each batch."""
    folder.mkdir(exist_ok=True)
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.json(str(folder))


def put(folder: Path, name: str, *changes: tuple[str, int, int]) -> None:
    """Write a file of changes of edges; the order of changes is that of the lines."""
    folder.mkdir(exist_ok=True)
    lines = [
        {"change": change, "predicate": "edge", "arg0": a, "arg1": b, "offset": number}
        for number, (change, a, b) in enumerate(changes)
    ]
    (folder / f"{name}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def paths(store: Path) -> set[tuple[int, int]]:
    table = KnowledgeBase.open(store).facts("path")
    return {(int(str(a)), int(str(b))) for a, b in zip(table["arg0"], table["arg1"], strict=True)}


@pytest.mark.parametrize("engine", ["columnar", pytest.param("spark", marks=pytest.mark.long)])
def test_rows_of_a_relation(spark: SparkSession, store: Path, tmp_path: Path, engine: str) -> None:
    lake = tmp_path / "in"
    put(lake, "1", ("insert", 2, 3), ("update_postimage", 3, 4))
    done: list[Applied] = []

    def fail(applied: Applied) -> None:
        done.append(applied)
        raise RuntimeError("after the commit")

    frame = rows(spark, lake, EDGES)
    options: dict[str, Any] = {"order_column": "offset", "once": True, "engine": engine}
    with pytest.raises(RuntimeError, match="after the commit"):
        stream(store, frame, on_commit=fail, **options)
    assert [(one.inserted, one.deleted) for one in done] == [(7, 0)]
    # The batch is repeated, and is in the store already. Of several changes, the last one counts.
    put(lake, "2", ("delete", 1, 2), ("insert", 5, 6), ("delete", 5, 6), ("delete", 3, 4),
        ("insert", 3, 4))  # fmt: skip
    stream(store, rows(spark, lake, EDGES), on_commit=done.append, **options)
    assert [(one.inserted, one.deleted) for one in done] == [(7, 0), (0, 4)]
    assert paths(store) == {(2, 3), (3, 4), (2, 4)}
    log = [commit.batch for commit in Store.open(store).log() if commit.batch]
    assert len(log) == len({*log}) == 2
    KnowledgeBase.open(store).state.reasoner.verify()


def test_triples_without_a_change_are_inserted(
    spark: SparkSession, store: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "in"
    lake.mkdir()
    line = {"subject": "urn:a", "predicate": "urn:p", "object": '"x"@en'}
    (lake / "1.json").write_text(json.dumps(line))
    frame = rows(spark, lake, "subject string, predicate string, object string")
    stream(store, frame, once=True, checkpoint=tmp_path / "checkpoint")
    assert KnowledgeBase.open(store).query('ASK { <urn:a> <urn:p> "x"@en }')
    assert (tmp_path / "checkpoint" / "metadata").exists()


def test_mistakes(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    lake = tmp_path / "in"
    put(lake, "1", ("truncate", 1, 2))
    frame = rows(spark, lake, EDGES)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (frame, {}, "E554"),
        (frame, {"order_column": "at"}, "E554"),
        (frame, {"change_column": "kind"}, "E554"),
        (frame.select("arg0"), {}, "E546"),
        (spark.range(1).selectExpr("'edge' AS predicate", "id AS arg0"), {}, "E554"),
    ]
    for source, options, code in cases:
        with pytest.raises(CorollaryError) as caught:
            stream(store, source, once=True, checkpoint=tmp_path / code, **options)
        assert caught.value.code == code
    assert Store.open(store).latest() == 1
