"""Convert facts of an engine to rows of numbers, and back.

A row is the number of a relation and three arguments; a triple has its property and its object, or
class, among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE

Rows = npt.NDArray[np.uint32]


def rows_of(facts: Facts, relations: Mapping[str, int], dictionary: Dictionary) -> Rows:
    """The facts of these numbered relations, as rows sorted by relation, property and class.

    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> facts = ColumnarEngine(Dictionary()).facts({Predicate("e"): np.array([[7, 8]])})
    >>> rows_of(facts, {"e": 5}, Dictionary()).tolist()
    [[5, 7, 8, 0]]
    """
    # The label of a part: relation, property, class; -1 where there is none.
    parts: list[tuple[tuple[int, int, int], Ids]] = []
    type_id = dictionary.id(TYPE)
    for predicate in facts.predicates():
        relation = relations.get(predicate.relation)
        if relation is None:
            continue
        if predicate.relation != TRIPLE:
            label = (relation, -1, -1)
        elif predicate.member_of is not None:
            label = (relation, type_id, dictionary.id(predicate.member_of))
        else:
            assert predicate.property is not None, "facts are of narrow predicates"
            label = (relation, dictionary.id(predicate.property), -1)
        parts.append((label, facts.rows(predicate)))
    # Engines list predicates in any order, on which neither steps nor samples may depend.
    parts.sort(key=itemgetter(0))
    rows = np.zeros((sum(len(part) for _, part in parts), 4), np.uint32)
    place = 0
    for (relation, property_, class_), part in parts:
        block = rows[place : place + len(part)]
        place += len(part)
        block[:, 0] = relation
        if property_ < 0:
            block[:, 1 : 1 + part.shape[1]] = part
            continue
        block[:, 1] = part[:, 0]
        block[:, 2] = property_
        block[:, 3] = class_ if class_ >= 0 else part[:, 1]
    return rows


def tables_of(
    rows: Rows, names: Sequence[str], arities: Sequence[int], dictionary: Dictionary
) -> dict[Predicate, Ids]:
    """Rows as tables of narrow predicates.

    >>> rows = np.array([[1, 7, 8, 0]], np.uint32)
    >>> tables_of(rows, [TRIPLE, "e"], [3, 2], Dictionary())[Predicate("e")].tolist()
    [[7, 8]]
    """
    if not len(rows):
        return {}
    type_id = dictionary.id(TYPE)
    relation, label = rows[:, 0].astype(np.uint64), rows[:, 2].astype(np.uint64)
    triples = rows[:, 0] == 0
    types = triples & (rows[:, 2] == type_id)
    # One number for each narrow predicate: triples first, by property and class.
    keys = np.where(
        triples, label << np.uint64(1), (relation << np.uint64(34)) | np.uint64(1 << 33)
    )
    keys[types] = (rows[types, 3].astype(np.uint64) << np.uint64(1)) | np.uint64(1)
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_rows = keys[order], rows[order]
    starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    ends = np.r_[starts[1:], len(rows)]
    firsts = sorted_rows[starts]
    wanted = np.where(firsts[:, 2] == type_id, firsts[:, 3], firsts[:, 2])
    terms = dictionary.terms(wanted[firsts[:, 0] == 0].tolist())
    tables: dict[Predicate, Ids] = {}
    number = 0
    for start, end, (kind, _, property_, _) in zip(
        starts.tolist(), ends.tolist(), firsts.tolist(), strict=True
    ):
        block = sorted_rows[start:end]
        if kind:
            tables[Predicate(names[kind])] = block[:, 1 : 1 + arities[kind]]
            continue
        term = terms[number]
        number += 1
        if property_ == type_id:
            tables[Predicate(TRIPLE, TYPE, term)] = block[:, 1:2]
        else:
            tables[Predicate(TRIPLE, term)] = block[:, 1:4:2]
    return tables
