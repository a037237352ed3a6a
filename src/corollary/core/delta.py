"""Semi-naive evaluation plans: which set of facts each atom of a rule reads.

In Π[Ip, In : Δp, Δn], an instance that uses a changed fact is evaluated under exactly one plan:
that of its first atom in Δp or, if no atom is in Δp, of its first negated atom that matches in Δn.
Plans depend on the number of atoms only; an engine maps their operands to sets of facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import combinations


class Operand(Enum):
    """A set of facts that an atom reads."""

    FACTS = "Ip"
    OLD = "Ip − Δp"
    DELTA = "Δp"
    ABSENT = "In"
    WIDE_ABSENT = "In ∪ Δn"
    REMOVED = "Δn"
    UNPROVED = "facts without a proof yet"

    __hash__ = object.__hash__  # that of Enum is interpreted, and every atom of a rule looks one up


@dataclass(frozen=True)
class DeltaPlan:
    """The operand of every atom of a rule."""

    body: tuple[Operand, ...]
    negated: tuple[Operand, ...]  # which each negated atom must not match
    delta: int | None = None  # the atom that reads Δp
    removed: int | None = None  # the negated atom that must match in Δn
    unproved: tuple[int, ...] = ()  # the atoms of the body that must not match in Ip


@lru_cache
def full_plan(body: int, negated: int) -> DeltaPlan:
    """The plan that covers all instances of a rule, given its numbers of atoms and negated atoms.

    >>> [operand.value for operand in full_plan(2, 1).body]
    ['Ip', 'Ip']
    """
    return DeltaPlan((Operand.FACTS,) * body, (Operand.ABSENT,) * negated)


@lru_cache
def delta_plans(body: int, negated: int) -> Sequence[DeltaPlan]:
    """The plans that cover the instances with an atom in Δp: one for each position of the first.

    >>> [[operand.value for operand in plan.body] for plan in delta_plans(2, 0)]
    [['Δp', 'Ip'], ['Ip − Δp', 'Δp']]
    """
    return tuple(
        DeltaPlan(
            (*(Operand.OLD,) * at, Operand.DELTA, *(Operand.FACTS,) * (body - at - 1)),
            (Operand.ABSENT,) * negated,
            delta=at,
        )
        for at in range(body)
    )


@lru_cache
def negative_delta_plans(body: int, negated: int) -> Sequence[DeltaPlan]:
    """The plans that cover the other instances in which a negated atom matches in Δn.

    >>> [[operand.value for operand in plan.negated] for plan in negative_delta_plans(1, 2)]
    [['In', 'In'], ['In ∪ Δn', 'In']]
    """
    return tuple(
        DeltaPlan(
            (Operand.OLD,) * body,
            (*(Operand.WIDE_ABSENT,) * at, *(Operand.ABSENT,) * (negated - at)),
            removed=at,
        )
        for at in range(negated)
    )


def unproved_plans(
    body: int, negated: int, positions: Sequence[int], *, several: bool
) -> list[DeltaPlan]:
    """The plans in which exactly one of these atoms reads unproved facts; two or more if `several`.

    >>> [plan.unproved for plan in unproved_plans(3, 0, [0, 1, 2], several=True)]
    [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    """
    return [
        DeltaPlan(
            tuple(Operand.UNPROVED if at in chosen else Operand.FACTS for at in range(body)),
            (Operand.ABSENT,) * negated,
            unproved=chosen,
        )
        for size in (range(2, len(positions) + 1) if several else (1,))
        for chosen in combinations(positions, size)
    ]
