"""`spark.read` and `spark.readStream` of the changes of a store, and its published tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from corollary import spark as co
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.spark.changes import StoreChanges
from corollary.knowledge_base.spark.streaming import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with four versions."""
    kb = KnowledgeBase(RULES + 'edge("a", 2) . <urn:s>(<urn:o>, "x y"@en) .')
    kb.save(tmp_path / "store")
    kb = KnowledgeBase.open(tmp_path / "store")
    with kb.transaction() as tx:
        tx.insert([(2, 3)], relation="edge")
    with kb.transaction() as tx:
        tx.delete([("a", 2)], relation="edge")
    with kb.transaction() as tx:
        tx.insert([(2, 3)], relation="path")
    return str(tmp_path / "store")


def local(store: str, **options: str) -> list[tuple[Any, ...]]:
    """What the source reads, without Spark."""
    source = StoreChanges({"path": store, **options})
    since, until = source.between(source.options)
    tables = [
        batch.to_pylist()
        for version in range(since + 1, until + 1)
        for batch in StoreChanges.read(version, source.options)
    ]
    return sorted(tuple(row.values()) for table in tables for row in table)


CHANGES = [
    (1, "inserted", "edge", "a", "2", None, None, True),
    (1, "inserted", "path", "a", "2", None, None, False),
    (1, "inserted", "triples", "<urn:o>", "<urn:s>", '"x y"@en', None, True),
    (2, "inserted", "edge", "2", "3", None, None, True),
    (2, "inserted", "path", "2", "3", None, None, False),
    (2, "inserted", "path", "a", "3", None, None, False),
    (3, "deleted", "edge", "a", "2", None, None, True),
    (3, "deleted", "path", "a", "2", None, None, False),
    (3, "deleted", "path", "a", "3", None, None, False),
    (4, "explicit", "path", "2", "3", None, None, True),
]


def test_the_changes_of_versions(store: str) -> None:
    assert local(store) == CHANGES
    assert local(store, since="1", until="3") == CHANGES[3:9]
    assert local(store, since="4") == []
    for options in ({"since": "x"}, {"until": "9"}, {"since": "3", "until": "2"}):
        with pytest.raises(InvalidInput) as caught:
            local(store, **options)
        assert caught.value.code == "E555"
    for path in ("", "store"):  # tasks run in other folders
        with pytest.raises(InvalidInput) as caught:
            local(path)
        assert caught.value.code == "E555"
    with pytest.raises(InvalidInput, match="a stream has no end"):
        StoreChanges({}).begin({"path": store, "until": "2"})


@pytest.mark.spark
def test_batches_and_streams(spark: SparkSession, store: str, tmp_path: Path) -> None:
    spark.createDataFrame([], "nothing int")  # its session becomes the active one
    co.register(spark)
    frame = spark.read.format("corollary").option("since", 1).option("until", 3).load(store)
    assert sorted(map(tuple, frame.collect())) == CHANGES[3:9]
    # The explicit edges of one store are a stream of changes of another one.
    KnowledgeBase(RULES).save(tmp_path / "copy")

    def follow() -> set[tuple[str, ...]]:
        changes = spark.readStream.format("corollary").load(store)
        edges = changes.where("relation = 'edge' AND explicit").selectExpr(
            "relation AS predicate", "arg0", "arg1", "change", "version"
        )
        stream(tmp_path / "copy", edges, order_column="version", once=True)
        table = KnowledgeBase.open(tmp_path / "copy").facts("path")
        return {*zip(table["arg0"].to_pylist(), table["arg1"].to_pylist(), strict=True)}

    assert follow() == {("2", "3")}
    with KnowledgeBase.open(store).transaction() as tx:
        tx.insert([(3, "b")], relation="edge")
    assert follow() == {("2", "3"), ("3", "b"), ("2", "b")}
    assert len(KnowledgeBase.open(tmp_path / "copy").facts("edge")) == 2


def test_published_tables_follow_the_store(store: str, tmp_path: Path) -> None:
    target = str(tmp_path / "tables")
    assert co.publish(store, target, at_version=2).rows == {"edge": 2, "path": 3, "triples": 1}
    done = co.publish(store, target)
    assert done.rows == {"edge": 1, "path": 1, "triples": 1}
    assert done.changed == {"edge": 1, "path": 3, "triples": 0}
    table = DeltaTable(f"{target}/path").to_pyarrow_table().to_pylist()
    assert [row["explicit"] for row in table] == [True]
