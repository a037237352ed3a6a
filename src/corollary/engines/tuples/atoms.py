"""Compiled lookups for an atom of a rule: a fact, or a group of an index.

Neither regards the classes that the atom skips; its candidates do (see `kernel`).
"""

from __future__ import annotations

from corollary.core.jit import compiled
from corollary.core.memory import load64
from corollary.engines.tuples import layout as at
from corollary.engines.tuples.tables import find_group, find_row


@compiled
def value_of(argument: int, values: int) -> int:
    """The value of an argument that is a constant or a bound variable."""
    return -1 - argument if argument < 0 else load64(values, argument)


@compiled
def find_ground_row(control: int, atom: int) -> int:
    """The number of the fact that an atom without free variables denotes, negative if unknown."""
    place = load64(control, at.ATOMS) + 8 * at.ATOM_WIDTH * atom
    values = load64(control, at.VALUES)
    return find_row(
        control,
        load64(place, 0),
        value_of(load64(place, 2), values),
        value_of(load64(place, 3), values),
        value_of(load64(place, 4), values),
    )


@compiled
def bound_arguments(control: int, atom: int, bound: int) -> int:
    """A bit mask of the arguments of an atom that are constants or bound variables."""
    place = load64(control, at.ATOMS) + 8 * at.ATOM_WIDTH * atom
    found = 0
    for position in range(load64(place, 1)):
        argument = load64(place, 2 + position)
        if argument < 0 or bound >> argument & 1:
            found |= 1 << position
    return found


@compiled
def index_for(control: int, relation: int, bound: int, choice: int) -> int:
    """One of up to two indexes for the bound arguments of a relation, negative if there is none."""
    choices = load64(control, at.CHOICES)
    return load64(choices, at.CHOICE_WIDTH * relation + 2 * bound + choice)


@compiled
def group_for(control: int, atom: int, index: int) -> int:
    """The group of an index that an atom reads, negative if there is none."""
    place = load64(control, at.ATOMS) + 8 * at.ATOM_WIDTH * atom
    indexes, values = load64(control, at.INDEXES), load64(control, at.VALUES)
    first = load64(indexes, at.INDEX_WIDTH * index)
    second = load64(indexes, at.INDEX_WIDTH * index + 1)
    key = 0
    if first >= 0:
        key = value_of(load64(place, 2 + first), values)
        if second >= 0:
            key = (key << 32) | value_of(load64(place, 2 + second), values)
    return find_group(control, index, key)
