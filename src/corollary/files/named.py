"""Read tables whose columns are declared, or named by their first row, and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa

from corollary.core.inputs import suffix_of
from corollary.errors import InvalidInput
from corollary.files import text, typed
from corollary.files.shapes import MalformedRow, MalformedRows, Shape
from corollary.files.tables import Column, Table
from corollary.files.values import Indices, distinct_values, expected, terms_of_values

JSON_LINES = (".jsonl", ".ndjson")
_HEADER_HINT = "if this row names the columns, it must have the declared names"


def read_named(path: Path, shape: Shape, rows: MalformedRows, limit: int | None) -> Table:
    """Read a table by the names and types of its columns."""
    suffix = suffix_of(path)
    if suffix in JSON_LINES:
        return _read_json(path, shape, rows, limit)
    if suffix in typed.SUFFIXES:
        names = typed.names_in(path)
        places = shape.places(names, str(path))
        table = typed.read_all(path, [names[place] for place in places], limit)
        return table_of(table.columns, shape, rows, str(path))
    first = text.read_first_row(path, shape.arity, limit, shape.is_header)
    has_header = shape.header or shape.is_header(first.cells)
    if has_header:
        places = shape.places(first.cells, str(path))
        width = len(first.cells)
    else:
        places, width = list(range(shape.arity)), shape.arity
    columns = text.read_columns(
        path,
        width,
        first.delimiter,
        limit,
        places=places,
        skip=first.blank + 1 if has_header else 0,
    )

    def lines(wanted: Sequence[int]) -> dict[int, int]:
        shifted = text.lines_of(path, first.delimiter, [row + has_header for row in wanted], limit)
        return {row: shifted[row + has_header] for row in wanted}

    hint = None if has_header else _HEADER_HINT
    return table_of(
        columns,
        shape,
        rows,
        str(path),
        places=places,
        lines=lines,
        hint=hint,
        quoted=first.delimiter == "\t",
    )


def table_of(
    columns: Sequence[pa.ChunkedArray | pa.Array],
    shape: Shape,
    rows: MalformedRows,
    file: str,
    **how: object,
) -> Table:
    """Convert columns of Arrow values to a table of terms."""
    values = [distinct_values(column) for column in columns]
    return _table(values, shape, rows, file, **how)  # type: ignore[arg-type]


def _table(
    columns: Sequence[tuple[Sequence[object], Indices]],
    shape: Shape,
    rows: MalformedRows,
    file: str,
    *,
    places: Sequence[int] = (),
    lines: object = None,
    hint: str | None = None,
    quoted: bool = False,
) -> Table:
    found: list[Column] = []
    bad: dict[int, tuple[int, str]] = {}  # the first malformed cell of a row, and the message
    for place, ((values, indices), kind, name) in enumerate(
        zip(columns, shape.types, shape.names, strict=True)
    ):
        terms, numbers = terms_of_values(values, kind, quoted=quoted)
        ids = np.append(numbers, -1)[indices]  # a null has the last place
        found.append(Column(terms, ids))
        for row in np.flatnonzero(ids < 0).tolist():
            value = None if indices[row] < 0 else values[indices[row]]
            bad.setdefault(row, (place, expected(kind, name, value)))
    if bad:
        _report(bad, rows, file, places, lines, hint)
        keep = np.ones(len(found[0].indices), bool)
        keep[list(bad)] = False
        found = [Column(column.terms, column.indices[keep]) for column in found]
    return Table(shape.relation, found)


def _report(
    bad: dict[int, tuple[int, str]],
    rows: MalformedRows,
    file: str,
    places: Sequence[int],
    lines: object,
    hint: str | None,
) -> None:
    """Count malformed rows, or reject the first."""
    shown = sorted(bad)[:100]
    known = lines(shown) if callable(lines) else {row: row + 1 for row in shown}
    for row in sorted(bad):
        place, message = bad[row]
        column = (places[place] if places else place) + 1
        is_first = row == 0
        rows.add(MalformedRow(file, known.get(row), column, message), hint if is_first else None)


# -- JSON lines ------------------------------------------------------------------------------------


def _read_json(path: Path, shape: Shape, rows: MalformedRows, limit: int | None) -> Table:
    names: list[str] | None = None
    numbers: list[dict[tuple[type, object], int]] = []
    columns: list[list[int]] = []
    line_of_row: list[int] = []
    for line, record in _records(path, limit):
        if names is None:
            names = [*record]
            names = [names[place] for place in shape.places(names, str(path))]
            numbers, columns = [{} for _ in names], [[] for _ in names]
        line_of_row.append(line)
        for name, known, column in zip(names, numbers, columns, strict=True):
            value = record.get(name)
            if isinstance(value, dict | list):
                message = f"expected a text, number or boolean in '{name}', found {value!r}"[:200]
                raise InvalidInput("E305", message, file=str(path), line=line)
            column.append(
                -1 if value is None else known.setdefault((type(value), value), len(known))
            )
    if names is None:
        numbers, columns = [{} for _ in shape.types], [[] for _ in shape.types]
    distinct = [
        ([value for _, value in known], np.array(column, np.int64))
        for known, column in zip(numbers, columns, strict=True)
    ]

    def lines(wanted: Sequence[int]) -> dict[int, int]:
        return {row: line_of_row[row] for row in wanted}

    return _table(distinct, shape, rows, str(path), lines=lines)


def columns_in(path: Path, limit: int | None) -> int:
    """The number of members of the first object of a file of JSON lines."""
    return len(next(_records(path, limit), (0, {}))[1])


def _records(path: Path, limit: int | None) -> Iterator[tuple[int, dict[str, object]]]:
    with text.lines(path, limit) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, parse_float=_number, parse_constant=_constant)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else "invalid JSON"
                column = error.colno if isinstance(error, json.JSONDecodeError) else None
                raise InvalidInput(
                    "E305", f"expected JSON: {reason}", file=str(path), line=number, column=column
                ) from None
            if not isinstance(record, dict):
                raise InvalidInput(
                    "E305", "expected an object in each line", file=str(path), line=number
                )
            yield number, record


def _number(written: str) -> Decimal | float:
    return float(written) if "e" in written.lower() else Decimal(written)


def _constant(written: str) -> object:
    raise ValueError(written)
