"""Blocks: many terms or triples as one row of bytes, between tasks that hold them as arrays.

A row of Spark costs about a microsecond on its way from one Python process to another, whatever it
holds. So what tasks exchange are blocks: columns of numbers and texts, written as Arrow, with the
part of the input that they come from, or the bucket of terms that they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

_RELATION = b"relation"
# What a block holds.
REPORT, TERMS, FACTS, KNOWN, NEW, CODES = range(6)
SCHEMA = "part long, kind int, bucket int, count long, payload binary"
ARROW = pa.schema(
    [
        ("part", pa.int64()),
        ("kind", pa.int32()),
        ("bucket", pa.int32()),
        ("count", pa.int64()),
        ("payload", pa.binary()),
    ]
)


def block(
    part: int, kind: int, bucket: int, count: int, payload: bytes | pa.Buffer
) -> pa.RecordBatch:
    """One row."""
    numbers = [pa.array([part], pa.int64()), *(pa.array([n], pa.int32()) for n in (kind, bucket))]
    data = pa.py_buffer(payload)
    offsets = pa.py_buffer(np.array([0, data.size], np.int32))
    binary = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])
    return pa.record_batch([*numbers, pa.array([count], pa.int64()), binary], schema=ARROW)


def packed(columns: dict[str, Any], relation: str | None = None) -> pa.Buffer:
    """Columns as bytes, those of facts with their relation.

    >>> unpacked(packed({"a": pa.array([1, 2])})).to_pydict()
    {'a': [1, 2]}
    """
    batch = pa.record_batch(columns)
    if relation is not None:
        batch = batch.replace_schema_metadata({_RELATION: relation})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpacked(payload: pa.Buffer | bytes) -> pa.Table:
    """The columns that were packed."""
    with pa.ipc.open_stream(payload) as reader:
        return reader.read_all()


def relation_of(table: pa.Table) -> str:
    """The relation that facts were packed with."""
    name: bytes = table.schema.metadata[_RELATION]
    return name.decode()


def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, int, int, pa.Buffer]]:
    """The blocks of a task's input; payloads are not copied."""
    for batch in batches:
        columns = [batch.column(name) for name in ARROW.names]
        numbers = [column.to_pylist() for column in columns[:-1]]
        for place, found in enumerate(zip(*numbers, strict=True)):
            part, kind, bucket, count = found
            yield part, kind, bucket, count, columns[-1][place].as_buffer()
