"""Pack many tables of ids into few DataFrame rows.

Spark takes a microsecond or two for each row that it shuffles, and a fact is 8 bytes. So facts are
shuffled in *chunks*: one row for thousands of facts of any predicates. Spark sees a number and
bytes, a task sees zero-copy arrays.

The *key* of a table is four numbers: relation, property and class (`NONE` if it has none), and the
number of columns.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.dictionary import Ids
from corollary.core.ids import row_groups

Key = tuple[int, int, int, int]  # relation, property, class, columns
Packed = Mapping[Key, Ids]
Partitions = npt.NDArray[np.int32]

NONE = 2**32 - 1  # above every id (`dictionary.MAX_TERMS`)
CHUNK = 1 << 20  # ids in a chunk, approximately: 4 MB

# Kinds of chunks.
STATE, FRESH, RESULT, DERIVED, REPORT, TEXTS, TERMS, CODES, NEW = range(9)
_TABLES = (STATE, FRESH, RESULT, DERIVED)  # the kinds that hold tables
COPIED = 16  # added to the kind of a copy for the driver, which tasks ignore

SCHEMA = "partition int, kind int, rows long, index binary, data binary"
ARROW = pa.schema(
    [
        ("partition", pa.int32()),
        ("kind", pa.int32()),
        ("rows", pa.int64()),
        ("index", pa.binary()),
        ("data", pa.binary()),
    ]
)


def partition_of(ids: Ids, partitions: int) -> Partitions:
    """Return the partitions of facts with these ids in the partitioning column.

    >>> partition_of(np.array([1, 2, 3], np.uint32), 1).tolist()
    [0, 0, 0]
    """
    # Fibonacci hashing: the upper bits of the product depend on all bits of dense ids.
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
    return (mixed % np.uint64(partitions)).astype(np.int32)


def pack(tables: Packed) -> tuple[bytes, bytes, int]:
    """Pack tables into an index, the bytes of their ids, and the total number of rows.

    >>> index, data, rows = pack({(0, 7, NONE, 2): np.array([[1, 2]], np.uint32)})
    >>> [(key, table.tolist()) for key, table in unpack(index, data)], rows
    ([((0, 7, 4294967295, 2), [[1, 2]])], 1)
    """
    index = np.array([(*key, len(table)) for key, table in tables.items()], np.uint32)
    data = b"".join(np.ascontiguousarray(table, np.uint32).tobytes() for table in tables.values())
    return index.tobytes(), data, sum(len(table) for table in tables.values())


def unpack(index: bytes, data: bytes) -> Iterator[tuple[Key, Ids]]:
    """Yield the tables of a chunk as views of its bytes."""
    numbers = np.frombuffer(data, np.uint32)
    at = 0
    for *key, count in np.frombuffer(index, np.uint32).reshape(-1, 5).tolist():
        size = count * key[3]
        yield (key[0], key[1], key[2], key[3]), numbers[at : at + size].reshape(count, key[3])
        at += size


class Table(NamedTuple):
    """The rows of a key in a chunk."""

    partition: int
    kind: int
    key: Key
    rows: Ids


def iter_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[Table]:
    """Yield all tables in batches of chunks."""
    for batch in batches:
        for table in _tables(batch):
            if table.kind < COPIED:
                yield table


def iter_copies(batch: pa.RecordBatch) -> Iterator[Table]:
    """Yield the copies for the driver in a batch of chunks, with the kinds of their originals."""
    for partition, kind, key, rows in _tables(batch):
        if kind >= COPIED:
            yield Table(partition, kind - COPIED, key, rows)


def _tables(batch: pa.RecordBatch) -> Iterator[Table]:
    partitions, kinds, _, indexes, data = (column for column in batch.columns)
    for at in range(batch.num_rows):
        kind = kinds[at].as_py()
        if kind % COPIED not in _TABLES:
            continue
        index, numbers = indexes[at].as_buffer(), data[at].as_buffer()
        for key, rows in unpack(index, numbers):
            yield Table(partitions[at].as_py(), kind, key, rows)


def chunk_batches(partition: int, kind: int, tables: Packed) -> Iterator[pa.RecordBatch]:
    """Pack tables into chunks of about `CHUNK` ids for one partition."""
    part: dict[Key, Ids] = {}
    size = 0
    for key, table in tables.items():
        step = max(1, CHUNK // max(1, key[3]))
        for start in range(0, len(table), step):
            piece = table[start : start + step]
            if key in part or size + piece.size > CHUNK:
                yield _one(partition, kind, part)
                part, size = {}, 0
            part[key] = piece
            size += piece.size
    if part:
        yield _one(partition, kind, part)


def _one(partition: int, kind: int, tables: Packed) -> pa.RecordBatch:
    index, data, rows = pack(tables)
    values = {"partition": partition, "kind": kind, "rows": rows, "index": index, "data": data}
    return pa.RecordBatch.from_pylist([values], ARROW)


def report_batch(partition: int, report: Mapping[str, Any]) -> pa.RecordBatch:
    """Encode a task's report as a row of JSON among its chunks."""
    return special_batch(partition, REPORT, 0, json.dumps(report).encode())


def special_batch(partition: int, kind: int, rows: int, data: bytes) -> pa.RecordBatch:
    """Create a row of a kind that holds no tables."""
    values = {"partition": partition, "kind": kind, "rows": rows, "index": b"", "data": data}
    return pa.RecordBatch.from_pylist([values], ARROW)


def blocks_of(batches: Iterable[pa.RecordBatch], kind: int) -> Iterator[pa.Buffer]:
    """Yield the bytes of the rows of a kind that holds no tables."""
    for batch in batches:
        kinds = batch.column(1).to_pylist()
        for at in (at for at, found in enumerate(kinds) if found == kind):
            yield batch.column(4)[at].as_buffer()


def reports_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Decode the reports in a batch of chunks."""
    kinds = batch.column(1).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(kinds == REPORT)
    return [json.loads(batch.column(4)[int(at)].as_py()) for at in places]


def pack_counts(counts: Mapping[Key, int]) -> str:
    """Compress the counts of facts by key, as text: some bytes each.

    Every task of a job reports its keys, so with many classes and many partitions they are most of
    what the driver receives.

    >>> counts = {(0, 7, number, 1): 3 for number in range(50_000)}
    >>> len(pack_counts(counts)) < 3 * len(counts), unpack_counts(pack_counts(counts)) == counts
    (True, True)
    """
    table = np.array([(*key, count) for key, count in sorted(counts.items())], np.int64)
    steps = np.diff(table.reshape(-1, 5), axis=0, prepend=0)
    return base64.b85encode(zlib.compress(np.ascontiguousarray(steps.T).tobytes(), 1)).decode()


def unpack_counts(text: str) -> dict[Key, int]:
    """Decompress the counts of `pack_counts`."""
    steps = np.frombuffer(zlib.decompress(base64.b85decode(text)), np.int64).reshape(5, -1)
    columns = np.cumsum(steps, axis=1).tolist()
    return {(a, b, c, d): count for a, b, c, d, count in zip(*columns, strict=True)}


class ChunkBuffer:
    """Buffers output tables by partition, kind and key until they are drained as chunks.

    It counts the derived facts, for the report of the task.
    """

    def __init__(self, limit: int = 8 * CHUNK) -> None:
        self._parts: dict[tuple[int, int], dict[Key, list[Ids]]] = {}
        self._size = 0
        self._limit = limit
        self._derived: dict[Key, int] = {}

    def add(self, partition: int, kind: int, key: Key, rows: Ids) -> None:
        """Add rows; duplicates are allowed."""
        if len(rows):
            self._parts.setdefault((partition, kind), {}).setdefault(key, []).append(rows)
            self._size += rows.size
            if kind == DERIVED:
                self._derived[key] = self._derived.get(key, 0) + len(rows)

    def send(self, kind: int, key: Key, rows: Ids, place: int | None, partitions: int) -> None:
        """Route rows by the hash of a column; to all partitions if `place` is None."""
        if not len(rows):
            return
        if place is None:
            for partition in range(partitions):
                self.add(partition, kind, key, rows)
            return
        if partitions == 1 or not rows.shape[1]:
            self.add(0, kind, key, rows)
            return
        for number, places in row_groups(partition_of(rows[:, place], partitions)):
            self.add(number, kind, key, rows[places])

    @property
    def full(self) -> bool:
        """Whether the buffer should be drained."""
        return self._size > self._limit

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield the buffered tables as chunks and empty the buffer."""
        parts, self._parts, self._size = self._parts, {}, 0
        for (partition, kind), tables in parts.items():
            merged = {
                key: rows[0] if len(rows) == 1 else np.concatenate(rows)
                for key, rows in tables.items()
            }
            yield from chunk_batches(partition, kind, merged)

    def report(self, partition: int, more: Mapping[str, Any] | None = None) -> pa.RecordBatch:
        """Create the report of a task: its number of derived facts by key, and `more`."""
        counts = pack_counts(self._derived)
        return report_batch(partition, {"partition": partition, "counts": counts, **(more or {})})
