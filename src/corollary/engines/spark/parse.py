"""Parse files, lines and tables into blocks of distinct terms and of triples, part by part.

Each task reads some splits with the compiled tokenizer and numbers their terms locally. It emits
its distinct terms, bucketed by hash, and triples of three small numbers. This module does not
depend on a syntax of RDF: a reader is a parameter, and is sent to the tasks.

A task never fails because of the content of a file. It reports the statements that it could not
read, and the driver, which knows the number of lines of the other splits, computes their positions.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from corollary.core.ids import row_groups
from corollary.engines.spark.blocks import (
    ARROW,
    FACTS,
    MOST_ROWS,
    REPORT,
    SCHEMA,
    TERMS,
    block,
    cut,
    serialize,
)

Hashes = Callable[[Any], pa.Array]  # 64-bit hashes of texts, as in the terms table
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_HASHED = 1 << 62  # greater than the numbers of all other parts
SplitOf = Callable[[str, int], Any]


class Part(Protocol):
    """The result of a reader; see `rdf.splits.Part`."""

    terms: pa.LargeStringArray
    facts: Any
    lines: list[int]
    skipped: int
    samples: Any
    prefixes: Any
    error: Any
    failed: int | None
    notices: Any
    vocabulary: Any


class Reader(Protocol):
    """Reads splits in tasks; see `rdf.splits.PartReader`."""

    def files(self, splits: Any, /) -> Part: ...

    def lines(self, runs: Any, /) -> Part: ...

    def documents(self, documents: Any, /) -> Part: ...

    def frame(self, table: pa.Table, name: str, scope: str = "", /) -> Part: ...


class Blocks:
    """Converts parts to blocks; pickled and sent to tasks."""

    def __init__(self, reader: Reader, hashes: Hashes, buckets: int, mark: str = "") -> None:
        """`mark` prefixes names of relations, to distinguish facts that are parsed together."""
        self.reader = reader
        self._hashes = hashes
        self._buckets = buckets
        self._mark = mark

    def identity(self, part: Part) -> int:
        """Hash the terms of a part to its number."""
        found = self._hashes(part.terms).to_numpy(zero_copy_only=False).view(np.uint64)
        total = np.sum((found ^ (found >> np.uint64(29))) * _ODD, dtype=np.uint64)
        return int(total >> np.uint64(2)) + _HASHED

    def of(self, part: Part, number: int, splits: Any, started: float) -> Iterator[pa.RecordBatch]:
        """Yield the blocks of a part, its report last."""
        terms = part.terms
        hashes = self._hashes(terms).to_numpy(zero_copy_only=False)
        for bucket, places in row_groups(np.mod(hashes, self._buckets)):  # as `pmod` of Spark
            texts = terms.take(pa.array(places))
            for part_of_bucket in cut(texts):
                chosen = places[part_of_bucket]
                columns = {
                    "local": pa.array(chosen.astype(np.uint32)),
                    "term": texts[part_of_bucket],
                    "hash": pa.array(hashes[chosen]),
                }
                yield block(number, TERMS, bucket, len(chosen), serialize(columns))
        counts = {}
        for name, columns in part.facts.items():
            relation = self._mark + name
            counts[relation] = (len(columns), len(columns[0]) if columns else 1)
            for start in range(0, counts[relation][1], MOST_ROWS):
                piece = {
                    f"arg{place}": pa.array(column[start : start + MOST_ROWS])
                    for place, column in enumerate(columns)
                }
                size = min(MOST_ROWS, counts[relation][1] - start)
                yield block(number, FACTS, -1, size, serialize(piece, relation))
        report = {
            "part": number,
            "splits": splits,
            "facts": counts,  # by relation: arguments, rows
            "terms": len(terms),
            "bytes": terms.nbytes,
            "lines": part.lines,
            "skipped": part.skipped,
            "samples": part.samples,
            "prefixes": dict(part.prefixes),
            "error": _picklable(part.error),
            "failed": part.failed,
            "seconds": time.perf_counter() - started,
            "notices": part.notices,
            # Deleted facts have no effect, so their vocabulary causes no warnings.
            "vocabulary": ({}, [], []) if self._mark else part.vocabulary,
        }
        yield block(
            number, REPORT, -1, sum(rows for _, rows in counts.values()), pickle.dumps(report)
        )


def parse_files(
    session: SparkSession, groups: Sequence[Sequence[Any]], blocks: Blocks, first: int
) -> DataFrame:
    """Parse files that tasks can open: each group of splits is a part, read by one task.

    Parts are numbered from `first`.
    """

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                started = time.perf_counter()
                splits = groups[number]
                yield from blocks.of(blocks.reader.files(splits), first + number, splits, started)

    count = len(groups)
    return session.range(0, count, 1, numPartitions=count).mapInArrow(task, SCHEMA)


def parse_lines(
    session: SparkSession, paths: Sequence[str], split_of: SplitOf, blocks: Blocks, first: int
) -> DataFrame:
    """Parse files of lines that only Spark can open: each partition is a part.

    Spark splits and decompresses the files and yields their lines; `split_of` creates a split from
    a path and an offset.
    """
    frame = (
        session.read.option("lineSep", "\n")
        .text(list(paths))
        .select(
            "value",
            f.col("_metadata.file_path").alias("path"),
            f.col("_metadata.file_block_start").alias("start"),
            (f.spark_partition_id() + first).alias("part"),
        )
    )

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.perf_counter()
        runs = _Runs(batches, split_of)
        part = blocks.reader.lines(runs)
        if runs.part is not None:
            yield from blocks.of(part, runs.part, runs.splits, started)

    return frame.mapInArrow(task, SCHEMA)


def parse_documents(
    session: SparkSession, paths: Sequence[str], split_of: SplitOf, blocks: Blocks, first: int
) -> DataFrame:
    """Parse documents that only Spark can open and that are not split: up to 2 GB each."""
    frame = (
        session.read.format("binaryFile")
        .load(list(paths))
        .select("path", "content", (f.spark_partition_id() + first).alias("part"))
    )

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.perf_counter()
        splits: list[Any] = []
        parts: list[int] = []

        def documents() -> Iterator[tuple[Any, bytes]]:
            for batch in batches:
                for row in batch.to_pylist():
                    parts.append(row["part"])
                    splits.append(split_of(row["path"], 0))
                    yield splits[-1], row["content"]

        found = blocks.reader.documents(documents())
        if parts:
            yield from blocks.of(found, parts[0], splits, started)

    return frame.mapInArrow(task, SCHEMA)


def parse_frame(frame: DataFrame, name: str, scope: str, blocks: Blocks) -> DataFrame:
    """Parse rows of a DataFrame: each partition is a part.

    A recomputed frame may yield its rows in another order, but its terms must be numbered as
    before. So the terms of a part are sorted, and a part is identified by a hash of its terms:
    parts with the same terms number them identically.
    """

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.perf_counter()
        found = [batch for batch in batches if len(batch)]
        if found:
            part = blocks.reader.frame(pa.Table.from_batches(found), name, scope)
            _put_in_order(part)
            yield from blocks.of(part, blocks.identity(part), [name], started)

    return frame.mapInArrow(task, SCHEMA)


def parse_here(session: SparkSession, part: Part, blocks: Blocks, number: int) -> DataFrame:
    """Parse a part that the driver holds."""
    batches = list(blocks.of(part, number, [], time.perf_counter()))
    return session.createDataFrame(pa.Table.from_batches(batches, ARROW))


def blocks_of_files(
    groups: Sequence[Sequence[Any]], blocks: Blocks, first: int
) -> Iterator[pa.RecordBatch]:
    """Parse small files on the driver, as `parse_files` does in tasks."""
    for number, splits in enumerate(groups, first):
        started = time.perf_counter()
        yield from blocks.of(blocks.reader.files(splits), number, splits, started)


def _put_in_order(part: Part) -> None:
    order = pc.array_sort_indices(part.terms).to_numpy()
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order))
    part.terms = part.terms.take(pa.array(order))
    part.facts = {name: [rank[c] for c in columns] for name, columns in part.facts.items()}


class _Runs:
    """Groups the lines of a partition by split."""

    def __init__(self, batches: Iterator[pa.RecordBatch], split_of: SplitOf) -> None:
        self._pieces = self._cut(batches)
        self._split_of = split_of
        self.splits: list[Any] = []
        self.part: int | None = None

    def __iter__(self) -> Iterator[tuple[Any, Iterable[pa.Array]]]:
        piece = next(self._pieces, None)
        while piece is not None:
            key, lines = piece
            self.splits.append(self._split_of(*key))
            self._next: Any = None
            yield self.splits[-1], self._run(key, lines)
            piece = self._next

    def _run(self, key: Any, lines: pa.Array) -> Iterator[pa.Array]:
        yield lines
        for other, more in self._pieces:
            if other != key:
                self._next = (other, more)
                return
            yield more

    def _cut(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[str, int], pa.Array]]:
        for batch in batches:
            if not len(batch):
                continue
            if self.part is None:
                self.part = batch.column("part")[0].as_py()
            keys = pa.record_batch([batch.column("path"), batch.column("start")], ["path", "start"])
            ends = _changes(keys)
            for begin, end in zip([0, *ends], [*ends, len(batch)], strict=True):
                row = keys.slice(begin, 1).to_pylist()[0]
                lines = batch.column("value").slice(begin, end - begin)
                yield (row["path"], row["start"]), lines


def _changes(keys: pa.RecordBatch) -> list[int]:
    """Return the positions at which a row differs from the previous one."""
    places: set[int] = set()
    for column in keys.columns:
        before, after = column.slice(0, len(keys) - 1), column.slice(1)
        differs = pc.not_equal(before, after).to_numpy(zero_copy_only=False)
        places.update((np.flatnonzero(differs) + 1).tolist())
    return sorted(places)


def _picklable(error: Any) -> Any:
    """Convert an error to a value that every process can unpickle."""
    if error is None:
        return None
    kind = "failed" if error.exit_status == 1 else "invalid"
    return (kind, error.code, error.message, error.hint, error.file, error.line, error.column)
