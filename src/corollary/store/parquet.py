"""The Parquet files of a store: each written under a new name, read with its mistakes named."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corollary.core.checksum import has_its_content, name_by_content
from corollary.store import steps
from corollary.store.delta import Table, damage, damaged, sync, unwritable
from corollary.store.manifest import KEYS, DataFile

ROW_GROUP = 1 << 20  # rows
_DICTIONARY = ["relation", "arg1", "change", "commit", "program"]  # few different values
_LONG = 64  # characters of a text that statistics keep


def write(table: Table, batches: pa.Table | Iterable[pa.Table], schema: pa.Schema) -> DataFile:
    """Write rows as one file of a table; it belongs to no version until it is committed."""
    path = table.folder / f"{uuid.uuid4().hex}.parquet"
    parts = [batches] if isinstance(batches, pa.Table) else batches
    try:
        with (
            unwritable(path),
            pa.OSFile(str(path), "wb") as sink,  # not by its name, which may look like an address
            pq.ParquetWriter(
                sink,
                schema,
                compression="zstd",
                use_dictionary=_DICTIONARY,
                write_page_checksum=True,
            ) as writer,
        ):
            for part in _groups(parts, schema):
                writer.write_table(part, row_group_size=ROW_GROUP)
        steps.passed(f"{table.name}: file written")
        sync(path)
        with unwritable(path):
            path = name_by_content(path)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    sync(table.folder)
    steps.passed(f"{table.name}: file on disk")
    return described(table, path.name)


def _groups(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Tables joined to some that fill a row group: there may be thousands of small ones."""
    waiting: list[pa.Table] = []
    rows = 0
    for part in parts:
        waiting.append(part.cast(schema))
        rows += part.num_rows
        if rows >= ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def described(table: Table, name: str) -> DataFile:
    """A file that is in the folder of a table, with what its footer says."""
    path = table.folder / name
    with damaged(path), opened(path) as found:
        metadata = found.metadata
    stats = _statistics(metadata)
    key = KEYS.get(table.name, "")
    return DataFile(
        Path(name).as_posix(),
        os.path.getsize(path),
        metadata.num_rows,
        json.dumps(stats, ensure_ascii=False),
        stats["minValues"].get(key),
        stats["maxValues"].get(key),
    )


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """A file to be read; it is not opened by its name, which may look like an address."""
    with pa.OSFile(str(path)) as source:
        yield pq.ParquetFile(source, page_checksum_verification=True, **options)


def check(path: Path, file: DataFile) -> None:
    """Fail unless a file is byte by byte what was committed."""
    if not path.is_file():
        raise damage(path, "the file is missing")
    with damaged(path):
        size = path.stat().st_size
        if size != file.size:
            raise damage(path, f"it has {size:,} bytes instead of {file.size:,}")
        if not has_its_content(path):
            raise damage(path, "it has another checksum")


def read(
    table: Table, files: Sequence[DataFile], schema: pa.Schema, columns: list[str] | None = None
) -> pa.Table:
    """The rows of files; columns that an old file does not have are null."""
    names = columns if columns is not None else schema.names
    wanted = pa.schema([schema.field(name) for name in names])
    parts = [part for file in files for part in _read(table.folder / file.path, file, wanted)]
    return pa.concat_tables(parts) if parts else wanted.empty_table()


def _read(path: Path, file: DataFile, wanted: pa.Schema) -> Iterator[pa.Table]:
    check(path, file)
    with damaged(path), opened(path) as found:
        names = [name for name in wanted.names if name in found.schema_arrow.names]
        part = found.read(columns=names)
    if part.num_rows != file.rows:
        raise damage(path, f"it has {part.num_rows:,} rows instead of {file.rows:,}")
    with damaged(path):
        yield alike(part, wanted)


def alike(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Rows with the columns of a schema; those that are missing are null."""
    return pa.table(
        [
            rows.column(field.name).cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in wanted
        ],
        schema=wanted,
    )


def _statistics(metadata: pq.FileMetaData) -> dict[str, Any]:
    """The smallest and largest values and the nulls of each column, as Delta wants them."""
    low: dict[str, object] = {}
    high: dict[str, object] = {}
    nulls: dict[str, int] = {}
    unknown: set[str] = set()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            name, found = column.path_in_schema, column.statistics
            if found is None or not found.has_null_count:
                unknown.add(name)
                continue
            nulls[name] = nulls.get(name, 0) + found.null_count
            if not found.has_min_max:
                if found.null_count < column.num_values:
                    unknown.add(name)
                continue
            smallest, largest = found.min, found.max
            low[name] = min(low.get(name, smallest), smallest)
            high[name] = max(high.get(name, largest), largest)
    for name in [*unknown, *(n for n, v in high.items() if not _short(v, low[n]))]:
        low.pop(name, None)
        high.pop(name, None)
    return {
        "numRecords": metadata.num_rows,
        "minValues": low,
        "maxValues": high,
        "nullCount": {name: count for name, count in nulls.items() if name not in unknown},
    }


def _short(*values: object) -> bool:
    """Delta keeps no smallest and largest booleans; long texts would make the log large."""
    return not any(isinstance(v, bool) or (isinstance(v, str) and len(v) > _LONG) for v in values)
