"""Folders of facts: tables of relations by `files`, N-Triples by `rdf`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from corollary.core.compile import TRIPLES
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.core.files import replace_file
from corollary.files.facts import read_facts, read_input, triple_files
from corollary.files.shapes import MalformedRows
from corollary.files.tables import Column, Table
from corollary.files.write import write_facts, write_relation
from corollary.knowledge_base.results import triples_of
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, Atom
from corollary.rdf import formats

GENERALIZED = "triples.generalized"


def read_inputs(
    program: Program,
    *,
    limit_input_bytes: int | None = None,
    rows: MalformedRows | None = None,
) -> list[Table]:
    """Read the files that a program names by `@input`."""
    return [
        read_input(one, program, limit_input_bytes=limit_input_bytes, rows=rows)
        for one in program.declarations.inputs
    ]


def read_folder(
    folder: str | Path,
    program: Program,
    *,
    limit_input_bytes: int | None = None,
    rows: MalformedRows | None = None,
) -> list[Table]:
    """Read the facts of a folder: tables for the relations of a program, and its triples.

    Blank nodes keep their labels: `_:b` is the same in all files of the folder, and in the program.
    """
    tables = read_facts(folder, program, limit_input_bytes=limit_input_bytes, rows=rows)
    paths = triple_files(folder) if program.has_triples else []
    if paths:
        dictionary = Dictionary()
        triples = formats.read(
            paths, dictionary, keep_labels=True, limit_input_bytes=limit_input_bytes
        )
        tables.append(Table(TRIPLE, [_column(ids, dictionary) for ids in triples.columns]))
    return tables


def write_folder(
    folder: str | Path,
    program: Program,
    facts: Facts,
    dictionary: Dictionary,
    format_: str,
    only: frozenset[str] | None = None,
) -> int:
    """Write a file for each relation, and the triples sorted by their text.

    `only` chooses relations by name, and `triples`.

    Triples that are not valid RDF, because their subject is a literal or their property is not an
    IRI, go to a separate file. Returns their number.
    """
    tables = list(_tables(facts.without([TRIPLES]), dictionary))
    write_facts(folder, program, tables, format_=format_, only=only)
    if only is not None and TRIPLES_NAME not in only:
        return 0
    triples = triples_of(facts, dictionary).in_order(dictionary)
    is_rdf = triples.are_rdf(dictionary)
    for name, part in (
        ("triples.nt", triples.where(is_rdf)),
        (GENERALIZED, triples.where(~is_rdf)),
    ):
        path = Path(folder) / name
        # A file from an earlier run of a program about triples is truncated. Nothing is deleted, as
        # the folder may also be the input folder.
        if len(part) or (program.has_triples and path.exists()):
            replace_file(path, partial(formats.write, triples=part, dictionary=dictionary))
    return int((~is_rdf).sum())


def write_outputs(
    program: Program, facts: Facts, dictionary: Dictionary, only: frozenset[str] | None = None
) -> list[Path]:
    """Write the files that a program names by `@output`; returns their paths."""
    written = []
    tables = list(_tables(facts.without([TRIPLES]), dictionary))
    for one in program.declarations.outputs:
        if only is None or one.relation in only:
            own = [table for table in tables if table.relation == one.relation]
            write_relation(one.path, one.relation, own, program)
            written.append(one.path)
    return written


def _tables(facts: Facts, dictionary: Dictionary) -> Iterator[Table]:
    """Convert the facts of plain relations to tables of terms."""
    for predicate in facts.predicates():
        columns = [_column(ids, dictionary) for ids in facts.rows(predicate).T]
        if columns:
            yield Table(predicate.relation, columns)
        else:
            yield Table.of(predicate.relation, [Atom(predicate.relation, ())])


def _column(ids: Ids, dictionary: Dictionary) -> Column:
    # Marks instead of sorting: ids are dense.
    marks = np.zeros(len(dictionary), np.bool_)
    marks[ids] = True
    known = np.flatnonzero(marks)
    places = np.cumsum(marks, dtype=np.int64)
    places -= 1
    return Column(dictionary.terms(known.tolist()), places[ids])
