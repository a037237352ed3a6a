"""Folders of facts: a table per relation, `<relation>.facts` or `.csv`, and files of triples.

Arrow reads the columns of a table, and each distinct text of a column is converted to a term once.
`.facts` files are tab-separated and `.csv` files comma-separated, unless the first row fits only
with the other delimiter. Tables may be compressed (`.gz`, `.zst`); `.parquet` and `.arrow` files
keep their types, `.jsonl` files hold an object in each line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from corollary.core.inputs import is_compressed, suffix_of
from corollary.core.notices import note
from corollary.errors import InvalidInput, nearest
from corollary.files import named, text, typed
from corollary.files.cells import write_cell
from corollary.files.shapes import MalformedRows, Shape
from corollary.files.tables import UNIT, Column, Table, term_column
from corollary.lang.declarations import Input
from corollary.lang.program import Program
from corollary.lang.syntax import Literal

MAX_COLUMNS = 10_000  # of a table: Arrow allocates 8 KB for each before it reads a row
_TRIPLES = ".nt"
_NAME = re.compile(r"[^\W\d][\w .\-]{1,60}")
_USUAL = frozenset(
    {"id", "name", "label", "title", "type", "kind", "class", "value", "weight", "count", "from",
     "to", "source", "target", "src", "dst", "start", "end", "subject", "predicate", "object",
     "parent", "child", "node", "node1", "node2", "key", "date", "year", "iri", "uri"}
)  # fmt: skip
TABLE_SUFFIXES = (*text.DELIMITERS, *typed.SUFFIXES, *named.JSON_LINES)


def read_facts(
    folder: str | Path,
    program: Program,
    *,
    limit_input_bytes: int | None = None,
    rows: MalformedRows | None = None,
) -> list[Table]:
    """Read the facts in a folder for the relations of a program.

    Every relation that is neither derived nor stated in the program must have a file; others may.
    """
    files = _files(Path(folder))
    known = {fact.relation for fact in program.facts} | program.derived
    known |= {one.relation for one in program.declarations.inputs}
    tables: list[Table] = []
    for relation, arity in sorted(program.arities.items()):
        paths = [path for path in files.get(relation, []) if _suffix(path) != _TRIPLES]
        if not paths and relation not in known:
            raise _missing(relation, Path(folder), files, known)
        shape = Shape(relation, arity, program.declarations.relations.get(relation))
        tables += [
            read_table(path, shape, limit_input_bytes=limit_input_bytes, rows=rows)
            for path in paths
        ]
    return tables


def read_input(
    one: Input,
    program: Program,
    *,
    limit_input_bytes: int | None = None,
    rows: MalformedRows | None = None,
) -> Table:
    """Read the file of an `@input` declaration."""
    path = one.path
    if not is_table(path):
        raise InvalidInput(
            "E353",
            f"{one.file} is no table that can be read",
            "the name must end in .csv, .tsv, .facts, .jsonl, .parquet or .arrow; text also in .gz"
            " or .zst after it",
            file=str(path),
        )
    declared = program.declarations.relations.get(one.relation)
    shape = Shape(one.relation, program.arities[one.relation], declared, one.header)
    return read_table(path, shape, limit_input_bytes=limit_input_bytes, rows=rows)


def triple_files(folder: str | Path) -> list[Path]:
    """The N-Triples files in a folder."""
    files = _files(Path(folder))
    return [path for paths in files.values() for path in paths if _suffix(path) == _TRIPLES]


def read_table(
    path: Path,
    shape: Shape,
    *,
    limit_input_bytes: int | None = None,
    rows: MalformedRows | None = None,
) -> Table:
    """Read a table of a relation.

    `limit_input_bytes` bounds the bytes of the file after decompression. `rows` counts rows that do
    not fit the declared types; without it, they are errors.
    """
    relation, arity = shape.relation, shape.arity
    if arity > MAX_COLUMNS:
        raise InvalidInput(
            "E327",
            f"{path} has {arity:,} columns; at most {MAX_COLUMNS:,} can be read",
            "check the delimiter and the line breaks of the file",
            file=str(path),
        )
    is_json = _suffix(path) in named.JSON_LINES
    if arity and (is_json or not shape.is_plain):
        return named.read_named(path, shape, rows or MalformedRows(), limit_input_bytes)
    columns: Sequence[Column]
    width = max(1, arity)
    if is_json:
        one = Shape(relation, width)
        columns = named.read_named(path, one, MalformedRows(), limit_input_bytes).columns
    elif _suffix(path) in typed.SUFFIXES:
        table = typed.read_columns(path, width, limit_input_bytes)
        columns = [term_column(column) for column in table.columns]
    else:
        table = text.read_positional(path, width, limit_input_bytes)
        columns = [term_column(column) for column in table.columns]
    if arity == 0 and any(term != UNIT for term in columns[0].terms):
        row = next(row for row, term in enumerate(columns[0], 1) if term != UNIT)
        expected = "expected (), the only fact of a relation without arguments"
        raise text.row_error(path, row, 1, expected)
    if _suffix(path) in text.DELIMITERS and _is_header(columns):
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
    return _suffix(path) in TABLE_SUFFIXES


def relation_of(path: Path) -> str:
    """The relation that a file is named after."""
    return path.name.split(".")[0]


def columns_in(path: Path, *, limit_input_bytes: int | None = None) -> int:
    """The number of columns in the first row of a table."""
    suffix = _suffix(path)
    if suffix in typed.SUFFIXES:
        return typed.columns_in(path)
    if suffix in named.JSON_LINES:
        return named.columns_in(path, limit_input_bytes)
    return text.columns_in(path, limit_input_bytes)


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
        if _suffix(path) in (*TABLE_SUFFIXES, _TRIPLES) and not path.name.startswith("."):
            files.setdefault(relation_of(path), []).append(path)
    return files


def _missing(
    relation: str, folder: Path, files: dict[str, list[Path]], known: set[str]
) -> InvalidInput:
    close = nearest(relation, {*files, *known})
    hint = ""
    if close in files:
        hint = f"did you mean {close}? There is {files[close][0].name}. "
    elif close is not None:
        hint = f"did you mean {close}? The program has rules, facts or a file for it. "
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
