"""Read tables with the columns subject, predicate, object and perhaps graph, and rdflib graphs.

A cell is a term in N-Triples syntax (it begins with `<`, `_:` or `"`), or else an absolute IRI.
Arrow formats the rows as lines, which are read like a file, so line numbers are row numbers. A
table or graph is one document with its own blank nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import compute

from corollary.core.strings import string_bytes
from corollary.errors import InvalidInput
from corollary.lang.syntax import (
    IRI,
    QUAD_COLUMNS,
    TRIPLE_COLUMNS,
    XSD,
    BlankNode,
    Constant,
    Literal,
)
from corollary.rdf.files import Pieces
from corollary.rdf.triples import Reading

if TYPE_CHECKING:
    import rdflib

_ROWS = 1 << 18  # formatted as lines at once
_IRI = r"<[^<>\"{}|^`\\\x00-\x20]*>"
_WRITTEN = (
    rf"^(?:{_IRI}|_:[^\s]+|"
    rf"\"(?:[^\"\\]|\\.)*\"(?:@[A-Za-z0-9-]+|\^\^{_IRI})?|"
    r"[^<_\"\s][^<>\"{}|^`\\\x00-\x20]*)$"
)
_HINT = 'a cell is an IRI, or a term as N-Triples writes it: <…>, _:label, "text"@en'


class Frame(Protocol):
    """A table of Arrow, pandas, Polars or any library with Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def is_frame(source: object) -> bool:
    """Test whether the source is a table."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def is_graph(source: object) -> bool:
    """Test whether the source is an rdflib graph, without importing rdflib."""
    module = sys.modules.get("rdflib")
    return module is not None and isinstance(source, module.Graph)


def read_frame(source: Frame, reading: Reading, name: str) -> None:
    """Read a table."""
    columns = [_texts(column, field, name) for field, column in _columns(source, name)]
    _check(columns, reading, name)
    from corollary.rdf.lines import read_lines  # loads the compiler

    syntax = "n-triples" if len(columns) == 3 else "n-quads"
    read_lines(Pieces(_lines(columns)), syntax, reading, name)


def read_graph(graph: rdflib.Graph, reading: Reading, name: str) -> None:
    """Read an rdflib graph, or all graphs of a dataset."""
    scope = reading.scope()
    numbers: dict[object, int] = {}
    columns: tuple[list[int], ...] = ([], [], [], [])
    named: list[bool] = []
    for *statement, context in _quads_of(graph):
        for column, term in zip(columns, statement, strict=False):
            column.append(numbers.setdefault(term, len(numbers)))
        named.append(context is not None)
        is_kept = context is not None and reading.keeps_graphs
        columns[3].append(numbers.setdefault(context, len(numbers)) if is_kept else 0)
    ids = reading.dictionary.encode([constant_of(term, scope) for term in numbers])
    *triples, graphs = (ids[column] for column in columns)
    reading.add_quads(triples, graphs, np.array(named, np.bool_), name)
    reading.declare({str(prefix): str(iri) for prefix, iri in graph.namespaces()})
    reading.progress(name, len(columns[0]), len(columns[0]))


def _quads_of(graph: rdflib.Graph) -> Iterator[tuple[object, ...]]:
    """Iterate over the statements of a graph or dataset, each with its graph or None."""
    if not hasattr(graph, "quads"):
        yield from ((*statement, None) for statement in graph)
        return
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    default = getattr(graph, "default_graph", None)
    if default is None:  # a conjunctive graph
        default = getattr(graph, "default_context", None)
    unnamed = (None, DATASET_DEFAULT_GRAPH_ID, getattr(default, "identifier", None))
    for *statement, context in graph.quads((None, None, None, None)):
        context = getattr(context, "identifier", context)
        yield *statement, None if context in unnamed else context


def statements_of(graph: rdflib.Graph) -> Iterable[tuple[object, object, object]]:
    """Iterate over the statements of a graph, or of all graphs of a dataset."""
    if hasattr(graph, "quads"):
        return (quad[:3] for quad in graph.quads((None, None, None, None)))
    return graph


def constant_of(term: object, scope: str = "") -> Constant:
    """Convert an rdflib term; `scope` prefixes the labels of blank nodes.

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


def _columns(source: Frame, name: str) -> list[tuple[str, pa.ChunkedArray]]:
    table = source if isinstance(source, pa.Table) else pa.table(source)
    missing = [column for column in TRIPLE_COLUMNS if column not in table.column_names]
    if missing:
        raise InvalidInput(
            "E322",
            f"expected the columns subject, predicate and object,"
            f" found {', '.join(table.column_names) or 'none'}",
            "rename the columns of the table",
            file=name,
        )
    names = QUAD_COLUMNS if QUAD_COLUMNS[3] in table.column_names else TRIPLE_COLUMNS
    return [(column, table.column(column)) for column in names]


def _texts(column: pa.ChunkedArray, field: str, name: str) -> pa.ChunkedArray:
    kind = column.type
    if field == QUAD_COLUMNS[3]:  # a statement without a graph is in the default graph
        if pa.types.is_null(kind):
            return pa.chunked_array([pa.repeat(large(""), len(column))])
        column = compute.fill_null(column.cast(pa.large_string()), large(""))
    if pa.types.is_dictionary(kind):  # a category of pandas or Polars
        kind = kind.value_type
    if kind not in (pa.string(), pa.large_string(), pa.string_view()):
        raise InvalidInput("E322", f"expected texts in '{field}', found {kind}", _HINT, file=name)
    return column.cast(pa.large_string())


def _check(columns: list[pa.ChunkedArray], reading: Reading, name: str) -> None:
    """Reject rows with invalid cells, so no cell is read as several terms."""
    patterns = (_WRITTEN, _WRITTEN, _WRITTEN, rf"^$|{_WRITTEN}")
    good = [
        compute.fill_null(compute.match_substring_regex(column, pattern), False)
        .combine_chunks()
        .to_numpy(zero_copy_only=False)
        for column, pattern in zip(columns, patterns, strict=False)
    ]
    fine = np.logical_and.reduce(good)
    if fine.all():
        return
    for row in np.flatnonzero(~fine).tolist():
        place = next(place for place in range(len(good)) if not good[place][row])
        cell = columns[place][row].as_py()
        found = "nothing" if cell is None else repr(cell)
        message = f"expected a term in '{QUAD_COLUMNS[place]}', found {found}"
        reading.malformed(name, row + 1, place + 1, message, _HINT)
    # Skipped rows become empty lines, so the others keep their numbers.
    for place, column in enumerate(columns):
        columns[place] = compute.if_else(pa.array(fine), column, large(""))


def _lines(columns: list[pa.ChunkedArray]) -> Iterator[memoryview]:
    """Format the rows of a table as lines of N-Triples."""
    for row in range(0, len(columns[0]), _ROWS):
        cells = [_terms(column.slice(row, _ROWS).combine_chunks()) for column in columns]
        skipped = compute.equal(cells[0], large(""))
        lines = compute.if_else(skipped, large("\n"), statement_lines(cells))
        yield string_bytes(lines)[1].data


def _terms(cells: pa.Array) -> pa.Array:
    """Format cells in N-Triples syntax; line breaks inside literals are escaped."""
    for character, escape in (("\n", "\\n"), ("\r", "\\r")):
        cells = compute.replace_substring(cells, character, escape)
    first = compute.utf8_slice_codeunits(cells, 0, 1)
    written = compute.is_in(first, pa.array(["<", "_", '"', ""], pa.large_string()))
    bare = compute.binary_join_element_wise(large("<"), cells, large(">"), large(""))
    return compute.if_else(written, cells, bare)


def large(text: str) -> pa.Scalar:
    """Create a string scalar for arrays with 64-bit offsets."""
    return pa.scalar(text, pa.large_string())


def statement_lines(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Format terms in N-Triples syntax as lines of statements."""
    return compute.binary_join_element_wise(*columns, large(".\n"), large(" "))
