"""Blocks: many terms or triples as one row of bytes, exchanged by tasks that use arrays.

Moving a row of Spark from one Python process to another costs about a microsecond, whatever its
size. So tasks exchange blocks: columns of numbers and texts in Arrow's format, with the part of the
input that they come from, or the bucket of terms that they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]

_RELATION = b"relation"
# Payloads stay far below 2 GiB, the limit of a binary value in Spark and in an Arrow array.
MOST_ROWS = 1 << 20
MOST_BYTES = 1 << 28
# Kinds of blocks.
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
    """Create a block as a batch of one row."""
    numbers = [pa.array([part], pa.int64()), *(pa.array([n], pa.int32()) for n in (kind, bucket))]
    data = pa.py_buffer(payload)
    if data.size >= 1 << 31:
        raise ValueError(f"a payload of {data.size:,} bytes; a block holds less than 2 GiB")
    offsets = pa.py_buffer(np.array([0, data.size], np.int32))
    binary = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])
    return pa.record_batch([*numbers, pa.array([count], pa.int64()), binary], schema=ARROW)


def serialize(columns: dict[str, Any], relation: str | None = None) -> pa.Buffer:
    """Serialize columns; those of facts with their relation.

    >>> deserialize(serialize({"a": pa.array([1, 2])})).to_pydict()
    {'a': [1, 2]}
    """
    batch = pa.record_batch(columns)
    if relation is not None:
        batch = batch.replace_schema_metadata({_RELATION: relation})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def deserialize(payload: pa.Buffer | bytes) -> pa.Table:
    """Deserialize the columns of a payload."""
    with pa.ipc.open_stream(payload) as reader:
        return reader.read_all()


def cut(texts: pa.LargeStringArray) -> Iterator[slice]:
    """Cut texts into slices of at most `MOST_ROWS` rows and about `MOST_BYTES` bytes.

    >>> [(part.start, part.stop) for part in cut(pa.array(["a", "b"], pa.large_string()))]
    [(0, 2)]
    """
    ends = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False), dtype=np.int64)
    start = size = 0
    while start < len(ends):
        stop = int(np.searchsorted(ends, size + MOST_BYTES, side="right"))
        stop = max(start + 1, min(stop, start + MOST_ROWS))
        yield slice(start, stop)
        start, size = stop, int(ends[stop - 1])


def relation_of(table: pa.Table) -> str:
    """Read the relation of a block of facts."""
    name: bytes = table.schema.metadata[_RELATION]
    return name.decode()


def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, int, int, pa.Buffer]]:
    """Yield the blocks of a task's input; payloads are not copied."""
    for batch in batches:
        columns = [batch.column(name) for name in ARROW.names]
        numbers = [column.to_pylist() for column in columns[:-1]]
        for place, found in enumerate(zip(*numbers, strict=True)):
            part, kind, bucket, count = found
            yield part, kind, bucket, count, columns[-1][place].as_buffer()
