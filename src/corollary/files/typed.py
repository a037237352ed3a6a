"""Read and write facts as Parquet and Arrow files.

Numbers, booleans, dates and times become literals of their types; texts are cells (`cells`).
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

_BATCH = 1 << 16  # rows of a Parquet file decoded at once
SUFFIXES = (".parquet", ".arrow", ".feather")


def read_columns(path: Path, columns: int, limit: int | None = None) -> pa.Table:
    """Read a file, which must have this many columns of readable types.

    `limit` bounds the bytes of its values.
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


def names_in(path: Path) -> list[str]:
    """The names of the columns of a file."""
    return list(_schema(path).names)


def read_all(path: Path, names: Sequence[str], limit: int | None = None) -> pa.Table:
    """Read some columns of a file, which must have readable types and may have nulls."""
    schema = _schema(path)
    for name in names:
        kind = schema.field(name).type
        if not readable(kind):
            number = schema.get_field_index(name) + 1
            expected = "expected texts, numbers, booleans, dates or times"
            raise _malformed(path, number, f"{expected} in '{name}', found {kind}")
    return _read(path, limit).select(list(names))


def columns_in(path: Path) -> int:
    """The number of columns of a file."""
    return len(_schema(path))


def _schema(path: Path) -> pa.Schema:
    with _reported(path), pa.OSFile(str(path)) as source:  # not by its name, which may be a URI
        if path.suffix.lower() == ".parquet":
            return parquet.ParquetFile(source).schema_arrow
        return pa.ipc.open_file(source).schema


def _read(path: Path, limit: int | None) -> pa.Table:
    parts: list[pa.RecordBatch] = []
    with _reported(path), pa.OSFile(str(path)) as source:
        meter = InputMeter(str(path), source.size(), limit)
        if path.suffix.lower() == ".parquet":
            file = parquet.ParquetFile(source)
            schema, batches = file.schema_arrow, file.iter_batches(batch_size=_BATCH)
            # A run of equal values takes a few bytes, whatever its length.
            meter.add(file.metadata.num_rows * len(schema))
        else:
            reader = pa.ipc.open_file(source)
            schema = reader.schema
            batches = map(reader.get_batch, range(reader.num_record_batches))
        for batch in batches:
            batch.validate(full=True)  # offsets and texts of a damaged file may be invalid
            meter.add(batch.nbytes)
            parts.append(batch)
        return pa.Table.from_batches(parts, schema)


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
    if pa.types.is_temporal(kind):
        return _read_times(values)
    if pa.types.is_decimal(kind):
        return [Literal(format(value, "f"), XSD + "decimal") for value in values.to_pylist()]
    return [literal_of(value) for value in values.to_pylist()]


def _read_times(values: pa.Array) -> list[Constant]:
    """Dates, and times in UTC if they have a time zone."""
    if pa.types.is_date(values.type):
        texts = values.cast(pa.date32()).cast(pa.string()).to_pylist()
        return [Literal(text, XSD + "date") for text in texts]
    zone = "" if values.type.tz is None else "Z"
    local = values.cast(pa.timestamp(values.type.unit)) if zone else values
    found: list[Constant] = []
    for text in local.cast(pa.string()).to_pylist():
        day, _, time = text.partition(" ")
        whole, dot, fraction = time.partition(".")
        fraction = fraction.rstrip("0")
        exact = f"{day}T{whole}{dot if fraction else ''}{fraction}{zone}"
        found.append(Literal(exact, XSD + "dateTime"))
    return found


def write_columns(columns: Sequence[pa.Array], names: Sequence[str], path: Path) -> None:
    """Write columns to a file."""
    table = pa.table(list(columns), names=list(names))
    with pa.OSFile(str(path), "wb") as sink:  # as in `_schema`
        if path.suffix.lower() == ".parquet":
            parquet.write_table(table, sink)
        else:
            feather.write_feather(table, sink)


def readable(kind: pa.DataType) -> bool:
    """Whether values of a type can be read as terms."""
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_boolean,
            pa.types.is_decimal,
            pa.types.is_date,
            pa.types.is_timestamp,
        )
    )


def _malformed(path: Path, column: int, message: str) -> InvalidInput:
    return InvalidInput("E305", message, file=str(path), column=column)
