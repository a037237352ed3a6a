"""Write relations to files: text, Parquet, Arrow or JSON lines, by the suffix of the name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from corollary.core.files import replace_file
from corollary.core.inputs import COMPRESSIONS, is_compressed, suffix_of
from corollary.errors import InvalidInput
from corollary.files import native, typed
from corollary.files.cells import write_cell
from corollary.files.named import JSON_LINES
from corollary.files.tables import Column, Table, merged
from corollary.lang.declarations import ColumnType, Relation
from corollary.lang.printer import quote
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, XSD, Constant, Literal, is_auxiliary
from corollary.lang.values import literal_of, value_of

_BATCH = 1 << 20  # lines per write
_BARE_JSON = (XSD + "integer", XSD + "decimal")


def write_facts(
    folder: str | Path,
    program: Program,
    tables: Iterable[Table],
    *,
    format_: str = "facts",
    only: frozenset[str] | None = None,
) -> None:
    """Write a file per relation, atomically, with rows sorted by their text.

    `only` chooses relations; otherwise all are written that are not auxiliary.
    """
    by_relation: dict[str, list[Table]] = {r: [] for r in program.arities if not is_auxiliary(r)}
    for table in tables:
        by_relation.setdefault(table.relation, []).append(table)
    for relation, group in sorted(by_relation.items()):
        if only is None or relation in only:
            path = Path(folder) / f"{relation}.{format_}"
            write_relation(path, relation, group, program)


def write_relation(path: Path, relation: str, tables: Sequence[Table], program: Program) -> None:
    """Write the facts of a relation to a file, atomically, with rows sorted by their text."""
    width = max(1, program.arities.get(relation, 1))
    columns = merged(tables, width)
    declared = program.declarations.relations.get(relation)
    if declared is not None and not declared.columns:
        declared = None
    suffix = suffix_of(path)
    is_typed = suffix in typed.SUFFIXES
    if not is_typed and suffix not in (*JSON_LINES, ".facts", ".tsv", ".csv"):
        suffix = ""
    if not suffix or (is_typed and is_compressed(path)):
        raise InvalidInput(
            "E353",
            f"{path} names no format of tables",
            "the name must end in .csv, .tsv, .facts, .jsonl, .parquet or .arrow; text also in .gz"
            " or .zst after it",
            file=str(path),
        )
    if is_typed:
        replace_file(path, partial(_write_typed, columns, declared))
        return
    if suffix in JSON_LINES:
        lines, header = _json_lines(columns, declared), None
    else:
        lines, header = _text_lines(columns, declared, suffix)
    replace_file(path, partial(_write_lines, lines, header))


def _write_typed(columns: Sequence[Column], declared: Relation | None, path: Path) -> None:
    arrays = []
    for place, (terms, indices) in enumerate((c.terms, c.indices) for c in columns):
        array: pa.Array | None
        if declared is not None:
            array = native.declared_array(terms, indices, declared, place)
        else:
            array = native.exact_array(terms, indices)
        arrays.append(_cells(columns[place], write_cell) if array is None else array)
    names = [f"argument {n}" for n in range(1, len(columns) + 1)]
    typed.write_columns(arrays, names if declared is None else list(declared.names), path)


# -- text ------------------------------------------------------------------------------------------


def _text_lines(
    columns: Sequence[Column], declared: Relation | None, suffix: str
) -> tuple[pa.Array, str | None]:
    """The lines of a file; a declared relation has a header, except in `.facts` files."""
    comma = suffix == ".csv"
    delimiter = "," if comma else "\t"
    protect = _csv_text if comma else _tab_text
    kinds: Sequence[ColumnType | None] = [None] * len(columns)
    header = None
    if declared is not None:
        kinds = [column.type for column in declared.columns]
        if suffix != ".facts":
            header = delimiter.join(map(protect, declared.names))
    cells = []
    for column, kind in zip(columns, kinds, strict=True):
        if kind in (None, "any"):
            write = _csv_cell if comma else write_cell
        else:
            write = partial(_declared_cell, protect)
        cells.append(_cells(column, write))
    return compute.binary_join_element_wise(*cells, delimiter), header


def _cells(column: Column, write: Callable[[Constant], str]) -> pa.Array:
    texts = pa.array([write(term) for term in column.terms], pa.string())
    return texts.take(pa.array(column.indices))


def _declared_cell(protect: Callable[[str], str], term: Constant) -> str:
    """A value as the declared type of its column reads it; other terms as cells."""
    if isinstance(term, Literal) and term.language is None:
        return protect(term.lexical)
    return protect(term.value if isinstance(term, IRI) else write_cell(term))


def _tab_text(text: str) -> str:
    needs_quotes = text.startswith('"') or any(c in text for c in "\t\n\r")
    return quote(text) if needs_quotes or not text else text


def _csv_text(text: str) -> str:
    if not text or any(character in text for character in ',"\r\n'):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


def _csv_cell(term: Constant) -> str:
    return _csv_text(write_cell(term))


def _write_lines(lines: pa.Array, header: str | None, path: Path) -> None:
    lines = lines.take(compute.sort_indices(lines))
    with _sink(path) as file:
        if header is not None:
            file.write(f"{header}\n".encode())
        for start in range(0, len(lines), _BATCH):
            batch = lines.slice(start, _BATCH).to_pylist()
            file.write("".join(f"{line}\n" for line in batch).encode())


def _sink(path: Path) -> Any:
    if not is_compressed(path):
        return path.open("wb")
    raw = pa.OSFile(str(path), "wb")  # not by its name, which may be a URI
    return pa.CompressedOutputStream(raw, COMPRESSIONS[path.suffix.lower()])


# -- JSON lines ------------------------------------------------------------------------------------


def _json_lines(columns: Sequence[Column], declared: Relation | None) -> pa.Array:
    names = [f"arg{n}" for n in range(len(columns))]
    kinds: Iterator[ColumnType | None] = iter([None] * len(columns))
    if declared is not None:
        names = list(declared.names)
        kinds = iter([column.type for column in declared.columns])
    parts: list[pa.Array | str] = []
    for name, kind, column in zip(names, kinds, columns, strict=True):
        opening = "{" if not parts else ", "
        key = f"{opening}{json.dumps(name, ensure_ascii=False)}: "
        values = _cells(column, partial(_json_value, kind))
        parts.append(compute.binary_join_element_wise(pa.scalar(key), values, ""))
    return compute.binary_join_element_wise(*parts, pa.scalar("}"), "")


def _json_value(kind: ColumnType | None, term: Constant) -> str:
    """A term as JSON: numbers and booleans as such, other terms as texts."""
    raw = kind not in (None, "any")
    if isinstance(term, Literal) and term.language is None:
        value = value_of(term)
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is not None and not isinstance(value, str) and literal_of(value) == term:
            if term.datatype in _BARE_JSON:
                return term.lexical
            if term.lexical not in ("INF", "-INF", "NaN"):
                return repr(value).replace("e+", "e") if "e" in repr(value) else f"{value!r}e0"
    if raw and isinstance(term, Literal) and term.language is None:
        return json.dumps(term.lexical, ensure_ascii=False)
    if raw and isinstance(term, IRI):
        return json.dumps(term.value, ensure_ascii=False)
    return json.dumps(write_cell(term), ensure_ascii=False)
