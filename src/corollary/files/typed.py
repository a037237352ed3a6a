"""Parquet and Arrow files as facts, in and out.

Numbers and booleans are terms of their types; texts are cells, as in `cells`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import feather, parquet

from corollary.core.inputs import InputMeter
from corollary.errors import UNREADABLE, InvalidInput
from corollary.files.cells import read_cell
from corollary.lang.syntax import XSD, Constant, Literal
from corollary.lang.values import literal_of

_BATCH = 1 << 16  # rows of a Parquet file that are decoded at once
SUFFIXES = (".parquet", ".arrow", ".feather")


def read_columns(path: Path, columns: int, limit: int | None = None) -> pa.Table:
    """The table of a file, which must have this many columns of readable types.

    `limit` bounds the bytes that its values take.
    """
    schema = _schema(path)
    if len(schema) != columns:
        found = len(schema)
        raise _malformed(
            path, min(found, columns) + 1, f"expected {columns} columns, found {found}"
        )
    for number, field in enumerate(schema, 1):
        if not readable(field.type):
            expected = "expected texts, numbers or booleans"
            raise _malformed(path, number, f"{expected} in '{field.name}', found {field.type}")
    table = _read(path, limit)
    for number, field in enumerate(table.schema, 1):
        if table.column(number - 1).null_count:
            raise _malformed(path, number, f"expected a value in every row of '{field.name}'")
    return table


def columns_in(path: Path) -> int:
    """The number of columns of a file."""
    return len(_schema(path))


def _schema(path: Path) -> pa.Schema:
    with _reported(path):
        if path.suffix == ".parquet":
            with _opened(path) as file:
                return file.schema_arrow
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).schema


def _read(path: Path, limit: int | None) -> pa.Table:
    with _reported(path):
        if path.suffix == ".parquet":
            with _opened(path) as file:
                # A run of the same value takes a few bytes, however long it is.
                meter = InputMeter(str(path), path.stat().st_size, limit)
                meter.add(file.metadata.num_rows * len(file.schema_arrow))
                batches = []
                for batch in file.iter_batches(batch_size=_BATCH):
                    batch.validate(full=True)  # texts of a damaged file may be no UTF-8
                    meter.add(batch.nbytes)
                    batches.append(batch)
                return pa.Table.from_batches(batches, file.schema_arrow)
        meter = InputMeter(str(path), path.stat().st_size, limit)
        with pa.OSFile(str(path)) as source:
            reader = pa.ipc.open_file(source)
            batches = []
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                batch.validate(full=True)  # offsets of a damaged file may point anywhere
                meter.add(batch.nbytes)
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)


@contextmanager
def _opened(path: Path) -> Iterator[parquet.ParquetFile]:
    """A Parquet file; it is not opened by its name, which Arrow may take for an address."""
    with pa.OSFile(str(path)) as source:
        yield parquet.ParquetFile(source)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInput(
            "E301", f"cannot read {path}: {reason}", UNREADABLE, file=str(path)
        ) from None


def read_terms(values: pa.Array) -> list[Constant]:
    """The terms of distinct values."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [read_cell(text) for text in values.to_pylist()]
    if pa.types.is_decimal(kind):
        return [Literal(format(value, "f"), XSD + "decimal") for value in values.to_pylist()]
    return [literal_of(value) for value in values.to_pylist()]


def write_columns(cells: Sequence[pa.Array], path: Path) -> None:
    """Write columns of cells to a file."""
    table = pa.table({f"argument {n}": column for n, column in enumerate(cells, 1)})
    with pa.OSFile(str(path), "wb") as sink:  # not by its name, as in `_opened`
        if path.suffix == ".parquet":
            parquet.write_table(table, sink)
        else:
            feather.write_feather(table, sink)


def readable(kind: pa.DataType) -> bool:
    """Whether values of the type are terms."""
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_boolean,
            pa.types.is_decimal,
        )
    )


def _malformed(path: Path, column: int, message: str) -> InvalidInput:
    return InvalidInput("E305", message, file=str(path), column=column)
