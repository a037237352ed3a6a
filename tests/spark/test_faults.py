"""Damage to a store that Spark has written, at a path that looks like a pattern and an address."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corollary import spark as co
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.verify import verify_store
from tests.spark.data import held, stored
from tests.store.faults import HOWS, Checker, Fault, files, sample
from tests.store.killing import PATHS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build and an update by Spark."""
    folder = tmp_path_factory.mktemp("faults")
    names = "Select(?x) :- edge(?x, ?y) . SELECT(?y) :- edge(?x, ?y) . é(?x) :- types(?x) ."
    facts = "edge(0, 1) . edge(1, 2) . types(7) . terms(8) . [<urn:a>, a, <urn:C>] ."
    (folder / "p.dl").write_text(f"{PATHS} {names} {facts}")
    (folder / "more.dl").write_text('edge(2, "new") .')
    path = folder / "a %20b#é s3:x" / "store"
    co.build(path, folder / "p.dl", rules="none", session=spark)
    co.update(path, insert=[folder / "more.dl"], session=spark)
    return path


def test_any_path(store: Path, spark: SparkSession) -> None:
    assert {path.name for path in store.parents[1].iterdir()} >= {store.parent.name}
    assert not (store.parents[1] / "a  b").exists()
    assert verify_store(store).problems == []
    opened = KnowledgeBase.open(store)
    counts = {name: opened.count(name) for name in ("path", "Select", "SELECT", "é", "terms")}
    assert counts == {"path": 6, "Select": 3, "SELECT": 3, "é": 1, "terms": 1}
    assert held(opened) == stored(store)
    asked = co.open_store(store, session=spark)
    assert len(list(asked.collect("path(0, ?x)"))) == 3  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as caught:
        co.build(store.parent / "a*", store.parents[1] / "p.dl", rules="none", session=spark)
    assert caught.value.code == "E510"
    assert asked.write("path(?x, ?y)", store.parent / "out", "csv") == 6


def test_one_fault_of_every_kind(store: Path, tmp_path: Path) -> None:
    """As the embedded engine sees them."""
    with Checker(store) as checker:
        for fault in sample(store, ("flip middle",), 1):
            refused = checker.check(tmp_path / "s", fault)
            assert refused or fault.kind not in ("facts", "terms")


@pytest.mark.long
def test_faults_of_every_kind(store: Path, tmp_path: Path) -> None:
    with Checker(store) as checker:
        for fault in sample(store, HOWS, 1, seed=2):
            checker.check(tmp_path / "s", fault)


def test_spark_does_not_use_what_is_damaged(
    store: Path, spark: SparkSession, tmp_path: Path
) -> None:
    """Chunks are replaced by the tables; damaged tables are an error before any task runs."""
    path = tmp_path / "s"
    shutil.copytree(store, path)
    [chunk] = [file for file in files(path) if file.endswith(".arrow")]
    Fault(chunk, "flip middle").apply(path)
    assert [error.file for error in verify_store(path).problems] == [str(path / chunk)]
    (tmp_path / "more.dl").write_text("edge(2, 0) .")
    co.update(path, insert=[tmp_path / "more.dl"], session=spark)
    kb = KnowledgeBase.open(path)
    kb.state.reasoner.verify()
    assert held(kb) == stored(path)
    for table in ("facts", "terms"):
        shutil.rmtree(path)
        shutil.copytree(store, path)
        shutil.rmtree(path / "chunks")
        file = next(f for f in files(path) if Fault(f, "").kind == table)
        Fault(file, "flip middle").apply(path)
        for work in (
            lambda: co.open_store(path, session=spark).collect("path(0, ?x)"),
            lambda: co.update(path, insert=[tmp_path / "more.dl"], session=spark),
        ):
            with pytest.raises(OperationFailed) as caught:
                work()
            assert (caught.value.code, caught.value.file) == ("E503", str(path / file))
