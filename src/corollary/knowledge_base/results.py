"""Sets of facts as Arrow tables: their terms as texts, and whether facts are explicit.

Terms of relations are cells (`files.cells`): `3` is a number, `"3"` a string, `<…>` an IRI. Terms
of triples are written as N-Triples writes them. Either text reads back as the same term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.files.cells import write_cell
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, TYPE, is_auxiliary
from corollary.rdf.triples import Triples

_NO_TERM = -1
TRIPLE_COLUMNS = ("subject", "predicate", "object")

Numbers = npt.NDArray[np.int64]


def relation_table(
    explicit: Facts, derived: Facts, names: Sequence[str], dictionary: Dictionary
) -> pa.Table:
    """Facts of one relation, or triples: their terms, and whether they are explicit.

    Terms of triples are texts as N-Triples writes them, so that `rdf.formats` reads the table.
    """
    _, columns = _columns(explicit, derived, len(names), dictionary)
    write = _texts if names == TRIPLE_COLUMNS else cells_of
    cells = {name: write(column, dictionary) for name, column in zip(names, columns, strict=True)}
    return pa.table(cells | {"explicit": _flags(explicit, derived)})


def mixed_table(explicit: Facts, derived: Facts, dictionary: Dictionary) -> pa.Table:
    """Facts of any relations: the relation, the terms with nulls after the last, the flag."""
    predicates = [*explicit.predicates(), *derived.predicates()]
    width = max((_width(predicate, explicit, derived) for predicate in predicates), default=0)
    relations, columns = _columns(explicit, derived, width, dictionary)
    cells = {f"arg{number}": cells_of(column, dictionary) for number, column in enumerate(columns)}
    names = pa.array(relations, pa.string())
    return pa.table({"relation": names} | cells | {"explicit": _flags(explicit, derived)})


def columns_of(facts: Facts, width: int, dictionary: Dictionary) -> list[Numbers]:
    """The terms of facts of one relation, or of triples: ids, place by place."""
    parts: list[list[Numbers]] = [[np.zeros(0, np.int64)] for _ in range(width)]
    for predicate in facts.predicates():
        found = _places(predicate, facts.rows(predicate), dictionary)
        for part, column in zip(parts, found, strict=True):
            part.append(column)
    return [np.concatenate(part) for part in parts]


def triples_of(facts: Facts, dictionary: Dictionary) -> Triples:
    """The triples among facts, as columns of ids."""
    empty = np.zeros(0, np.uint32)
    parts = [[empty, empty, empty]]
    for predicate in facts.predicates():
        if predicate.relation == TRIPLE:
            places = _places(predicate, facts.rows(predicate), dictionary)
            parts.append([place.astype(np.uint32) for place in places])
    subject, property_, object_ = (
        np.concatenate([part[place] for part in parts]) for place in range(3)
    )
    return Triples(subject, property_, object_)


def results_of(facts: Any) -> Any:
    """The facts without those of auxiliary relations, which are no results."""
    hidden = [predicate for predicate in facts.predicates() if is_auxiliary(predicate.relation)]
    return facts.without(hidden) if hidden else facts


def _columns(
    explicit: Facts, derived: Facts, width: int, dictionary: Dictionary
) -> tuple[list[str], list[Numbers]]:
    """The relation of each fact, and its terms place by place."""
    relations: list[str] = []
    parts: list[list[Numbers]] = [[np.zeros(0, np.int64)] for _ in range(width)]
    for facts in (explicit, derived):
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            triple = predicate.relation == TRIPLE
            relations += [TRIPLES_NAME if triple else predicate.relation] * len(rows)
            found = _places(predicate, rows, dictionary)
            nothing = np.full(len(rows), _NO_TERM, np.int64)
            for number, part in enumerate(parts):
                part.append(found[number] if number < len(found) else nothing)
    return relations, [np.concatenate(part) for part in parts]


def _places(predicate: Predicate, rows: Ids, dictionary: Dictionary) -> list[Numbers]:
    columns = [rows[:, number].astype(np.int64) for number in range(rows.shape[1])]
    if predicate.relation == TRIPLE:
        assert predicate.property is not None, "triples are kept by property"
        labels = [predicate.property]
        if predicate.member_of is not None:
            labels = [TYPE, predicate.member_of]
        columns[1:1] = [np.full(len(rows), dictionary.id(term), np.int64) for term in labels]
    return columns


def _width(predicate: Predicate, *sets: Facts) -> int:
    if predicate.relation == TRIPLE:
        return 3
    return max(int(facts.rows(predicate).shape[1]) for facts in sets)


def _texts(ids: Numbers, dictionary: Dictionary) -> pa.Array:
    return dictionary.texts(ids)


def cells_of(ids: Numbers, dictionary: Dictionary) -> pa.Array:
    """Terms as cells; -1 is no term."""
    distinct, places = np.unique(ids, return_inverse=True)
    known = distinct != _NO_TERM
    terms = dictionary.terms(distinct[known].tolist())
    nothing: list[str | None] = [None] * int((~known).sum())
    texts = pa.array([*nothing, *map(write_cell, terms)], pa.string())
    return texts.take(pa.array(places))


def _flags(explicit: Facts, derived: Facts) -> pa.Array:
    return pa.array(np.arange(len(explicit) + len(derived)) < len(explicit))
