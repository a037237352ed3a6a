"""Readers of RDF, tables of facts, and rows of DataFrames, for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.notices import Notices
from corollary.core.tables import Tables, argument_columns, encode, joined
from corollary.core.terms import term_of
from corollary.errors import CorollaryError, InvalidInput
from corollary.files.cells import write_cell
from corollary.knowledge_base.data import DataReader
from corollary.knowledge_base.graphs import into_graph
from corollary.lang.declarations import NO_DECLARATIONS, Declarations
from corollary.lang.program import Program
from corollary.lang.syntax import (
    QUAD_COLUMNS,
    TRIPLE,
    TRIPLE_COLUMNS,
    TRIPLES_NAME,
    TYPE,
    Variable,
)
from corollary.rdf.splits import Part, PartReader, Split
from corollary.rdf.vocabulary import vocabulary_of_columns

TABLE = "table"  # the format of splits that are tables of facts
RELATION = "predicate"  # the column of a DataFrame that names the relation


@dataclass(frozen=True)
class SourceReader(PartReader):
    """Reads RDF, and tables of relations with these arities and declarations."""

    arities: Mapping[str, int] = field(default_factory=dict)
    declarations: Declarations = NO_DECLARATIONS
    graphs: bool = True

    def files(self, splits: Sequence[Split]) -> Part:
        """Read the splits of files; tables are in separate groups."""
        if splits[0].format != TABLE:
            return super().files(splits)
        reader = self._reader()
        try:
            tables = [
                found
                for split in splits
                for found in reader.sources(
                    [split.path], limit_input_bytes=self.limit, on_error=self.on_error
                )
            ]
        except CorollaryError as error:
            return Part(pa.array([], pa.large_string()), {}, error=error, failed=0)
        found = self._placed([found for found in tables if not isinstance(found, Program)], reader)
        return _with_skipped(part_of(found, reader.dictionary, reader.notices), reader)

    def frame(self, table: pa.Table, name: str, scope: str = "") -> Part:
        """Read rows with subject, predicate and object, or with a relation and arg0, arg1, …"""
        if {*table.column_names} >= {*TRIPLE_COLUMNS}:
            names = [name for name in QUAD_COLUMNS if name in table.column_names]
            return super().frame(table.select(names), name, scope)
        reader = self._reader()
        try:
            parts = [
                reader.facts(rows, None if relation == TRIPLES_NAME else relation)
                for relation, rows in by_relation(table, name)
            ]
        except CorollaryError as error:
            return Part(pa.array([], pa.large_string()), {}, error=error, failed=0)
        return _with_skipped(part_of(self._placed(parts, reader), reader.dictionary), reader)

    def _placed(self, parts: Sequence[Tables], reader: DataReader) -> Tables:
        """Put triples into the graph, if there is one."""
        tables = joined(parts)
        return tables if self.graph is None else into_graph(tables, self.graph, reader.dictionary)

    def _reader(self) -> DataReader:
        return DataReader(Dictionary(), {}, self.arities, self.declarations, on_error=self.on_error)


def _with_skipped(part: Part, reader: DataReader) -> Part:
    samples = [(0, sample) for sample in reader.samples]
    return replace(part, skipped=reader.skipped, samples=samples)


def part_of(tables: Tables, dictionary: Dictionary, notices: Notices | None = None) -> Part:
    """Create a part from facts encoded by a dictionary that has no other terms."""
    found: dict[str, list[Sequence[Ids]]] = {}
    for predicate, rows in tables.items():
        name = TRIPLES_NAME if predicate.relation == TRIPLE else predicate.relation
        columns = argument_columns(predicate, rows, dictionary)
        if columns or len(rows):
            found.setdefault(name, []).append(columns)
    facts = {
        name: [np.concatenate(column) for column in zip(*parts, strict=True)]
        for name, parts in found.items()
    }
    vocabulary = vocabulary_of_columns(facts.get(TRIPLES_NAME, ()), dictionary)
    return Part(
        dictionary.texts_from(0), facts, notices=notices or Notices(), vocabulary=vocabulary
    )


def part_of_program(program: Program) -> Part:
    """Create a part from all constants of a program and its facts.

    Constants of rules are thus assigned ids before the rules run.
    """
    dictionary = Dictionary()
    dictionary.id(TYPE)
    for rule in (*program.rules, *program.constraints):
        compile_rule(rule, dictionary)
        for atom in (rule.head, *(atom for atom, _ in rule.atoms())):
            dictionary.encode(term for term in atom.terms if not isinstance(term, Variable))
    return part_of(encode(program.facts, dictionary), dictionary)


def cells(texts: pa.Array) -> pa.Array:
    """Convert texts of terms to cells of facts files."""
    return pa.array([write_cell(term_of(text)) for text in texts.to_pylist()], pa.string())


def by_relation(table: pa.Table, name: str) -> Iterable[tuple[str, pa.Table]]:
    """Group rows by relation, with one column per argument of the relation."""
    relation = table.column(RELATION)
    columns = [column for column in table.column_names if column != RELATION]
    for value in pc.unique(relation).to_pylist():
        if value is None:
            raise InvalidInput("E546", f"a row of {name} has no relation", file=name)
        rows = table.filter(pc.equal(relation, value)).select(columns)
        used = [column for column in columns if rows.column(column).null_count < len(rows)]
        if used != columns[: len(used)]:
            raise InvalidInput(
                "E546",
                f"rows of {value} in {name} have an argument after one that is missing",
                "arguments stand in arg0, arg1, …, and nulls after the last one",
                file=name,
            )
        chosen = rows.select(used)
        if value == TRIPLES_NAME:
            chosen = chosen.rename_columns(TRIPLE_COLUMNS)
        yield value, chosen
