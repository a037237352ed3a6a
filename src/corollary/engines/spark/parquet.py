"""Read and write Parquet files in tasks.

This is not in `write`, so that tasks need not import PySpark's SQL.
"""

from __future__ import annotations

import json
import platform
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corollary.core.checksum import name_by_content
from corollary.core.object_store import ObjectPath, StorePath

SCHEMA = "name string, rows long, bytes long, counts string"

GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 27  # limits of a row group
_DICTIONARY = ["relation", "arg1", "change", "commit"]  # columns with few distinct values
_COUNTED = ["relation", "explicit"]


@dataclass(frozen=True)
class WrittenFile:
    """A file, as reported by its task; `counts` holds the rows by relation and `explicit`."""

    name: str
    rows: int
    bytes: int
    counts: dict[tuple[str, bool], int]

    @classmethod
    def of(cls, name: str, rows: int, size: int, counts: str) -> WrittenFile:
        """Create the description from the row that a task returned."""
        return cls(name, rows, size, {(r, e): count for r, e, count in json.loads(counts)})


@dataclass(frozen=True)
class WriteParquet:
    """Write the rows of a partition to one file; its name contains a checksum of its content.

    The driver creates a local folder; a machine without it does not share the store. An object is
    uploaded when its file is complete. A retried task writes another file; the driver uses only the
    files that finished tasks report.
    """

    folder: StorePath
    compression: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups = _row_groups(batches)
        first = next(groups, None)
        if first is None:
            return
        folder = self.folder
        if isinstance(folder, ObjectPath):
            folder.copy.mkdir(parents=True, exist_ok=True)
            folder = folder.copy
        elif not folder.is_dir():
            raise FileNotFoundError(f"E549: {platform.node()} does not see {self.folder}")
        path = folder / f"{uuid.uuid4().hex}.parquet"
        rows, counts = 0, dict[tuple[str, bool], int]()
        try:
            with (
                pa.OSFile(str(path), "wb") as sink,
                pq.ParquetWriter(
                    sink,
                    first.schema,
                    compression=self.compression,
                    use_dictionary=_DICTIONARY,
                    write_page_checksum=True,
                ) as writer,
            ):
                group: pa.Table | None = first
                while group is not None:
                    writer.write_table(group, row_group_size=len(group))
                    rows += len(group)
                    _count(group, counts)
                    group = next(groups, None)
            path = name_by_content(path)
            if isinstance(self.folder, ObjectPath):
                (self.folder / path.name).upload(path)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
        yield pa.record_batch(
            {
                "name": [path.name],
                "rows": [rows],
                "bytes": [path.stat().st_size],
                "counts": [json.dumps([[*key, count] for key, count in counts.items()])],
            }
        )


@dataclass(frozen=True)
class ReadObjects:
    """Read the files with the numbers of a partition, through copies on the machine of the task."""

    files: tuple[ObjectPath, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with pa.OSFile(str(self._fetch(number))) as source:
                    for rows in pq.ParquetFile(source).iter_batches():
                        yield self._complete(rows)

    def _fetch(self, number: int) -> Path:
        file = self.files[number]
        try:
            return file.fetch()
        except (FileNotFoundError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "checksum mismatch"
            raise ValueError(f"E503: {file}: {reason}") from None

    def _complete(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        known = {*rows.schema.names}
        columns = [
            rows.column(field.name).cast(field.type)
            if field.name in known
            else pa.nulls(len(rows), field.type)
            for field in self.schema
        ]
        return pa.record_batch(columns, names=self.schema.names)


def size_and_rows(path: StorePath) -> tuple[int, int]:
    """The size of a file and the number of its rows, from its footer."""
    if isinstance(path, ObjectPath):
        with path.open_input() as source:
            return source.size(), pq.read_metadata(source).num_rows
    return path.stat().st_size, pq.read_metadata(path).num_rows


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Concatenate batches into tables of the size of a row group."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not len(batch):
            continue
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _count(group: pa.Table, counts: dict[tuple[str, bool], int]) -> None:
    if not {*_COUNTED} <= {*group.column_names}:
        return
    found = group.group_by(_COUNTED).aggregate([([], "count_all")]).to_pydict()
    for *key, count in zip(*(found[name] for name in [*_COUNTED, "count_all"]), strict=True):
        counts[key[0], key[1]] = counts.get((key[0], key[1]), 0) + count
