"""Axioms and imports among inserted facts that have no effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.notices import Notices
from corollary.core.tables import Tables
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE
from corollary.rdf.vocabulary import (
    IMPORTS,
    ONTOLOGY,
    note_imports,
    note_unread,
    vocabulary_of,
)

_IMPORTS = Predicate(TRIPLE, IMPORTS)
_ONTOLOGIES = Predicate(TRIPLE, TYPE, ONTOLOGY)


def note_axioms(
    requests: Iterable[tuple[bool, Tables]],
    program: Program,
    known: Facts | None,
    dictionary: Dictionary,
    notices: Notices,
    *,
    found: Collection[str] = (),
) -> None:
    """Report axioms that no rule reads, and imports of missing documents.

    `known` are the facts before the insertion, and the documents of the imports `found` were read.
    """
    counts: dict[str, int] = {}
    imported: list[str] = []
    ontologies: list[str] = []
    for inserts, tables in requests:
        if not inserts:
            continue
        for term, count in vocabulary_of(tables).items():
            counts[term] = counts.get(term, 0) + count
        imported += _texts(tables, _IMPORTS, 1, dictionary)
        ontologies += _texts(tables, _ONTOLOGIES, 0, dictionary)
    note_unread(counts, program, notices)
    if imported:
        if known is not None and _ONTOLOGIES in known.predicates():
            rows = {_ONTOLOGIES: known.rows(_ONTOLOGIES)}
            ontologies += _texts(rows, _ONTOLOGIES, 0, dictionary)
        note_imports(imported, [*ontologies, *(f"<{iri}>" for iri in found)], notices)


def _texts(
    tables: Tables, predicate: Predicate, position: int, dictionary: Dictionary
) -> list[str]:
    """Return the distinct terms of a predicate at a position."""
    if predicate not in tables:
        return []
    texts: list[str] = dictionary.texts(np.unique(tables[predicate][:, position])).to_pylist()
    return texts
