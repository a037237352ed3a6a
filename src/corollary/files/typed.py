"""Parquet and Arrow files as facts, in and out.

Numbers and booleans are terms of their types; texts are cells, as in `cells`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import feather, parquet

from corollary.errors import InvalidInput
from corollary.files.cells import read_cell
from corollary.lang.syntax import XSD, Constant, Literal
from corollary.lang.values import literal_of

SUFFIXES = (".parquet", ".arrow", ".feather")


def read_columns(path: Path, columns: int) -> pa.Table:
    """The table of a file, which must have this many columns of readable types."""
    table = _read(path)
    if table.num_columns != columns:
        found = table.num_columns
        raise _malformed(
            path, min(found, columns) + 1, f"expected {columns} columns, found {found}"
        )
    for number, field in enumerate(table.schema, 1):
        if not readable(field.type):
            expected = "expected texts, numbers or booleans"
            raise _malformed(path, number, f"{expected} in '{field.name}', found {field.type}")
        if table.column(number - 1).null_count:
            raise _malformed(path, number, f"expected a value in every row of '{field.name}'")
    return table


def columns_in(path: Path) -> int:
    """The number of columns of a file."""
    columns: int = _read(path).num_columns
    return columns


def _read(path: Path) -> pa.Table:
    try:
        read = parquet.read_table if path.suffix == ".parquet" else feather.read_table
        return read(str(path))
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput("E301", f"cannot read {path}: {reason}", file=str(path)) from None


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
    if path.suffix == ".parquet":
        parquet.write_table(table, str(path))
    else:
        feather.write_feather(table, str(path))


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
