"""Many tables of ids as few rows of a DataFrame.

Spark takes a microsecond or two for each row that it shuffles, and a fact is 8 bytes. So what
travels are *chunks*: one row for some thousands of facts of any predicates, which to Spark is a
number and some bytes, and to a task arrays that it can use as they are.

A table is named by a *key* of four numbers: what a relation, property and class are numbered by
(`NONE` if there is none), and the columns that the table has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.dictionary import Ids

Key = tuple[int, int, int, int]  # relation, property, class, columns
Packed = Mapping[Key, Ids]
Partitions = npt.NDArray[np.int32]

NONE = 2**32 - 1  # no id is so large (`dictionary.MAX_TERMS`)
CHUNK = 1 << 20  # ids in a chunk, more or less: 4 MB

# What the rows of a chunk are.
STATE, FRESH, RESULT, DERIVED, REPORT, TEXTS = range(6)

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
    """Where facts with these ids in the place of their key belong.

    >>> partition_of(np.array([1, 2, 3], np.uint32), 1).tolist()
    [0, 0, 0]
    """
    # Fibonacci hashing: the upper bits of the product depend on all bits of dense ids.
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
    return (mixed % np.uint64(partitions)).astype(np.int32)


def pack(tables: Packed) -> tuple[bytes, bytes, int]:
    """Tables as an index, their numbers, and how many rows they have together.

    >>> index, data, rows = pack({(0, 7, NONE, 2): np.array([[1, 2]], np.uint32)})
    >>> [(key, table.tolist()) for key, table in unpack(index, data)], rows
    ([((0, 7, 4294967295, 2), [[1, 2]])], 1)
    """
    index = np.array([(*key, len(table)) for key, table in tables.items()], np.uint32)
    data = b"".join(np.ascontiguousarray(table, np.uint32).tobytes() for table in tables.values())
    return index.tobytes(), data, sum(len(table) for table in tables.values())


def unpack(index: bytes, data: bytes) -> Iterator[tuple[Key, Ids]]:
    """The tables of a chunk; their arrays are not copied."""
    numbers = np.frombuffer(data, np.uint32)
    at = 0
    for *key, count in np.frombuffer(index, np.uint32).reshape(-1, 5).tolist():
        size = count * key[3]
        yield (key[0], key[1], key[2], key[3]), numbers[at : at + size].reshape(count, key[3])
        at += size


def chunks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Key, Ids]]:
    """Partition, kind, key and rows of all tables in batches of chunks."""
    for batch in batches:
        partitions, kinds, _, indexes, data = (column for column in batch.columns)
        for at in range(batch.num_rows):
            kind = kinds[at].as_py()
            if kind in (REPORT, TEXTS):
                continue
            index, numbers = indexes[at].as_buffer(), data[at].as_buffer()
            for key, rows in unpack(index, numbers):
                yield partitions[at].as_py(), kind, key, rows


def batch_of(partition: int, kind: int, tables: Packed) -> Iterator[pa.RecordBatch]:
    """Tables as chunks for one partition, each of about `CHUNK` numbers."""
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
    return pa.RecordBatch.from_pydict(
        {
            "partition": [partition],
            "kind": [kind],
            "rows": [rows],
            "index": [index],
            "data": [data],
        },
        ARROW,
    )


def report_of(partition: int, text: bytes) -> pa.RecordBatch:
    """What a task has to say, as a row among its chunks."""
    return pa.RecordBatch.from_pydict(
        {"partition": [partition], "kind": [REPORT], "rows": [0], "index": [b""], "data": [text]},
        ARROW,
    )


def reports_of(batch: pa.RecordBatch) -> list[bytes]:
    """What tasks have said in a batch of chunks."""
    kinds = batch.column(1).to_numpy(zero_copy_only=False)
    return [batch.column(4)[int(at)].as_py() for at in np.flatnonzero(kinds == REPORT)]


class Gathering:
    """Tables by partition, kind and key, in pieces that come one after the other."""

    def __init__(self, limit: int = 8 * CHUNK) -> None:
        self._parts: dict[tuple[int, int], dict[Key, list[Ids]]] = {}
        self._size = 0
        self._limit = limit

    def add(self, partition: int, kind: int, key: Key, rows: Ids) -> None:
        """Add rows, duplicates or not."""
        if len(rows):
            self._parts.setdefault((partition, kind), {}).setdefault(key, []).append(rows)
            self._size += rows.size

    def send(self, kind: int, key: Key, rows: Ids, place: int | None, partitions: int) -> None:
        """Add rows where the ids of a column say; everywhere, if there is none."""
        if not len(rows):
            return
        if place is None:
            for partition in range(partitions):
                self.add(partition, kind, key, rows)
            return
        if not rows.shape[1]:
            self.add(0, kind, key, rows)
            return
        if partitions == 1:
            self.add(0, kind, key, rows)
            return
        numbers = partition_of(rows[:, place], partitions)
        order = np.argsort(numbers.astype(np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=partitions))
        start = 0
        for number, end in enumerate(ends.tolist()):
            if end > start:
                self.add(number, kind, key, rows[order[start:end]])
            start = end

    @property
    def full(self) -> bool:
        """Whether there is so much that it should be passed on."""
        return self._size > self._limit

    def take(self) -> Iterator[pa.RecordBatch]:
        """All that was added, as chunks; afterwards there is nothing."""
        parts, self._parts, self._size = self._parts, {}, 0
        for (partition, kind), tables in parts.items():
            merged = {
                key: rows[0] if len(rows) == 1 else np.concatenate(rows)
                for key, rows in tables.items()
            }
            yield from batch_of(partition, kind, merged)
