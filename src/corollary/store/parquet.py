"""Parquet files of a store: written under unique names, verified when they are read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corollary.core.checksum import has_its_content, name_by_content
from corollary.core.object_store import ObjectPath, StorePath
from corollary.store import steps
from corollary.store.delta import Table, damage, sync, translate_read_errors, translate_write_errors
from corollary.store.manifest import KEYS, DataFile

ROW_GROUP = 1 << 20  # rows
# Columns with few distinct values.
_DICTIONARY = ["relation", "arg1", "change", "commit", "program"]
_MAX_TEXT = 64  # characters of a minimum or maximum in the statistics


def write(table: Table, batches: pa.Table | Iterable[pa.Table], schema: pa.Schema) -> DataFile:
    """Write rows as one file of a table; no version includes it until it is committed."""
    path = _scratch(table.folder) / f"{uuid.uuid4().hex}.parquet"
    parts = [batches] if isinstance(batches, pa.Table) else batches
    try:
        with (
            translate_write_errors(path),
            pa.OSFile(str(path), "wb") as sink,  # a file object, as the name may look like a URI
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
        with translate_write_errors(path):
            path = name_by_content(path)
        if isinstance(table.folder, ObjectPath):
            (table.folder / path.name).upload(path)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    sync(table.folder)
    steps.passed(f"{table.name}: file on disk")
    return describe(table, path.name)


def _scratch(folder: StorePath) -> Path:
    """Where the files of a table are written: for a remote table, among its local copies."""
    if isinstance(folder, Path):
        return folder
    folder.copy.mkdir(parents=True, exist_ok=True)
    return folder.copy


def _groups(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Concatenate small tables, of which there may be thousands, into full row groups."""
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


def describe(table: Table, name: str) -> DataFile:
    """Describe a file in the folder of a table from its footer."""
    path = table.folder / name
    with translate_read_errors(path), opened(path) as source:
        metadata = source.metadata
    stats = _statistics(metadata)
    key = KEYS.get(table.name, "")
    return DataFile(
        PurePosixPath(name).as_posix(),
        path.stat().st_size,
        metadata.num_rows,
        json.dumps(stats, ensure_ascii=False),
        stats["minValues"].get(key),
        stats["maxValues"].get(key),
    )


@contextmanager
def opened(path: StorePath, read_dictionary: list[str] | None = None) -> Iterator[pq.ParquetFile]:
    """Open a file for reading; not by its name, which may look like a URI.

    Of an object without a local copy, only the parts are transferred that the reader asks for.
    """
    if isinstance(path, ObjectPath):
        opening = pa.OSFile(str(path.copy)) if path.copy.is_file() else path.open_input()
    else:
        opening = pa.OSFile(str(path))
    with opening as source:
        yield pq.ParquetFile(
            source, page_checksum_verification=True, read_dictionary=read_dictionary
        )


def check(path: StorePath, file: DataFile) -> None:
    """Fail unless a file has the committed size and checksum; a remote one is copied for that."""
    if isinstance(path, ObjectPath):
        with translate_read_errors(path):
            path = path.fetch(file.size)
    if not path.is_file():
        raise damage(path, "the file is missing")
    with translate_read_errors(path):
        size = path.stat().st_size
        if size != file.size:
            raise damage(path, f"it has {size:,} bytes instead of {file.size:,}")
        if not has_its_content(path):
            raise damage(path, "checksum mismatch")


def read(
    table: Table, files: Sequence[DataFile], schema: pa.Schema, columns: list[str] | None = None
) -> pa.Table:
    """Read the rows of files; columns missing from older files are null."""
    names = columns if columns is not None else schema.names
    wanted = pa.schema([schema.field(name) for name in names])
    parts = [part for file in files for part in _read(table.folder / file.path, file, wanted)]
    return pa.concat_tables(parts) if parts else wanted.empty_table()


def _read(path: StorePath, file: DataFile, wanted: pa.Schema) -> Iterator[pa.Table]:
    check(path, file)
    with translate_read_errors(path), opened(path) as source:
        names = [name for name in wanted.names if name in source.schema_arrow.names]
        part = source.read(columns=names)
    if part.num_rows != file.rows:
        raise damage(path, f"it has {part.num_rows:,} rows instead of {file.rows:,}")
    with translate_read_errors(path):
        yield conform(part, wanted)


def conform(
    rows: pa.Table, wanted: pa.Schema, defaults: Mapping[str, pa.Array] | None = None
) -> pa.Table:
    """Cast rows to a schema; missing columns have a default, or are null."""
    known, defaults = {*rows.column_names}, defaults or {}
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in known
        else defaults.get(field.name, pa.nulls(rows.num_rows, field.type))
        for field in wanted
    ]
    return pa.table(columns, schema=wanted)


def _statistics(metadata: pq.FileMetaData) -> dict[str, Any]:
    """Minimum, maximum and null count of each column, in Delta's format."""
    low: dict[str, object] = {}
    high: dict[str, object] = {}
    nulls: dict[str, int] = {}
    unknown: set[str] = set()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            name, stats = column.path_in_schema, column.statistics
            if stats is None or not stats.has_null_count:
                unknown.add(name)
                continue
            nulls[name] = nulls.get(name, 0) + stats.null_count
            if not stats.has_min_max:
                if stats.null_count < column.num_values:
                    unknown.add(name)
                continue
            smallest, largest = stats.min, stats.max
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
    """Whether Delta records these bounds: no booleans, and no texts that would bloat the log."""
    return not any(
        isinstance(v, bool) or (isinstance(v, str) and len(v) > _MAX_TEXT) for v in values
    )
