"""Read the rows of text files: tab- or comma-separated, compressed or not."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv as arrow_csv

from corollary.core.inputs import (
    COMPRESSIONS,
    MAX_ITEM_BYTES,
    InputMeter,
    is_compressed,
    suffix_of,
    too_long,
    unreadable,
)
from corollary.errors import InvalidInput

DELIMITERS = {".facts": "\t", ".tsv": "\t", ".csv": ","}
_HEADER_LINES = 50  # lines over which the names of a header may extend
_MAX_EMPTY = 1 << 20  # empty lines before the first row
_BLOCK = 1 << 20  # bytes that Arrow reads at once; the longest row of the first attempt


class FirstRow(NamedTuple):
    """The cells of the first row, and the delimiter of the file."""

    cells: list[str]
    delimiter: str
    blank: int  # empty lines before it


def read_first_row(
    path: Path, columns: int, limit: int | None, is_header: Callable[[Sequence[str]], bool]
) -> FirstRow:
    """Read the first row; the delimiter is the other one than usual if only that one fits."""
    usual = DELIMITERS[suffix_of(path)]
    with lines(path, limit) as texts:
        blank = 0
        first: list[str] = []
        for line in islice(texts, _MAX_EMPTY):
            if line.strip("\r\n"):
                first = [line, *islice(texts, _HEADER_LINES)]
                break
            blank += 1
    for delimiter in (usual, "," if usual == "\t" else "\t"):
        cells = next(_rows(first, delimiter), [])
        if is_header(cells):
            return FirstRow(cells, delimiter, blank)
    delimiter = _delimiter(path, columns, limit)
    return FirstRow(next(_rows(first, delimiter), []), delimiter, blank)


def columns_in(path: Path, limit: int | None) -> int:
    """The number of cells in the first row of a file."""
    first = _first_line(path, limit)
    usual = DELIMITERS[suffix_of(path)]
    return max(len(next(_rows([first], delimiter), [])) for delimiter in {usual, "\t"})


def read_positional(path: Path, columns: int, limit: int | None) -> pa.Table:
    """Read a file in which every row has this many cells."""
    return _read(path, columns, _delimiter(path, columns, limit), limit)


def read_columns(
    path: Path,
    width: int,
    delimiter: str,
    limit: int | None,
    *,
    places: Sequence[int],
    skip: int,
) -> list[pa.ChunkedArray]:
    """Read some columns of a file whose rows have `width` cells, without the first rows."""
    table = _read(path, width, delimiter, limit, skip=skip, multiline=delimiter == ",")
    return [table.column(place) for place in places]


def lines_of(path: Path, delimiter: str, rows: Sequence[int], limit: int | None) -> dict[int, int]:
    """The lines on which some rows begin, both counted as in the file; rows from 0."""
    wanted = set(rows)
    found: dict[int, int] = {}
    last = max(wanted, default=-1)
    with lines(path, limit) as texts:
        counted = _Counted(texts)
        row = 0
        before = 0
        for cells in _rows(counted, delimiter):
            start, before = before + 1, counted.number
            if cells in ([], [""]):
                continue
            if row in wanted:
                found[row] = start
            if row == last:
                break
            row += 1
    return found


class _Counted:
    """Counts the lines that a reader has consumed."""

    def __init__(self, texts: Iterator[str]) -> None:
        self.number = 0
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        text = next(self._texts)
        self.number += 1
        return text


def _read(
    path: Path,
    columns: int,
    delimiter: str,
    limit: int | None,
    *,
    skip: int = 0,
    multiline: bool = False,
) -> pa.Table:
    for block in (_BLOCK, MAX_ITEM_BYTES):
        try:
            return _read_rows(path, columns, delimiter, limit, block, skip, multiline)
        except pa.ArrowInvalid as error:
            # A row that is longer than a block may fit into a larger one.
            if "straddling" not in str(error) or block == MAX_ITEM_BYTES:
                raise _malformed(path, columns, delimiter, error, limit) from None
    raise AssertionError("the last attempt returns or raises")


def _read_rows(
    path: Path,
    columns: int,
    delimiter: str,
    limit: int | None,
    block: int,
    skip: int,
    multiline: bool,
) -> pa.Table:
    names = [f"argument {number}" for number in range(1, columns + 1)]
    try:
        with _stream(path, limit) as stream:
            return arrow_csv.read_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    column_names=names, block_size=block, skip_rows_after_names=skip
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter,
                    quote_char='"' if delimiter == "," else False,
                    newlines_in_values=multiline,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            raise
        return pa.table({name: pa.array([], pa.string()) for name in names})


class _Metered(io.RawIOBase):
    """The decompressed bytes of a file, metered."""

    def __init__(self, stream: pa.NativeFile, meter: InputMeter) -> None:
        self._stream = stream
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._stream.readinto(buffer))
        self._meter.add(count)
        return count

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size if size >= 0 else None)
        self._meter.add(len(data))
        return data


@contextmanager
def _stream(path: Path, limit: int | None) -> Iterator[Any]:
    """The decompressed bytes of a file."""
    try:
        compression = COMPRESSIONS.get(path.suffix.lower())
        with pa.input_stream(str(path), compression=compression) as stream:
            size = path.stat().st_size
            if is_compressed(path):
                if not size:  # Arrow reads it as a stream without bytes
                    raise OSError
                yield _Metered(stream, InputMeter(str(path), size, limit))
            else:
                InputMeter(str(path), limit=limit).add(size)
                yield stream
    except OSError as error:
        raise unreadable(path, error) from None


@contextmanager
def lines(path: Path, limit: int | None) -> Iterator[Iterator[str]]:
    """The lines of a file; invalid UTF-8 becomes replacement characters."""
    with (
        _stream(path, limit) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as texts,
    ):
        yield _bounded(texts, path)


def _bounded(texts: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := texts.readline(MAX_ITEM_BYTES + 1):
        number += 1
        if len(line) > MAX_ITEM_BYTES:
            raise too_long("a row", str(path), number)
        yield line


def _first_line(path: Path, limit: int | None) -> str:
    """The first line that is not empty, if it is near the start of the file."""
    with lines(path, limit) as texts:
        for line in islice(texts, _MAX_EMPTY):
            if text := line.strip("\r\n"):
                return text
    return ""


def _delimiter(path: Path, columns: int, limit: int | None) -> str:
    usual = DELIMITERS[suffix_of(path)]
    other = "," if usual == "\t" else "\t"
    first = _first_line(path, limit)
    fits = [len(next(_rows([first], d), [])) == columns for d in (usual, other)]
    return other if columns > 1 and fits == [False, True] else usual


def _rows(texts: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    if delimiter == "\t":
        return (line.rstrip("\r\n").split("\t") for line in texts)
    return _csv_rows(texts)


def _csv_rows(texts: Iterable[str]) -> Iterator[list[str]]:
    """Comma-separated rows, up to one with a cell that is too long for Python's reader."""
    rows = csv.reader(texts)
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            return
        if row is None:
            return
        yield row


def _malformed(
    path: Path, columns: int, delimiter: str, error: Exception, limit: int | None
) -> InvalidInput:
    """The error for the first row that Arrow refused, found by reading the file again."""
    with lines(path, limit) as texts:
        for number, row in enumerate(_rows(texts, delimiter), 1):
            if len(row) != columns and row not in ([], [""]):
                return row_error(
                    path,
                    number,
                    min(len(row), columns) + (len(row) > columns),
                    f"expected {columns} {'column' if columns == 1 else 'columns'}"
                    f" separated by {'tabs' if delimiter == chr(9) else 'commas'},"
                    f" found {len(row)}",
                )
            for place, cell in enumerate(row, 1):
                if "\ufffd" in cell:
                    return row_error(path, number, place, "expected UTF-8 text")
    if "straddling" in str(error):
        return too_long("a row", str(path))
    return InvalidInput("E305", f"cannot read {path}: {error}", file=str(path))


def row_error(path: Path, line: int, column: int, expected: str) -> InvalidInput:
    """The error for a malformed row."""
    return InvalidInput("E305", expected, file=str(path), line=line, column=column)
