"""Tables with the columns subject, predicate and object, and graphs of rdflib, as triples.

A cell is a term as N-Triples writes it (it begins with `<`, `_:` or `"`), or else an IRI in full.
The rows are written as lines by Arrow and read like a file, so that a row has the number of its
line. A table, or a graph, is one document: its blank nodes are its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import compute

from corollary.core.notices import note
from corollary.errors import InvalidInput
from corollary.lang.syntax import IRI, XSD, BlankNode, Constant, Literal
from corollary.rdf.triples import Reading

if TYPE_CHECKING:
    import rdflib

COLUMNS = ("subject", "predicate", "object")
_ROWS = 1 << 18  # that are written as lines at once
_IRI = r"<[^<>\"{}|^`\\\x00-\x20]*>"
_WRITTEN = (
    rf"^(?:{_IRI}|_:[^\s]+|"
    rf"\"(?:[^\"\\]|\\.)*\"(?:@[A-Za-z0-9-]+|\^\^{_IRI})?|"
    r"[^<_\"\s][^<>\"{}|^`\\\x00-\x20]*)$"
)
_HINT = 'a cell is an IRI, or a term as N-Triples writes it: <…>, _:label, "text"@en'


class Frame(Protocol):
    """A table of Arrow, pandas, Polars or any other library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def is_frame(source: object) -> bool:
    """Whether the source is a table."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def is_graph(source: object) -> bool:
    """Whether the source is a graph of rdflib, which is not loaded to find out."""
    module = sys.modules.get("rdflib")
    return module is not None and isinstance(source, module.Graph)


def read_frame(source: Any, reading: Reading, name: str) -> None:
    """Read a table."""
    columns = [_texts(column, field, name) for field, column in _columns(source, name)]
    _check(columns, reading, name)
    from corollary.rdf.lines import read_lines  # loads the compiler

    read_lines(_Lines(columns), "n-triples", reading, name)


def read_graph(graph: rdflib.Graph, reading: Reading, name: str) -> None:
    """Read a graph of rdflib; of a dataset all graphs."""
    scope = reading.scope()
    numbers: dict[object, int] = {}
    columns: tuple[list[int], ...] = ([], [], [])
    for statement in statements_of(graph):
        for column, term in zip(columns, statement, strict=True):
            column.append(numbers.setdefault(term, len(numbers)))
    ids = reading.dictionary.encode([constant_of(term, scope) for term in numbers])
    reading.add(*(ids[column] for column in columns))
    reading.declare({str(prefix): str(iri) for prefix, iri in graph.namespaces()})
    reading.progress(name, len(columns[0]), len(columns[0]))
    note("W101", _named(graph), file=name)


def _named(graph: rdflib.Graph) -> int:
    """How many statements of a dataset are in named graphs."""
    if not hasattr(graph, "quads"):
        return 0
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    contexts = (quad[3] for quad in graph.quads((None, None, None, None)))
    names = (getattr(context, "identifier", context) for context in contexts)
    return sum(1 for name in names if name not in (None, DATASET_DEFAULT_GRAPH_ID))


def statements_of(graph: rdflib.Graph) -> Iterable[Any]:
    """The statements of a graph, or of all graphs of a dataset."""
    if hasattr(graph, "quads"):
        return (quad[:3] for quad in graph.quads((None, None, None, None)))
    return graph


def constant_of(term: Any, scope: str = "") -> Constant:
    """A term of rdflib; `scope` goes before the labels of blank nodes.

    >>> import rdflib
    >>> constant_of(rdflib.URIRef("urn:a"))
    IRI(value='urn:a')
    """
    import rdflib

    match term:
        case rdflib.URIRef():
            return IRI(str(term))
        case rdflib.BNode():
            return BlankNode(scope + str(term))
        case rdflib.Literal(language=str(language)):
            return Literal(str(term), language=language.lower())
        case rdflib.Literal():
            return Literal(str(term), str(term.datatype or XSD + "string"))
    raise InvalidInput(
        "E322", f"expected an IRI, a blank node or a literal, found {type(term).__name__}"
    )


def _columns(source: Any, name: str) -> list[tuple[str, pa.ChunkedArray]]:
    table = source if isinstance(source, pa.Table) else pa.table(source)
    missing = [column for column in COLUMNS if column not in table.column_names]
    if missing:
        raise InvalidInput(
            "E322",
            f"expected the columns subject, predicate and object,"
            f" found {', '.join(table.column_names) or 'none'}",
            "rename the columns of the table",
            file=name,
        )
    return [(column, table.column(column)) for column in COLUMNS]


def _texts(column: pa.ChunkedArray, field: str, name: str) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):  # a category of pandas or Polars
        kind = kind.value_type
    if not any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    ):
        raise InvalidInput("E322", f"expected texts in '{field}', found {kind}", _HINT, file=name)
    return column.cast(pa.large_string())


def _check(columns: list[pa.ChunkedArray], reading: Reading, name: str) -> None:
    """Refuse rows with cells that are no term, so that no cell can be taken for several."""
    good = [
        compute.fill_null(compute.match_substring_regex(column, _WRITTEN), False)
        .combine_chunks()
        .to_numpy(zero_copy_only=False)
        for column in columns
    ]
    fine = np.logical_and.reduce(good)
    if fine.all():
        return
    for row in np.flatnonzero(~fine).tolist():
        place = next(place for place in range(3) if not good[place][row])
        cell = columns[place][row].as_py()
        found = "nothing" if cell is None else repr(cell)
        message = f"expected a term in '{COLUMNS[place]}', found {found}"
        reading.malformed(name, row + 1, place + 1, message, _HINT)
    # Rows that are skipped become empty lines, so that the others keep their numbers.
    for place, column in enumerate(columns):
        columns[place] = compute.if_else(pa.array(fine), column, large(""))


class _Lines:
    """The rows of a table as lines of N-Triples."""

    def __init__(self, columns: list[pa.ChunkedArray]) -> None:
        self._columns = columns
        self._row = 0
        self._batch = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:
        while not self._batch and self._row < len(self._columns[0]):
            self._batch = self._written(self._row)
            self._row += _ROWS
        size = min(len(buffer), len(self._batch))
        buffer[:size] = self._batch[:size]
        self._batch = self._batch[size:]
        return size

    def _written(self, row: int) -> memoryview:
        cells = [_terms(column.slice(row, _ROWS).combine_chunks()) for column in self._columns]
        lines = compute.binary_join_element_wise(*cells, large(".\n"), large(" "))
        skipped = compute.equal(cells[0], large(""))
        lines = compute.if_else(skipped, large("\n"), lines)
        return array_bytes(lines)


def _terms(cells: pa.Array) -> pa.Array:
    """Cells as N-Triples writes them; line breaks inside of literals are escaped."""
    for character, escape in (("\n", "\\n"), ("\r", "\\r")):
        cells = compute.replace_substring(cells, character, escape)
    first = compute.utf8_slice_codeunits(cells, 0, 1)
    written = compute.is_in(first, pa.array(["<", "_", '"', ""], pa.large_string()))
    bare = compute.binary_join_element_wise(large("<"), cells, large(">"), large(""))
    return compute.if_else(written, cells, bare)


def large(text: str) -> pa.Scalar:
    """A text of the type that Arrow's functions need beside arrays with 64-bit offsets."""
    return pa.scalar(text, pa.large_string())


def array_bytes(array: pa.Array) -> memoryview:
    """The bytes of an array of strings, one after the other."""
    _, offsets, data = array.buffers()
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    places = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1]
    first, last = (int(places[0]), int(places[-1])) if len(array) else (0, 0)
    return memoryview(data).cast("B")[first:last] if last > first else memoryview(b"")
