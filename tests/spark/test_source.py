"""`spark.read.format("rdf")` and its writer: rows, options, mistakes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corollary import spark as co

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """With the source. Spark looks for the source of a write in the active session, which is the
    one that has made a frame last: here it may be one of another test."""
    spark.createDataFrame([], "nothing int")
    co.register(spark)
    return spark


def rows(session: SparkSession, path: Path, **options: str) -> list[tuple[str, ...]]:
    found = session.read.format("rdf").options(**options).load(str(path)).collect()
    return sorted(map(tuple, found))


def test_reads_every_syntax_and_writes_what_it_reads(session: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.nt").write_text('<urn:a> <urn:p> "x\\ny"@en .\n_:b <urn:p> <urn:a> .\n')
    (data / "b.ttl.gz").write_bytes(gzip.compress(b"<urn:b> <urn:p> 7, _:b ."))
    found = rows(session, data)
    assert found == [
        ("<urn:a>", "<urn:p>", '"x\\ny"@en'),
        ("<urn:b>", "<urn:p>", '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("<urn:b>", "<urn:p>", "_:d0f1.b"),
        ("_:d0f0.b", "<urn:p>", "<urn:a>"),
    ]
    assert ("<urn:b>", "<urn:p>", "_:b") in rows(session, data, keepLabels="true")
    out = tmp_path / "out"
    frame = session.read.format("rdf").load(str(data))
    frame.write.format("rdf").mode("append").save(str(out))
    assert rows(session, out, keepLabels="true") == found
    frame.limit(1).write.format("rdf").mode("overwrite").option("compression", "zstd").save(
        str(out)
    )
    [file] = out.iterdir()
    assert file.suffix == ".zst"
    assert len(rows(session, out)) == 1


def test_mistakes(session: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    bad = tmp_path / "bad.nt"
    bad.write_text("<urn:a> <urn:p> <urn:b> .\n" * 3 + "oops\n")
    with pytest.raises(PySparkException, match=r"bad\.nt:4:1: E320: expected an IRI"):
        rows(session, bad)
    assert len(rows(session, bad, onError="skip")) == 3
    with pytest.raises(PySparkException, match=r"cannot read .*no\.nt: No such file"):
        rows(session, tmp_path / "no.nt")
    with pytest.raises(PySparkException, match="is an address"):
        session.read.format("rdf").load("s3a://bucket/a.nt").collect()
    frame = session.read.format("rdf").load(str(bad))
    with pytest.raises(
        PySparkException, match="expected the columns subject, predicate and object"
    ):
        frame.withColumnRenamed("object", "o").write.format("rdf").mode("append").save(
            str(tmp_path / "out")
        )
    with pytest.raises(PySparkException, match="cannot be compressed as brotli"):
        frame.write.format("rdf").mode("append").option("compression", "brotli").save(
            str(tmp_path / "out")
        )
    # A task that fails leaves no file that anybody would read.
    with pytest.raises(PySparkException, match="E320"):
        frame.write.format("rdf").mode("append").save(str(tmp_path / "out"))
    assert [file for file in (tmp_path / "out").glob("*") if not file.name.startswith(".")] == []
