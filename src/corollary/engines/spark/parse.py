"""Parse: files, lines and tables as blocks of distinct terms and of triples, part by part.

Each task reads some splits with the compiled tokenizer and numbers their terms by itself; what
leaves it are its distinct terms, by buckets of their hashes, and triples of three small numbers.
How RDF is read is not known here: a reader comes along and is sent to the tasks.

A task never fails because of what is in a file. It reports what it could not read, and the driver,
which knows how many lines the other splits have, says where that is.
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

from corollary.engines.spark.blocks import (
    ARROW,
    FACTS,
    REPORT,
    SCHEMA,
    TERMS,
    Numbers,
    block,
    packed,
)

Hashes = Callable[[Any], pa.Array]  # 64-bit hashes of texts, those of the terms table
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_HASHED = 1 << 62  # above the numbers of all other parts
SplitOf = Callable[[str, int], Any]
_BLOCK = 1 << 20  # facts in a block


class Part(Protocol):
    """What a reader gives; see `rdf.splits.Part`."""

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
    """How tasks read; see `rdf.splits.PartReader`."""

    def files(self, splits: Any, /) -> Part: ...

    def lines(self, runs: Any, /) -> Part: ...

    def documents(self, documents: Any, /) -> Part: ...

    def frame(self, table: pa.Table, name: str, scope: str = "", /) -> Part: ...


class Blocks:
    """How parts become blocks: a value that is sent to tasks."""

    def __init__(self, reader: Reader, hashes: Hashes, buckets: int, mark: str = "") -> None:
        """`mark` goes before the names of relations: facts that are parsed together are told so."""
        self.reader = reader
        self._hashes = hashes
        self._buckets = buckets
        self._mark = mark

    def identity(self, part: Part) -> int:
        """A number for a part that follows from its terms."""
        found = self._hashes(part.terms).to_numpy(zero_copy_only=False).view(np.uint64)
        total = np.sum((found ^ (found >> np.uint64(29))) * _ODD, dtype=np.uint64)
        return int(total >> np.uint64(2)) + _HASHED

    def of(self, part: Part, number: int, splits: Any, started: float) -> Iterator[pa.RecordBatch]:
        """The blocks of a part, its report last."""
        terms = part.terms
        hashes = self._hashes(terms).to_numpy(zero_copy_only=False)
        for bucket, places in by_bucket(hashes, self._buckets):
            texts = terms.take(pa.array(places))
            local = pa.array(places.astype(np.uint32))
            payload = packed({"local": local, "term": texts, "hash": pa.array(hashes[places])})
            yield block(number, TERMS, bucket, len(places), payload)
        counts = {}
        for name, columns in part.facts.items():
            relation = self._mark + name
            counts[relation] = (len(columns), len(columns[0]) if columns else 1)
            for start in range(0, counts[relation][1], _BLOCK):
                piece = {
                    f"arg{place}": pa.array(column[start : start + _BLOCK])
                    for place, column in enumerate(columns)
                }
                size = min(_BLOCK, counts[relation][1] - start)
                yield block(number, FACTS, -1, size, packed(piece, relation))
        report = {
            "part": number,
            "splits": splits,
            "facts": counts,  # by relation: arguments, rows
            "terms": len(terms),
            "lines": part.lines,
            "skipped": part.skipped,
            "samples": part.samples,
            "prefixes": dict(part.prefixes),
            "error": _told(part.error),
            "failed": part.failed,
            "seconds": time.perf_counter() - started,
            "notices": part.notices,
            # What is deleted has no effect anyway.
            "vocabulary": ({}, [], []) if self._mark else part.vocabulary,
        }
        yield block(
            number, REPORT, -1, sum(rows for _, rows in counts.values()), pickle.dumps(report)
        )


def by_bucket(hashes: Numbers, buckets: int) -> Iterator[tuple[int, Numbers]]:
    """The places of terms by the bucket of their hash.

    >>> [(bucket, places.tolist()) for bucket, places in by_bucket(np.array([4, 3, -1]), 2)]
    [(0, [0]), (1, [1, 2])]
    """
    if not len(hashes):
        return
    bucket = np.mod(hashes, buckets)  # as `pmod` of Spark
    order = np.argsort(bucket, kind="stable")
    found, starts = np.unique(bucket[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True)


def parse_files(
    session: SparkSession, groups: Sequence[Sequence[Any]], blocks: Blocks, first: int
) -> DataFrame:
    """Files that tasks can open themselves: each group of splits is a part, read by one task.

    Parts are numbered from `first` on.
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
    """Files of lines that only Spark can open: each partition of them is a part.

    Spark cuts them, decompresses them and gives their lines; `split_of` makes a split of a path
    and a place.
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
    """Documents that only Spark can open, and that are not cut: up to 2 GB each."""
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
    """Rows of a DataFrame: each partition is a part.

    The rows of a frame may come in another order when it is computed again, and must get the same
    numbers. So the terms of a part are put in order, and a part is known by a hash of its terms:
    parts with the same terms give them the same numbers.
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
    """A part that the driver has."""
    batches = list(blocks.of(part, number, [], time.perf_counter()))
    return session.createDataFrame(pa.Table.from_batches(batches, ARROW))


def _put_in_order(part: Part) -> None:
    order = pc.array_sort_indices(part.terms).to_numpy()
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order))
    part.terms = part.terms.take(pa.array(order))
    part.facts = {name: [rank[c] for c in columns] for name, columns in part.facts.items()}


class _Runs:
    """The lines of a partition by the split that they belong to."""

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
    """Where a row differs from the one before."""
    places: set[int] = set()
    for column in keys.columns:
        before, after = column.slice(0, len(keys) - 1), column.slice(1)
        differs = pc.not_equal(before, after).to_numpy(zero_copy_only=False)
        places.update((np.flatnonzero(differs) + 1).tolist())
    return sorted(places)


def _told(error: Any) -> Any:
    """An error as a value that every process can read."""
    if error is None:
        return None
    kind = "failed" if error.exit_status == 1 else "invalid"
    return (kind, error.code, error.message, error.hint, error.file, error.line, error.column)
