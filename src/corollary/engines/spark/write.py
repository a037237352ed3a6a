"""Write the tables of a commit: tasks write sorted Parquet into the folders of a store.

Each task returns the name, rows and bytes of its file. Before the commit, the driver compares them
with the files in the folder, and their sum with the known number of rows. So executors that do not
share the folder with the driver cannot produce a version without facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from corollary.core.object_store import ObjectPath, StorePath, remove_tree
from corollary.engines.spark.failures import incomplete_table, user_error
from corollary.engines.spark.local import address
from corollary.engines.spark.parquet import (
    SCHEMA,
    ReadObjects,
    WriteParquet,
    WrittenFile,
    size_and_rows,
)
from corollary.errors import CorollaryError

ROWS = 1 << 22  # rows of a file of facts, about 40 MB
_TASK_ROWS = 1 << 19  # rows that one task sorts and writes in less time than a job takes


def write_facts(
    facts: DataFrame, folder: StorePath, name: str, *, rows: int, type_id: int, least: int = 1
) -> list[WrittenFile]:
    """Write rows of the facts (or changes) table, sorted so that readers can skip most of them.

    The sort keys are relation, then property, then the class of a triple with rdf:type, else the
    subject. Files are range-partitioned by these keys, with about `ROWS` rows each; there are at
    least `least` files, unless there are few rows.
    """
    second: Column = f.when(f.col("arg1") == type_id, f.col("arg2")).otherwise(f.col("arg0"))
    keys = [f.col("relation"), f.col("arg1"), second]
    files = max(min(least, -(-rows // _TASK_ROWS)), -(-rows // ROWS))
    frame = facts.repartitionByRange(files, *keys) if files > 1 else facts.coalesce(1)
    return write(frame.sortWithinPartitions(*keys, "arg0", "arg2"), folder, name, rows=rows)


def read_files(session: SparkSession, files: Iterable[StorePath], schema: str) -> DataFrame:
    """Read the rows of Parquet files; columns missing in a file are null.

    Objects are read by tasks, with the credentials of the store: Spark needs no connector.
    """
    found = list(files)
    local = [address(file) for file in found if isinstance(file, Path)]
    remote = [file.for_tasks() for file in found if isinstance(file, ObjectPath)]
    if remote:
        kinds = session.createDataFrame([], schema).schema
        numbers = session.range(0, len(remote), 1, numPartitions=len(remote))
        return numbers.mapInArrow(ReadObjects(tuple(remote), to_arrow_schema(kinds)), schema)
    if not local:
        return session.createDataFrame([], schema)
    return session.read.schema(schema).parquet(*local)


def write_all(
    frames: Mapping[str, DataFrame], folder: StorePath, *, compression: str = "zstd"
) -> None:
    """Write each frame into a new folder of `folder`, all by one job; see `write`."""
    targets = {name: _created(folder, name) for name in frames}
    try:
        tasks = []
        for name, frame in frames.items():
            task = WriteParquet(_for_tasks(targets[name]), compression)
            tasks.append(frame.mapInArrow(task, SCHEMA).withColumn("target", f.lit(name)))
        rows = reduce(DataFrame.union, tasks).toArrow().to_pylist() if tasks else []
        for name, target in targets.items():
            columns = ("name", "rows", "bytes", "counts")
            own = [[row[c] for c in columns] for row in rows if row["target"] == name]
            reported = [WrittenFile.of(*row) for row in own]
            compare(reported, target, None)
            _tidy(target, reported)
    except BaseException:
        for target in targets.values():
            _remove(target)
        raise


def _created(folder: StorePath, name: str) -> StorePath:
    target = folder / name
    try:
        target.mkdir()
    except OSError as error:
        raise user_error(f"writing {folder.name}", str(error)) from None
    return target


def _for_tasks(target: StorePath) -> StorePath:
    # Tasks have a different working directory.
    return target.for_tasks() if isinstance(target, ObjectPath) else target.absolute()


def _remove(target: StorePath) -> None:
    with suppress(CorollaryError):  # the object store may be what has failed
        remove_tree(target, ignore_errors=True)


def _tidy(target: StorePath, reported: Sequence[WrittenFile]) -> None:
    """Remove the files that a retried task has left."""
    names = {file.name for file in reported}
    for file in [*target.iterdir()]:
        if file.name not in names:
            file.unlink()


def write(
    frame: DataFrame,
    folder: StorePath,
    name: str,
    *,
    rows: int | None = None,
    compression: str = "zstd",
) -> list[WrittenFile]:
    """Write a frame of `rows` rows into a new folder `name` of `folder`, one file per task.

    The names of the files are relative to `folder`. If the write fails, or the files differ from
    the tasks' reports, the new folder is removed.
    """
    target = _created(folder, name)
    try:
        task = WriteParquet(_for_tasks(target), compression)
        found = frame.mapInArrow(task, SCHEMA).toArrow()
        reported = [WrittenFile.of(*row) for row in zip(*found.to_pydict().values(), strict=True)]
        compare(reported, target, rows)
    except BaseException:
        _remove(target)
        raise
    _tidy(target, reported)
    return [WrittenFile(f"{name}/{r.name}", r.rows, r.bytes, r.counts) for r in reported]


def compare(reported: Sequence[WrittenFile], folder: StorePath, rows: int | None) -> None:
    """Fail unless the folder holds the files that tasks report, with `rows` rows in total."""
    for file in reported:
        path = folder / file.name
        try:
            size_rows = size_and_rows(path)
        except (OSError, pa.ArrowInvalid):
            size_rows = (-1, -1)
        if size_rows != (file.bytes, file.rows):
            raise incomplete_table(
                f"a task wrote {file.rows:,} rows to {path}, which the driver does not see"
            )
    written = sum(file.rows for file in reported)
    if rows is not None and written != rows:
        raise incomplete_table(f"tasks wrote {written:,} of {rows:,} rows to {folder}")
