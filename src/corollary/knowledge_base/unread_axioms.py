"""Axioms and imports among inserted facts that have no effect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from corollary.core.dictionary import Dictionary
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
    known: Any | None,
    dictionary: Dictionary,
    notices: Notices,
) -> None:
    """Report axioms that no rule reads, and imports of documents that are not there.

    `known` are the facts before.
    """
    counts: dict[str, int] = {}
    imported: list[str] = []
    ontologies: list[str] = []
    for inserts, tables in requests:
        if not inserts:
            continue
        for term, count in vocabulary_of(tables).items():
            counts[term] = counts.get(term, 0) + count
        if _IMPORTS in tables:
            rows = np.unique(tables[_IMPORTS][:, 1])
            imported += dictionary.texts(rows.astype(np.uint32)).to_pylist()
        if _ONTOLOGIES in tables:
            rows = np.unique(tables[_ONTOLOGIES][:, 0])
            ontologies += dictionary.texts(rows.astype(np.uint32)).to_pylist()
    note_unread(counts, program, notices)
    if imported:
        if known is not None and _ONTOLOGIES in known.predicates():
            rows = np.unique(known.rows(_ONTOLOGIES)[:, 0])
            ontologies += dictionary.texts(rows.astype(np.uint32)).to_pylist()
        note_imports(imported, ontologies, notices)
