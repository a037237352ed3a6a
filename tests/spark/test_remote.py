"""Stores in an object store, built and updated by Spark tasks without a connector of Hadoop."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corollary import spark as co
from corollary.cli.main import main
from corollary.core import local_cache
from corollary.core.object_store import ObjectPath
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.verify import verify_store
from corollary.store import Store
from corollary.store.places import store_path
from tests.s3_server import S3
from tests.spark.data import embedded, stored
from tests.spark.test_cluster import can_mount, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def put(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line} .\n" for line in lines))
    return path


def data_in(folder: Path) -> list[Path]:
    schema = put(folder / "schema.nt", f"<urn:A> {SUB} <urn:B>", f"<urn:B> {SUB} <urn:C>")
    data = put(folder / "data.nt", *(f"<urn:x{n}> {TYPE} <urn:A>" for n in range(20)))
    return [schema, data]


def test_a_remote_store_is_built_and_updated(
    spark: SparkSession, address: str, tmp_path: Path
) -> None:
    sources = data_in(tmp_path)
    built = co.build(address, sources, rules="rhodf", session=spark)
    expected = embedded(sources, "rhodf")
    assert (built.version, built.facts) == (1, len(expected))
    assert stored(store_path(address)) == expected
    more = put(tmp_path / "more.nt", f"<urn:new> {TYPE} <urn:B>")
    gone = put(tmp_path / "gone.nt", f"<urn:x1> {TYPE} <urn:A>")
    updated = co.update(address, insert=[more], delete=[gone], session=spark)
    assert (updated.version, updated.inserted, updated.deleted) == (2, 2, 3)
    for number, count in ((1, 20), (2, 20)):
        query = "SELECT ?x { ?x a <urn:C> }"
        frame = co.query(address, query, session=spark, at_version=number)
        assert not isinstance(frame, bool)
        assert frame.count() == count
    # The embedded engine goes on where Spark has ended, and the other way round.
    with KnowledgeBase.open(address).transaction() as tx:
        tx.delete(f"[<urn:new>, {TYPE}, <urn:B>] .")
    again = co.update(address, insert=[more], session=spark)
    assert (again.version, again.inserted) == (4, 2)
    assert verify_store(address).problems == []


def test_chunks_are_in_the_local_cache(spark: SparkSession, address: str, tmp_path: Path) -> None:
    co.build(address, data_in(tmp_path), rules="rhodf", session=spark)
    store = Store.open(address)
    assert store.chunks_folder.is_relative_to(local_cache.root())
    assert [*store.chunks_folder.glob("*.json")]
    assert isinstance(store.path, ObjectPath)
    assert not (store.path / "chunks").is_dir()
    shutil.rmtree(local_cache.root())
    more = put(tmp_path / "more.nt", f"<urn:new> {TYPE} <urn:A>")
    updated = co.update(address, insert=[more], session=spark)
    assert updated.inserted == 3
    assert verify_store(address).problems == []


def test_damage_and_refusals_in_tasks(
    spark: SparkSession, address: str, tmp_path: Path, s3: S3
) -> None:
    sources = data_in(tmp_path)
    co.build(address, sources, rules="rhodf", session=spark)
    s3.faults(refuse=9)
    co.update(address, delete=[sources[1]], session=spark)
    s3.faults()
    store = Store.open(address)
    shutil.rmtree(local_cache.root())
    (store.facts.folder / store.facts.files()[0].path).unlink()
    with pytest.raises(OperationFailed) as caught:
        co.update(address, insert=[sources[1]], session=spark)
    assert caught.value.code == "E503"
    assert Store.open(address).latest() == 2
    wrong = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "max_retries": "0"}
    with pytest.raises(OperationFailed) as caught:
        co.build(f"{address}2", sources, session=spark, storage_options=wrong)
    assert caught.value.code == "E512"


def test_commands_on_spark(
    spark: SparkSession, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [str(path) for path in data_in(tmp_path)]
    assert main(["build", address, *sources, "--engine", "spark", "--quiet"]) == 0
    assert main(["update", address, "--engine", "spark", "--delete", sources[1], "--quiet"]) == 0
    query = "SELECT (COUNT(*) AS ?n) { ?x a <urn:C> }"
    for version, count in (("1", "20"), ("2", "0")):
        words = ("--engine", "spark", "--at-version", version, "--format", "csv", "--quiet")
        capsys.readouterr()
        assert main(["query", address, query, *words]) == 0
        assert capsys.readouterr().out.split() == ["n", count]


def test_a_stream_needs_a_checkpoint(address: str, tmp_path: Path) -> None:
    KnowledgeBase("p(1) .").save(address)
    with pytest.raises(InvalidInput) as caught:
        co.stream(address, tmp_path)
    assert caught.value.code == "E507"


@pytest.mark.skipif(not can_mount(), reason="needs a mount namespace")
def test_executors_need_no_shared_disk(s3: S3, address: str, tmp_path: Path) -> None:
    report = run("tests.spark.remote", str(tmp_path), address)
    expected = embedded([tmp_path / "data.nt"], "rhodf")
    assert report == {"built": len(expected), "updated": 2, "version": 2}
    assert verify_store(address).problems == []
    assert len(stored(store_path(address))) == len(expected) + 2
