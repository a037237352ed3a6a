"""The facts of a version as arrays, for an engine in process: one sorted array a predicate.

A *label* says which facts belong together: those of a relation, the triples of a property, the
members of a class. What is in it are keys (the member, or subject << 32 | object), or rows of ids
where there are more than two arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.store.layout import TRIPLES
from corollary.store.rows import NO_TERM, columns_of, relation_codes

Values = npt.NDArray[np.uint64] | npt.NDArray[np.uint32]
NONE = -1
_HALF = np.uint64(32)


class Label(NamedTuple):
    """A relation, or triples with a property, or with a class as well."""

    relation: str
    property: int = NONE
    member_of: int = NONE


class Part(NamedTuple):
    """The facts of a label: keys in order for one or two arguments, else rows of ids."""

    arity: int
    values: Values


class Columns(NamedTuple):
    """All facts and the explicit ones, by label."""

    facts: Mapping[Label, Part]
    explicit: Mapping[Label, Part]


def columns(rows: pa.Table, type_id: int | None) -> Columns:
    """Rows of facts, one for each, as arrays; `type_id` is that of rdf:type.

    >>> rows = {"relation": ["p", "triples"], "arg0": [1, 7], "arg1": [2, 8], "arg2": [None, 9]}
    >>> found = columns(pa.table(rows | {"explicit": [True, False]}), 8)
    >>> found.facts[Label("triples", 8, 9)].values, found.explicit[Label("p")].values
    (array([7], dtype=uint64), array([4294967298], dtype=uint64))
    """
    flags = rows["explicit"].to_numpy(zero_copy_only=False)
    facts: dict[Label, Part] = {}
    explicit: dict[Label, Part] = {}
    for label, arity, found, places in _split(rows, type_id):
        own = flags[places]
        facts[label] = whole = Part(arity, _sorted(arity, found))

        if own.all():
            explicit[label] = whole
        elif own.any():
            explicit[label] = Part(arity, _sorted(arity, [column[own] for column in found]))
    return Columns(facts, explicit)


def _split(
    rows: pa.Table, type_id: int | None
) -> Iterator[tuple[Label, int, list[npt.NDArray[np.int64]], npt.NDArray[np.int64]]]:
    """Label, number of arguments, columns, and the places of their rows."""
    codes, names = relation_codes(rows)
    every = columns_of(rows)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for number, name in enumerate(names):
        places = order[bounds[number] : bounds[number + 1]]
        if name != TRIPLES:
            arity = sum(bool(column[places[0]] != NO_TERM) for column in every)
            yield Label(name), arity, [column[places] for column in every[:arity]], places
            continue
        subject, property_, object_ = (column[places] for column in every[:3])
        for value, some in _groups(property_):
            if value != type_id:
                yield Label(name, value), 2, [subject[some], object_[some]], places[some]
                continue
            for class_, members in _groups(object_[some]):
                inner = some[members]
                yield Label(name, value, class_), 1, [subject[inner]], places[inner]


def _groups(column: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    order = np.argsort(column, kind="stable")  # of files in order: one pass
    ordered = column[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    for start, part in zip(starts, np.split(order, starts[1:]), strict=True):
        yield int(ordered[start]), part


def _sorted(arity: int, found: list[npt.NDArray[np.int64]]) -> Values:
    if arity == 0:
        return np.zeros(1, np.uint64)  # the only fact that there may be
    if arity == 1:
        return np.sort(found[0].astype(np.uint64))
    if arity == 2:
        return np.sort((found[0].astype(np.uint64) << _HALF) | found[1].astype(np.uint64))
    stacked = np.stack(found, axis=1).astype(np.uint32)
    return stacked[np.lexsort(stacked.T[::-1])]
