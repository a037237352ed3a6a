"""Answers: a table of solutions (SELECT) or of triples (CONSTRUCT, DESCRIBE)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from corollary.core.html import SHOWN, html_table, left_out, windows
from corollary.core.terms import term_of
from corollary.core.trivial import is_trivial_triple
from corollary.files.native import column_type, native_values
from corollary.lang.printer import Printer
from corollary.lang.syntax import IRI, BlankNode, Constant
from corollary.rdf.rdflib_terms import graph_of, rdflib_rows, require, require_rdflib

if TYPE_CHECKING:
    import polars as pl
    import rdflib
    from rdflib.query import Result
    from rdflib.term import Identifier


@dataclass(frozen=True)
class Answer:
    """A table of terms in N-Triples syntax; null is unbound.

    >>> Answer(pa.table({"x": ['"a"', None]})).to_pylist()
    [{'x': '"a"'}, {'x': None}]
    """

    table: pa.Table
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def texts(self) -> Iterator[tuple[str | None, ...]]:
        """The rows, as texts."""
        columns = [column.to_pylist() for column in self.table.columns]
        yield from zip(*columns, strict=True) if columns else [()] * len(self)

    def __iter__(self) -> Iterator[tuple[Constant | None, ...]]:
        """The rows, as terms."""
        terms: dict[str | None, Constant | None] = {None: None}
        for row in self.texts():
            for text in row:
                if text is not None and text not in terms:
                    terms[text] = term_of(text)
            yield tuple(terms[text] for text in row)

    @cached_property
    def _native(self) -> pa.Table:
        """The table with native types, column by column."""
        columns = map(_native_column, self.table.columns)
        return pa.table(list(columns), names=self.table.column_names)

    def to_arrow(self, *, native: bool = False) -> pa.Table:
        """The table; with `native`, columns whose literals have one type have this type.

        Columns without literals have IRIs as plain text, and mixed columns stay as they are.

        >>> Answer(pa.table({"x": ['"a"', None]})).to_arrow(native=True).to_pylist()
        [{'x': 'a'}, {'x': None}]
        """
        return self._native if native else self.table

    def to_pandas(self, *, native: bool = False) -> Any:
        """The table as a pandas frame; `native` as in `to_arrow`."""
        require("pandas", "pandas")
        return self.to_arrow(native=native).to_pandas()

    def to_polars(self, *, native: bool = False) -> pl.DataFrame:
        """The table as a Polars frame; `native` as in `to_arrow`."""
        polars = require("polars", "polars")
        frame = polars.from_arrow(self.to_arrow(native=native))
        assert isinstance(frame, polars.DataFrame), "a table becomes a frame"
        return frame  # type: ignore[no-any-return]

    def to_pylist(self, *, native: bool = False) -> list[dict[str, Any]]:
        """The rows as dictionaries of texts; `native` as in `to_arrow`."""
        rows: list[dict[str, Any]] = self.to_arrow(native=native).to_pylist()
        return rows

    def serialize(self, format: str = "csv") -> str | bytes:
        """Serialize the answer: `csv`, `tsv`, `json`, `xml`, `table`, or `parquet` as bytes.

        >>> Solutions(pa.table({"x": ["<urn:a>"]})).serialize("tsv")
        '?x\\n<urn:a>\\n'
        """
        from corollary.query.write import serialized

        return serialized(self, format, self.prefixes)

    def _repr_html_(self) -> str:
        """The first rows, with short names, and how many there are."""
        rows, trivial = self._first_rows()
        note = left_out(len(rows), len(self), "rows", trivial)
        return html_table(self.table.column_names, rows, note=note)

    def _first_rows(self) -> tuple[list[list[str]], int]:
        """Print the rows to show; returns how many trivial triples were passed over."""
        printer = Printer(self.prefixes)
        rows: list[list[str]] = []
        trivial = 0
        for row in chain.from_iterable(map(type(self), windows(self.table))):
            if len(rows) == SHOWN:
                break
            if self._is_trivial(row):
                trivial += 1
            else:
                rows.append(["" if term is None else printer.term(term) for term in row])
        return rows, trivial

    def _is_trivial(self, row: tuple[Constant | None, ...]) -> bool:
        return False


def _native_column(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    encoded = column.combine_chunks().dictionary_encode()
    terms = [term_of(text) for text in encoded.dictionary.to_pylist()]
    named = all(isinstance(term, IRI | BlankNode) for term in terms)
    kind = "iri" if terms and named else column_type(terms)
    values = None if kind is None else native_values(terms, kind)
    return column if values is None else values.take(encoded.indices)


@dataclass(frozen=True)
class Solutions(Answer):
    """The solutions of a SELECT: one column per projected variable."""

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order of the query."""
        return tuple(self.table.column_names)

    def __repr__(self) -> str:
        return f"<Solutions: {len(self):,} of {', '.join('?' + v for v in self.variables)}>"

    def to_rdflib(self) -> Result:
        """The solutions as an rdflib result, as `graph.query` returns it.

        >>> [row] = Solutions(pa.table({"x": ["<urn:a>"]})).to_rdflib()
        >>> row.x
        rdflib.term.URIRef('urn:a')
        """
        require_rdflib()
        from rdflib.query import Result
        from rdflib.term import Variable

        names = [Variable(name) for name in self.variables]
        result = Result("SELECT")
        result.vars = names
        result.bindings = [
            {
                name: cast("Identifier", term)
                for name, term in zip(names, row, strict=True)
                if term is not None
            }
            for row in rdflib_rows(self.texts())
        ]
        return result


@dataclass(frozen=True)
class TripleTable(Answer):
    """The triples of a CONSTRUCT or DESCRIBE: the columns subject, predicate and object."""

    def __repr__(self) -> str:
        return f"<TripleTable: {len(self):,} triples>"

    def to_rdflib(self) -> rdflib.Graph:
        """The triples as an rdflib graph, without those whose subject is a literal.

        >>> table = pa.table({"subject": ["<urn:s>"], "predicate": ["<urn:p>"], "object": ['"o"']})
        >>> len(TripleTable(table).to_rdflib())
        1
        """
        require_rdflib()
        return graph_of(self.texts(), self.prefixes)

    def serialize(self, format: str = "turtle") -> str | bytes:
        """Serialize the triples as RDF (`turtle`, `nt`, `xml`, `json-ld`, …) or as a table.

        >>> table = pa.table({"subject": ["<urn:s>"], "predicate": ["<urn:p>"], "object": ['"o"']})
        >>> TripleTable(table).serialize()
        '<urn:s> <urn:p> "o" .\\n'
        """
        return super().serialize(format)

    def _is_trivial(self, row: tuple[Constant | None, ...]) -> bool:
        return is_trivial_triple(row)
