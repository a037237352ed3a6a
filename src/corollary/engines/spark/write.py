"""Commit, the part that Spark does: tasks write sorted Parquet into the folders of a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from corollary.core.checksum import name_by_content
from corollary.engines.spark.local import address

ROWS = 1 << 22  # in a file of facts, about 40 MB
_QUIET = "mapreduce.fileoutputcommitter.marksuccessfuljobs"


def write_terms(terms: DataFrame, folder: Path, name: str) -> list[str]:
    """Write the columns of the terms table into a folder of their own; the names of the files."""
    return written(terms, folder, name)


def write_facts(
    facts: DataFrame, folder: Path, name: str, *, rows: int, type_id: int, least: int = 1
) -> list[str]:
    """Write rows of the facts (or changes) table, sorted so that readers skip most of them.

    By relation, then property, then the class of a triple with rdf:type, else its subject. Files
    have ranges of these, about so many rows each, and there are at least so many files.
    """
    second: Column = f.when(f.col("arg1") == type_id, f.col("arg2")).otherwise(f.col("arg0"))
    keys = [f.col("relation"), f.col("arg1"), second]
    files = max(least, -(-rows // ROWS))
    frame = facts.repartitionByRange(files, *keys) if files > 1 else facts.coalesce(1)
    return written(frame.sortWithinPartitions(*keys, "arg0", "arg2"), folder, name)


def read_files(session: SparkSession, files: Iterable[Path], schema: str) -> DataFrame:
    """The rows of Parquet files; columns that a file does not have are null."""
    paths = [address(file) for file in files]
    if not paths:
        return session.createDataFrame([], schema)
    return session.read.schema(schema).parquet(*paths)


def written(frame: DataFrame, folder: Path, name: str, *, compression: str = "zstd") -> list[str]:
    """Write a frame into a folder of its own; the names of the files, with their checksums."""
    target = folder / name
    writer = frame.write.option("compression", compression).option(_QUIET, "false")
    writer.parquet(address(target))
    for checksum in target.glob(".*.crc"):
        checksum.unlink()
    files = [name_by_content(file) for file in sorted(target.glob("*.parquet"))]
    return [f"{name}/{file.name}" for file in files]


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames."""
    first, *others = frames
    for other in others:
        first = first.union(other)
    return first
