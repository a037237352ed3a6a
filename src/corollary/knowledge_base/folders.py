"""Folders of facts: tables of relations by `files`, N-Triples by `rdf`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from corollary.core.dictionary import Dictionary, Ids
from corollary.files.facts import Column, Table, read_facts, triple_files
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE
from corollary.rdf import formats


def read_folder(
    folder: str | Path, program: Program, *, limit_input_bytes: int | None = None
) -> list[Table]:
    """The facts in a folder for the relations of a program, and for its triples.

    Blank nodes keep their labels: `_:b` is the same in all files of the folder, and in the program.
    """
    tables = read_facts(folder, program, limit_input_bytes=limit_input_bytes)
    paths = triple_files(folder) if program.has_triples else []
    if paths:
        dictionary = Dictionary()
        triples = formats.read(
            paths, dictionary, keep_labels=True, limit_input_bytes=limit_input_bytes
        )
        tables.append(Table(TRIPLE, [_column(ids, dictionary) for ids in triples.columns]))
    return tables


def _column(ids: Ids, dictionary: Dictionary) -> Column:
    known, indices = np.unique(ids, return_inverse=True)
    return Column(dictionary.terms(known.tolist()), indices)
