"""The facts of a version as arrays for the embedded engine: one sorted array per predicate.

A *label* identifies facts stored together: those of a relation, the triples of a property, or the
members of a class. They are keys (the member, or subject << 32 | object), or rows of ids if there
are more than two arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.ids import row_groups
from corollary.store.layout import TRIPLES
from corollary.store.rows import NO_TERM, columns_of, relation_codes

Values = npt.NDArray[np.uint64] | npt.NDArray[np.uint32]
NONE = -1
_HALF = np.uint64(32)


class Label(NamedTuple):
    """A relation, the triples of a property, or the members of a class."""

    relation: str
    property: int = NONE
    member_of: int = NONE


class Part(NamedTuple):
    """The facts of a label: sorted keys for up to two arguments, else sorted rows of ids."""

    arity: int
    values: Values


class Columns(NamedTuple):
    """All facts and the explicit ones, by label."""

    facts: Mapping[Label, Part]
    explicit: Mapping[Label, Part]


def columns(rows: pa.Table, type_id: int | None) -> Columns:
    """Convert rows, one per fact, to arrays; `type_id` is the id of rdf:type.

    >>> rows = {"relation": ["p", "triples"], "arg0": [1, 7], "arg1": [2, 8], "arg2": [None, 9]}
    >>> arrays = columns(pa.table(rows | {"explicit": [True, False]}), 8)
    >>> arrays.facts[Label("triples", 8, 9)].values, arrays.explicit[Label("p")].values
    (array([7], dtype=uint64), array([4294967298], dtype=uint64))
    """
    flags = rows["explicit"].to_numpy(zero_copy_only=False)
    facts: dict[Label, Part] = {}
    explicit: dict[Label, Part] = {}
    for label, arity, arguments, places in _split(rows, type_id):
        own = flags[places]
        facts[label] = whole = Part(arity, _sort(arity, arguments))
        if own.all():
            explicit[label] = whole
        elif own.any():
            explicit[label] = Part(arity, _sort(arity, [column[own] for column in arguments]))
    return Columns(facts, explicit)


def _split(
    rows: pa.Table, type_id: int | None
) -> Iterator[tuple[Label, int, list[npt.NDArray[np.int64]], npt.NDArray[np.int64]]]:
    """The label, arity, argument columns and row numbers of each group of facts."""
    codes, names = relation_codes(rows)
    every = columns_of(rows)
    for number, places in row_groups(codes):
        name = names[number]
        if name != TRIPLES:
            arity = sum(bool(column[places[0]] != NO_TERM) for column in every)
            yield Label(name), arity, [column[places] for column in every[:arity]], places
            continue
        subject, property_, object_ = (column[places] for column in every[:3])
        for value, some in row_groups(property_):
            if value != type_id:
                yield Label(name, value), 2, [subject[some], object_[some]], places[some]
                continue
            for class_, members in row_groups(object_[some]):
                inner = some[members]
                yield Label(name, value, class_), 1, [subject[inner]], places[inner]


def _sort(arity: int, arguments: list[npt.NDArray[np.int64]]) -> Values:
    if arity == 0:
        return np.zeros(1, np.uint64)  # the only possible fact
    if arity == 1:
        return np.sort(arguments[0].astype(np.uint64))
    if arity == 2:
        return np.sort((arguments[0].astype(np.uint64) << _HALF) | arguments[1].astype(np.uint64))
    stacked = np.stack(arguments, axis=1).astype(np.uint32)
    return stacked[np.lexsort(stacked.T[::-1])]
