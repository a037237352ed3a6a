"""Folders of facts: `<relation>.facts` or `.csv`; which files are of triples.

Tables are read by Arrow in columns, and each distinct text of a column becomes a term once.
`.facts` files are tab-separated and `.csv` files comma-separated; a file whose first row only fits
with the other separator is read with that one. Compressed files (`.gz`, `.zst`) are read as they
are, and `.parquet` and `.arrow` files with their types.
"""

from __future__ import annotations

import csv
import io
import os
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

from corollary.core.inputs import MAX_ITEM_BYTES, InputMeter, too_long
from corollary.core.notices import note
from corollary.errors import InvalidInput, OperationFailed, nearest
from corollary.files import typed
from corollary.files.cells import write_cell
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Constant, Literal, is_auxiliary

MAX_COLUMNS = 10_000  # of a table: Arrow allocates 8 KB for each before it reads a row
_DELIMITERS = {".facts": "\t", ".tsv": "\t", ".csv": ","}
_COMPRESSED = (".gz", ".zst")
_TRIPLES = ".nt"
_NAME = re.compile(r"[^\W\d][\w .\-]{1,60}")
_USUAL = frozenset(
    {"id", "name", "label", "title", "type", "kind", "class", "value", "weight", "count", "from",
     "to", "source", "target", "src", "dst", "start", "end", "subject", "predicate", "object",
     "parent", "child", "node", "node1", "node2", "key", "date", "year", "iri", "uri"}
)  # fmt: skip
_BATCH = 1 << 20  # lines that are written at once
_MAX_EMPTY = 1 << 20  # empty lines before the first row
_BLOCK = 1 << 20  # bytes that Arrow reads at once, and the longest row unless it tries again
FORMATS = ("facts", "csv", "parquet", "arrow")


@dataclass(frozen=True)
class Column:
    """A column of terms: the distinct ones, and for each row the number of its term."""

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
        """The facts one by one."""
        for terms in zip(*self.columns, strict=True):
            yield Atom(self.relation, () if terms == (_UNIT,) else terms)


_UNIT = Literal("()")  # in the place of the arguments that there are not


def read_facts(
    folder: str | Path, program: Program, *, limit_input_bytes: int | None = None
) -> list[Table]:
    """The facts in a folder for the relations of a program.

    Every relation that no rule derives and that has no fact in the program must have a file;
    derived relations may have one.
    """
    files = _files(Path(folder))
    given = {fact.relation for fact in program.facts}
    tables: list[Table] = []
    for relation, arity in sorted(program.arities.items()):
        paths = [path for path in files.get(relation, []) if _suffix(path) != _TRIPLES]
        if not paths and relation not in program.derived and relation not in given:
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
    """One table of a relation with `arity` arguments.

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
    if path.suffix in typed.SUFFIXES:
        table = typed.read_columns(path, len(names), limit_input_bytes)
    else:
        table = _read_text(path, names, limit_input_bytes)
    columns = [term_column(column) for column in table.columns]
    if arity == 0 and any(term != _UNIT for term in columns[0].terms):
        row = next(row for row, term in enumerate(columns[0], 1) if term != _UNIT)
        raise _row_error(path, row, 1, "expected (), the only fact of a relation without arguments")
    if path.suffix not in typed.SUFFIXES and _is_header(columns):
        cells = ", ".join(write_cell(column.terms[column.indices[0]]) for column in columns)
        note("W105", 1, file=str(path), detail=cells[:100])
    return Table(relation, columns)


def _is_header(columns: Sequence[Column]) -> bool:
    """Whether the first row looks like the names of the columns.

    That is so if it is a row of names that stand nowhere else in their columns, and one of them is
    above values of another type, or all are what columns are usually called.
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
        # The others are texts in most columns, which the first of them shows.
        differs = differs or not any(
            isinstance(term, Literal) and term.datatype == first.datatype and not term.language
            for term in column.terms
            if term is not first
        )
    return differs or usual


def is_table(path: Path) -> bool:
    """Whether the file's name is that of a table of facts."""
    return _suffix(path) in (*_DELIMITERS, *typed.SUFFIXES)


def relation_of(path: Path) -> str:
    """The relation that a file is named after."""
    return path.name.split(".")[0]


def columns_in(path: Path, *, limit_input_bytes: int | None = None) -> int:
    """The number of columns of a table file, told by its first row."""
    if path.suffix in typed.SUFFIXES:
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
    """Write a file for each relation, rows in the order of their text.

    Each file appears whole or not at all.
    """
    by_relation: dict[str, list[Table]] = {r: [] for r in program.arities if not is_auxiliary(r)}
    for table in tables:
        by_relation.setdefault(table.relation, []).append(table)
    for relation, found in sorted(by_relation.items()):
        if format_ in ("facts", "csv"):
            write, delimiter = (write_cell, "\t") if format_ == "facts" else (_csv_cell, ",")
            lines = [_lines_of(t, write, delimiter) for t in found]
            path = Path(folder) / f"{relation}.{format_}"
            replace_file(path, partial(_write_lines, lines))
        else:
            width = max(1, program.arities.get(relation, 1))
            cells = [
                pa.concat_arrays(
                    [pa.array([], pa.string()), *(_cells(t.columns[n], write_cell) for t in found)]
                )
                for n in range(width)
            ]
            path = Path(folder) / f"{relation}.{format_}"
            replace_file(path, partial(typed.write_columns, cells))


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file beside its place and move it there, so that no half of it is ever seen."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OperationFailed(
            "E401", f"cannot write {path}: {error.strerror or error}", file=str(path)
        ) from None


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
    """The facts files of a folder by the relation that they are named after."""
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
    """The suffix that tells the format, `.csv` for `edge.csv.gz`."""
    return Path(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


class _Metered(io.RawIOBase):
    """The decompressed bytes of a file, counted."""

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
        with pa.input_stream(str(path), compression="detect") as stream:
            size = path.stat().st_size
            if path.suffix in _COMPRESSED:
                yield _Metered(stream, InputMeter(str(path), size, limit))
            else:
                InputMeter(str(path), limit=limit).add(size)
                yield stream
    except OSError as error:
        damaged = path.suffix in _COMPRESSED and error.errno is None
        raise InvalidInput(
            "E306" if damaged else "E301",
            f"{path} is damaged: it cannot be decompressed"
            if damaged
            else f"cannot read {path}: {error.strerror or error}",
            file=str(path),
        ) from None


@contextmanager
def _lines(path: Path, limit: int | None) -> Iterator[Iterator[str]]:
    """The lines of a file as text; what is not UTF-8 shows as replacement characters."""
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
    """The first line that is not empty, if it is among the first of the file."""
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
    """Comma-separated rows; a cell that Python's reader finds too long ends them."""
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
    """The first row that Arrow could not take, with its line: found by reading once more."""
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
