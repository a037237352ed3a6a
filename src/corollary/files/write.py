"""Write relations to files: text, Parquet, Arrow or JSON lines, by the suffix of the name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from corollary.core.files import replace_file
from corollary.core.inputs import COMPRESSIONS, is_compressed, suffix_of
from corollary.core.strings import string_bytes
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
    if declared is not None:
        for place, column in enumerate(columns):
            native.check_declared(column.terms, column.indices, declared, place)
    if suffix in JSON_LINES:
        cells, header = _json_cells(columns, declared), None
    else:
        cells, header = _text_cells(columns, declared, suffix)
    replace_file(path, partial(_write_lines, cells, header))


def _write_typed(columns: Sequence[Column], declared: Relation | None, path: Path) -> None:
    arrays = []
    for place, (terms, indices) in enumerate((c.terms, c.indices) for c in columns):
        array: pa.Array | None
        if declared is not None:
            array = native.declared_array(terms, indices, declared, place)
        else:
            array = native.exact_array(terms, indices)
        if array is None:
            array = pa.array(map(write_cell, terms), pa.string()).take(pa.array(indices))
        arrays.append(array)
    names = [f"argument {n}" for n in range(1, len(columns) + 1)]
    typed.write_columns(arrays, names if declared is None else list(declared.names), path)


# -- lines -----------------------------------------------------------------------------------------


class _Cells(NamedTuple):
    """A column of lines: its distinct cells, each with the delimiter that follows, by number."""

    texts: pa.Array
    indices: npt.NDArray[np.int64]


def _write_lines(columns: Sequence[_Cells], header: str | None, path: Path) -> None:
    order = _order_of_lines(columns)
    end, nothing = pa.scalar("\n", pa.large_string()), pa.scalar("", pa.large_string())
    with _sink(path) as file:
        if header is not None:
            file.write(f"{header}\n".encode())
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            parts = [texts.take(pa.array(indices[rows])) for texts, indices in columns]
            lines = compute.binary_join_element_wise(*parts, end, nothing)
            file.write(string_bytes(lines)[1].data)


def _order_of_lines(columns: Sequence[_Cells]) -> npt.NDArray[np.int64]:
    """Sort lines by their text, without comparing lines.

    No cell with its delimiter is the beginning of another one, so lines are in the order of their
    first cells that differ: numbers are compared.
    """
    ranks = [
        (len(texts), compute.rank(texts, tiebreaker="dense").to_numpy().astype(np.int64)[indices])
        for texts, indices in columns
    ]
    if math.prod(count + 1 for count, _ in ranks) >= 1 << 63:
        return np.lexsort([rank for _, rank in reversed(ranks)])
    keys = np.zeros(len(columns[0].indices), np.int64)
    for count, rank in ranks:
        keys = keys * (count + 1) + rank
    return np.argsort(keys)


# -- text ------------------------------------------------------------------------------------------


def _text_cells(
    columns: Sequence[Column], declared: Relation | None, suffix: str
) -> tuple[list[_Cells], str | None]:
    """The cells of a file; a declared relation has a header, except in `.facts` files."""
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
    for place, (column, kind) in enumerate(zip(columns, kinds, strict=True), 1):
        if kind in (None, "any"):
            write = _csv_cell if comma else write_cell
        else:
            write = partial(_declared_cell, protect)
        after = delimiter if place < len(columns) else ""
        texts = [write(term) + after for term in column.terms]
        cells.append(_Cells(pa.array(texts, pa.large_string()), column.indices))
    return cells, header


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


def _sink(path: Path) -> Any:
    if not is_compressed(path):
        return path.open("wb")
    raw = pa.OSFile(str(path), "wb")  # not by its name, which may be a URI
    return pa.CompressedOutputStream(raw, COMPRESSIONS[path.suffix.lower()])


# -- JSON lines ------------------------------------------------------------------------------------


def _json_cells(columns: Sequence[Column], declared: Relation | None) -> list[_Cells]:
    names = [f"arg{n}" for n in range(len(columns))]
    kinds: Iterator[ColumnType | None] = iter([None] * len(columns))
    if declared is not None:
        names = list(declared.names)
        kinds = iter([column.type for column in declared.columns])
    cells: list[_Cells] = []
    for name, kind, column in zip(names, kinds, columns, strict=True):
        before = f"{'' if cells else '{'}{json.dumps(name, ensure_ascii=False)}: "
        after = ", " if len(cells) + 1 < len(columns) else "}"
        texts = [f"{before}{_json_value(kind, term)}{after}" for term in column.terms]
        cells.append(_Cells(pa.array(texts, pa.large_string()), column.indices))
    return cells


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
