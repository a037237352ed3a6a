"""Convert sets of facts to Arrow tables of terms as text, with an `explicit` flag.

Terms of relations are cells (`files.cells`): `3` is a number, `"3"` a string, `<…>` an IRI. Terms
of triples are in N-Triples syntax. Both forms read back as the same term.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.engine import F, Facts
from corollary.core.match import triple_columns
from corollary.core.tables import argument_columns
from corollary.files.cells import write_cell
from corollary.files.native import column_type, declared_array, native_array
from corollary.lang.declarations import EXPLICIT, Relation
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TRIPLE_COLUMNS, TRIPLES_NAME, is_auxiliary
from corollary.rdf.triples import Triples

_NO_TERM = -1

Numbers = npt.NDArray[np.int64]


def relation_table(
    explicit: Facts, derived: Facts, names: Sequence[str], dictionary: Dictionary
) -> pa.Table:
    """Convert the facts of one relation, or triples, to a table of terms and the flag `explicit`.

    Terms of triples are in N-Triples syntax, so that `rdf.formats` can read the table.
    """
    _, columns = _columns([explicit, derived], len(names), dictionary)
    cells = texts_of(columns, dictionary, are_triples=names == TRIPLE_COLUMNS)
    return pa.table(dict(zip(names, cells, strict=True)) | {"explicit": _flags(explicit, derived)})


def native_table(
    explicit: Facts,
    derived: Facts,
    names: Sequence[str],
    dictionary: Dictionary,
    declared: Relation | None = None,
) -> pa.Table:
    """Convert the facts of one relation, or triples, to a table of native types.

    A column has its declared type, or the type of all of its terms; other terms are texts.
    """
    _, ids = _columns([explicit, derived], len(names), dictionary)
    are_triples = names == TRIPLE_COLUMNS
    columns = {}
    for place, (name, column) in enumerate(zip(names, ids, strict=True)):
        distinct, indices = np.unique(column, return_inverse=True)
        terms = dictionary.terms(distinct.tolist())
        if declared is not None:
            columns[name] = declared_array(terms, indices, declared, place)
            continue
        kind = column_type(terms)
        array = None if kind is None else native_array(terms, indices, kind)
        if array is None:
            [array] = texts_of([column], dictionary, are_triples=are_triples)
        columns[name] = array
    return pa.table(columns | {EXPLICIT: _flags(explicit, derived)})


def mixed_table(explicit: Facts, derived: Facts, dictionary: Dictionary) -> pa.Table:
    """Convert facts of any relations: the relation, the terms padded with nulls, and the flag."""
    predicates = [*explicit.predicates(), *derived.predicates()]
    width = max((_width(predicate, explicit, derived) for predicate in predicates), default=0)
    relations, columns = _columns([explicit, derived], width, dictionary)
    cells = {f"arg{number}": cells_of(column, dictionary) for number, column in enumerate(columns)}
    names = pa.array(relations, pa.string())
    return pa.table({"relation": names} | cells | {"explicit": _flags(explicit, derived)})


def columns_of(facts: Facts, width: int, dictionary: Dictionary) -> list[Numbers]:
    """Return the arguments of facts of one relation, or of triples, as columns of ids."""
    return _columns([facts], width, dictionary)[1]


def triples_of(facts: Facts, dictionary: Dictionary) -> Triples:
    """Return the triples among facts as columns of ids."""
    predicates = [p for p in facts.predicates() if p.relation == TRIPLE]
    return Triples(*triple_columns(facts, predicates, dictionary))


def results_of(facts: F) -> F:
    """Drop the facts of auxiliary relations, which are not results."""
    hidden = [predicate for predicate in facts.predicates() if is_auxiliary(predicate.relation)]
    return facts.without(hidden) if hidden else facts


def split(facts: F, explicit: F) -> tuple[F, F]:
    """Split facts into explicit and derived ones."""
    own = facts.intersection(explicit)
    return own, facts.difference(own)


def _columns(
    sets: Sequence[Facts], width: int, dictionary: Dictionary
) -> tuple[list[str], list[Numbers]]:
    """Return the relation of each fact, and its arguments by position; -1 pads missing ones."""
    relations: list[str] = []
    parts: list[list[Numbers]] = [[np.zeros(0, np.int64)] for _ in range(width)]
    for facts in sets:
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            triple = predicate.relation == TRIPLE
            relations += [TRIPLES_NAME if triple else predicate.relation] * len(rows)
            columns = argument_columns(predicate, rows, dictionary)
            missing = np.full(len(rows), _NO_TERM, np.int64)
            for number, part in enumerate(parts):
                part.append(columns[number].astype(np.int64) if number < len(columns) else missing)
    return relations, [np.concatenate(part) for part in parts]


def _width(predicate: Predicate, *sets: Facts) -> int:
    if predicate.relation == TRIPLE:
        return 3
    return max(int(facts.rows(predicate).shape[1]) for facts in sets)


def texts_of(
    columns: Sequence[npt.NDArray[np.integer]], dictionary: Dictionary, *, are_triples: bool
) -> list[pa.Array]:
    """Format columns of ids: in N-Triples syntax for triples, as cells for other relations."""
    return [dictionary.texts(c) if are_triples else cells_of(c, dictionary) for c in columns]


def cells_of(ids: npt.NDArray[np.integer], dictionary: Dictionary) -> pa.Array:
    """Format terms as cells; -1 stands for no term."""
    distinct, places = np.unique(ids, return_inverse=True)
    known = distinct != _NO_TERM
    terms = dictionary.terms(distinct[known].tolist())
    nothing: list[str | None] = [None] * int((~known).sum())
    texts = pa.array([*nothing, *map(write_cell, terms)], pa.string())
    return texts.take(pa.array(places))


def _flags(explicit: Facts, derived: Facts) -> pa.Array:
    return pa.array(np.arange(len(explicit) + len(derived)) < len(explicit))
