"""Folders of facts: a table per relation, `<relation>.facts` or `.csv`, and files of triples.

Arrow reads the columns of a table, and each distinct text of a column is converted to a term once.
`.facts` files are tab-separated and `.csv` files comma-separated, unless the first row fits only
with the other delimiter. Tables may be compressed (`.gz`, `.zst`); `.parquet` and `.arrow` files
keep their types.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from corollary.core.files import replace_file
from corollary.core.inputs import (
    COMPRESSIONS,
    MAX_ITEM_BYTES,
    InputMeter,
    is_compressed,
    suffix_of,
    too_long,
    unreadable,
)
from corollary.core.notices import note
from corollary.errors import InvalidInput, nearest
from corollary.files import typed
from corollary.files.cells import write_cell
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Constant, Literal, is_auxiliary

MAX_COLUMNS = 10_000  # of a table: Arrow allocates 8 KB for each before it reads a row
_DELIMITERS = {".facts": "\t", ".tsv": "\t", ".csv": ","}
_TRIPLES = ".nt"
_NAME = re.compile(r"[^\W\d][\w .\-]{1,60}")
_USUAL = frozenset(
    {"id", "name", "label", "title", "type", "kind", "class", "value", "weight", "count", "from",
     "to", "source", "target", "src", "dst", "start", "end", "subject", "predicate", "object",
     "parent", "child", "node", "node1", "node2", "key", "date", "year", "iri", "uri"}
)  # fmt: skip
_BATCH = 1 << 20  # lines per write
_MAX_EMPTY = 1 << 20  # empty lines before the first row
_BLOCK = 1 << 20  # bytes that Arrow reads at once; the longest row of the first attempt
FORMATS = ("facts", "csv", "parquet", "arrow")


@dataclass(frozen=True)
class Column:
    """A dictionary-encoded column of terms."""

    terms: Sequence[Constant]
    indices: npt.NDArray[np.int64]

    def __iter__(self) -> Iterator[Constant]:
        return (self.terms[index] for index in self.indices)


@dataclass(frozen=True)
class Table:
    """Facts of one relation; a relation without arguments has one column of ()."""

    relation: str
    columns: Sequence[Column]

    @classmethod
    def of(cls, relation: str, facts: Iterable[Atom]) -> Table:
        """A table of facts that have the same relation."""
        rows = [tuple(fact.constants()) or (_UNIT,) for fact in facts]
        return cls(relation, [_numbered(column) for column in zip(*rows, strict=True)])

    def atoms(self) -> Iterator[Atom]:
        """Iterate over the facts."""
        for terms in zip(*self.columns, strict=True):
            yield Atom(self.relation, () if terms == (_UNIT,) else terms)


_UNIT = Literal("()")  # stands for no arguments


def read_facts(
    folder: str | Path, program: Program, *, limit_input_bytes: int | None = None
) -> list[Table]:
    """Read the facts in a folder for the relations of a program.

    Every relation that is neither derived nor stated in the program must have a file; others may.
    """
    files = _files(Path(folder))
    stated = {fact.relation for fact in program.facts}
    tables: list[Table] = []
    for relation, arity in sorted(program.arities.items()):
        paths = [path for path in files.get(relation, []) if _suffix(path) != _TRIPLES]
        if not paths and relation not in program.derived and relation not in stated:
            raise _missing(relation, Path(folder), files)
        tables += [
            read_table(path, relation, arity, limit_input_bytes=limit_input_bytes) for path in paths
        ]
    return tables


def triple_files(folder: str | Path) -> list[Path]:
    """The N-Triples files in a folder."""
    files = _files(Path(folder))
    return [path for paths in files.values() for path in paths if _suffix(path) == _TRIPLES]


def read_table(
    path: Path, relation: str, arity: int, *, limit_input_bytes: int | None = None
) -> Table:
    """Read a table of a relation with `arity` arguments.

    `limit_input_bytes` bounds the bytes of the file after decompression.
    """
    if arity > MAX_COLUMNS:
        raise InvalidInput(
            "E327",
            f"{path} has {arity:,} columns; at most {MAX_COLUMNS:,} can be read",
            "check the delimiter and the line breaks of the file",
            file=str(path),
        )
    names = [f"argument {number}" for number in range(1, max(1, arity) + 1)]
    if _suffix(path) in typed.SUFFIXES:
        table = typed.read_columns(path, len(names), limit_input_bytes)
    else:
        table = _read_text(path, names, limit_input_bytes)
    columns = [term_column(column) for column in table.columns]
    if arity == 0 and any(term != _UNIT for term in columns[0].terms):
        row = next(row for row, term in enumerate(columns[0], 1) if term != _UNIT)
        raise _row_error(path, row, 1, "expected (), the only fact of a relation without arguments")
    if _suffix(path) not in typed.SUFFIXES and _is_header(columns):
        cells = ", ".join(write_cell(column.terms[column.indices[0]]) for column in columns)
        note("W105", 1, file=str(path), detail=cells[:100])
    return Table(relation, columns)


def _is_header(columns: Sequence[Column]) -> bool:
    """Whether the first row looks like a header.

    A header consists of names that occur nowhere else in their columns. Either a column has values
    of another type, or all are common names of columns.
    """
    differs, usual = False, len(columns) > 1
    for column in columns:
        if len(column.indices) < 3:
            return False
        first = column.terms[column.indices[0]]
        if not isinstance(first, Literal) or first != Literal(first.lexical):
            return False
        if not _NAME.fullmatch(first.lexical) or column.indices[0] in column.indices[1:]:
            return False
        usual = usual and first.lexical.lower() in _USUAL
        # In most columns, the second value is a text too, which ends the search.
        differs = differs or not any(
            isinstance(term, Literal) and term.datatype == first.datatype and not term.language
            for term in column.terms
            if term is not first
        )
    return differs or usual


def is_table(path: Path) -> bool:
    """Whether the name of a file is that of a table of facts."""
    return _suffix(path) in (*_DELIMITERS, *typed.SUFFIXES)


def relation_of(path: Path) -> str:
    """The relation that a file is named after."""
    return path.name.split(".")[0]


def columns_in(path: Path, *, limit_input_bytes: int | None = None) -> int:
    """The number of columns in the first row of a table."""
    if _suffix(path) in typed.SUFFIXES:
        return typed.columns_in(path)
    first = _first_line(path, limit_input_bytes)
    usual = _DELIMITERS[_suffix(path)]
    return max(len(next(_rows([first], delimiter), [])) for delimiter in {usual, "\t"})


def _read_text(path: Path, names: list[str], limit: int | None) -> pa.Table:
    delimiter = _delimiter(path, len(names), limit)
    try:
        return _read_rows(path, names, delimiter, limit, _BLOCK)
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error):  # a row that is longer than a block
            raise _malformed(path, len(names), delimiter, error, limit) from None
    try:
        return _read_rows(path, names, delimiter, limit, MAX_ITEM_BYTES)
    except pa.ArrowInvalid as error:
        raise _malformed(path, len(names), delimiter, error, limit) from None


def _read_rows(
    path: Path, names: list[str], delimiter: str, limit: int | None, block: int
) -> pa.Table:
    try:
        with _stream(path, limit) as stream:
            return arrow_csv.read_csv(
                stream,
                read_options=arrow_csv.ReadOptions(column_names=names, block_size=block),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, quote_char='"' if delimiter == "," else False
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            raise
        return pa.table({name: pa.array([], pa.string()) for name in names})


def write_facts(
    folder: str | Path, program: Program, tables: Iterable[Table], *, format_: str = "facts"
) -> None:
    """Write a file per relation, atomically, with rows sorted by their text."""
    by_relation: dict[str, list[Table]] = {r: [] for r in program.arities if not is_auxiliary(r)}
    for table in tables:
        by_relation.setdefault(table.relation, []).append(table)
    for relation, group in sorted(by_relation.items()):
        if format_ in ("facts", "csv"):
            write, delimiter = (write_cell, "\t") if format_ == "facts" else (_csv_cell, ",")
            save = partial(_write_lines, [_lines_of(table, write, delimiter) for table in group])
        else:
            width = max(1, program.arities.get(relation, 1))
            empty = pa.array([], pa.string())
            columns = ([_cells(t.columns[n], write_cell) for t in group] for n in range(width))
            save = partial(typed.write_columns, [pa.concat_arrays([empty, *c]) for c in columns])
        replace_file(Path(folder) / f"{relation}.{format_}", save)


def _cells(column: Column, write: Callable[[Constant], str]) -> pa.Array:
    texts = pa.array([write(term) for term in column.terms], pa.string())
    return texts.take(pa.array(column.indices))


def _lines_of(table: Table, write: Callable[[Constant], str], delimiter: str) -> pa.Array:
    cells = [_cells(column, write) for column in table.columns]
    return compute.binary_join_element_wise(*cells, delimiter)


def _write_lines(parts: list[pa.Array], path: Path) -> None:
    lines = pa.chunked_array([*parts, pa.array([], pa.string())])
    lines = lines.take(compute.sort_indices(lines))
    with path.open("wb") as file:
        for start in range(0, len(lines), _BATCH):
            batch = lines.slice(start, _BATCH).to_pylist()
            file.write("".join(f"{line}\n" for line in batch).encode())


def _csv_cell(term: Constant) -> str:
    cell = write_cell(term)
    if any(character in cell for character in ',"\r\n'):
        doubled = cell.replace('"', '""')
        return f'"{doubled}"'
    return cell


def _files(folder: Path) -> dict[str, list[Path]]:
    """The facts files of a folder by relation."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidInput(
            "E301", f"cannot read the folder {folder}: {error.strerror}", file=str(folder)
        ) from None
    files: dict[str, list[Path]] = {}
    for path in paths:
        known = (*_DELIMITERS, *typed.SUFFIXES, _TRIPLES)
        if _suffix(path) in known and not path.name.startswith("."):
            files.setdefault(relation_of(path), []).append(path)
    return files


def _missing(relation: str, folder: Path, files: dict[str, list[Path]]) -> InvalidInput:
    close = nearest(relation, files)
    hint = f"did you mean {close}? There is {files[close][0].name}. " if close else ""
    return InvalidInput(
        "E304",
        f"no facts file for {relation} in {folder}: expected {relation}.facts or {relation}.csv",
        hint + "An empty file stands for a relation without facts",
        file=str(folder),
    )


def _suffix(path: Path) -> str:
    """The suffix of the format: `.csv` of `edge.csv.gz`; empty if this format has no such files."""
    suffix = suffix_of(path)
    return "" if is_compressed(path) and suffix in typed.SUFFIXES else suffix


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
def _lines(path: Path, limit: int | None) -> Iterator[Iterator[str]]:
    """The lines of a file; invalid UTF-8 becomes replacement characters."""
    with (
        _stream(path, limit) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as lines,
    ):
        yield _bounded(lines, path)


def _bounded(lines: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := lines.readline(MAX_ITEM_BYTES + 1):
        number += 1
        if len(line) > MAX_ITEM_BYTES:
            raise too_long("a row", str(path), number)
        yield line


def _first_line(path: Path, limit: int | None) -> str:
    """The first line that is not empty, if it is near the start of the file."""
    with _lines(path, limit) as lines:
        for line in islice(lines, _MAX_EMPTY):
            if text := line.strip("\r\n"):
                return text
    return ""


def _delimiter(path: Path, columns: int, limit: int | None) -> str:
    usual = _DELIMITERS[_suffix(path)]
    other = "," if usual == "\t" else "\t"
    first = _first_line(path, limit)
    fits = [len(next(_rows([first], d), [])) == columns for d in (usual, other)]
    return other if columns > 1 and fits == [False, True] else usual


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    if delimiter == "\t":
        return (line.rstrip("\r\n").split("\t") for line in lines)
    return _csv_rows(lines)


def _csv_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Comma-separated rows, up to one with a cell that is too long for Python's reader."""
    rows = csv.reader(lines)
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            return
        if row is None:
            return
        yield row


def term_column(column: pa.ChunkedArray) -> Column:
    """A column of Arrow values as terms."""
    encoded = column.combine_chunks().dictionary_encode()
    terms = typed.read_terms(encoded.dictionary)
    return Column(terms, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _numbered(terms: Iterable[Constant]) -> Column:
    numbers: dict[Constant, int] = {}
    indices = [numbers.setdefault(term, len(numbers)) for term in terms]
    return Column(list(numbers), np.array(indices, np.int64))


def _malformed(
    path: Path, columns: int, delimiter: str, error: Exception, limit: int | None
) -> InvalidInput:
    """The error for the first row that Arrow refused, found by reading the file again."""
    with _lines(path, limit) as lines:
        for number, row in enumerate(_rows(lines, delimiter), 1):
            if len(row) != columns and row not in ([], [""]):
                return _row_error(
                    path,
                    number,
                    min(len(row), columns) + (len(row) > columns),
                    f"expected {columns} {'column' if columns == 1 else 'columns'}"
                    f" separated by {'tabs' if delimiter == chr(9) else 'commas'},"
                    f" found {len(row)}",
                )
            for place, cell in enumerate(row, 1):
                if "\ufffd" in cell:
                    return _row_error(path, number, place, "expected UTF-8 text")
    if "straddling" in str(error):
        return too_long("a row", str(path))
    return InvalidInput("E305", f"cannot read {path}: {error}", file=str(path))


def _row_error(path: Path, line: int, column: int, expected: str) -> InvalidInput:
    return InvalidInput("E305", expected, file=str(path), line=line, column=column)
