"""P(x, z) :- Q(x, y), R(y, z): composition of binary relations without enumerating it in columns.

One atom is read subject by subject, the other by a table of offsets; marks over the objects drop
repetitions while deriving. With the delta on the right the same is done backwards, so that the
work follows the delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from corollary.core.compile import CompiledRule
from corollary.engines.columnar import kernels
from corollary.engines.columnar.join import pieces
from corollary.engines.columnar.relation import Relation, Run, as_set
from corollary.engines.columnar.sink import Sink
from corollary.engines.columnar.tuning import tuning
from corollary.lang.stratify import Predicate

# Offsets of a run pay if the other side has at least 1/8 as many keys, and 1/64 as many keys as
# there are ids.
_FEW, _SPARSE = 8, 64


@lru_cache(maxsize=10_000)
def orientation(rule: CompiledRule) -> tuple[int, bool, bool] | None:
    """Which atom holds the head's subject, and whether that and the other one are exchanged."""
    if len(rule.body) != 2 or rule.head.wide or any(p.wide for p in rule.body):
        return None
    head = rule.head.arguments
    if len(head) != 2 or head[0] == head[1] or min(head) < 0:
        return None
    for left in (0, 1):
        first, second = rule.body[left].arguments, rule.body[1 - left].arguments
        if len(first) != 2 or len(second) != 2 or min(*first, *second) < 0:
            return None
        shared = set(first) & set(second)
        if len(shared) != 1 or shared & set(head):
            return None
        [y] = shared
        if set(first) == {head[0], y} and set(second) == {y, head[1]} and y not in head:
            if first[0] == first[1] or second[0] == second[1]:
                return None
            return left, first[0] == y, second[1] == y
    return None


def compose_into(
    rule: CompiledRule, atoms: Iterable[Relation], first: int | None, sink: Sink
) -> bool:
    """Derive a composition into the sink; False if the rule is none."""
    shape = orientation(rule)
    if shape is None:
        return False
    left, left_swapped, right_swapped = shape
    relations = tuple(atoms)
    lefts = relations[left].alive()
    rights = relations[1 - left].alive()
    backwards = first is not None and first != left
    driving, driven = (rights, lefts) if backwards else (lefts, rights)
    size = sum(map(len, driving))
    # forwards (x, y) with (y, z) gives (x, z); backwards (z, y) with (y, x) gives (z, x)
    outer = [
        turned(run, right_swapped != backwards if backwards else left_swapped) for run in driving
    ]
    inner = [
        turned(run, left_swapped != backwards if backwards else right_swapped) for run in driven
    ]
    for right in inner:
        if not len(right):
            continue
        if right._offsets is None and max(len(right) // _FEW, _top(right) // _SPARSE) > size:
            for run in outer:
                keys = kernels.compose_few(run.keys, right.keys)
                result = Run(as_set(keys))
                sink.add_run(
                    rule.head.predicate, 2, result.swapped if backwards else result, len(keys)
                )
            continue
        stamps = np.zeros(kernels.largest_low(right.keys) + 1, np.int64)
        epoch = 0
        for run in outer:
            sizes = kernels.fan_out(run.keys, right.offsets())
            for start, stop in pieces(sizes, tuning.join_piece_rows):
                total = int(sizes[start:stop].sum())
                purpose = f"a composition with {int(sizes.sum()):,} instances, {total:,} at a time,"
                sink.space.budget.reserve(16 * total, purpose)
                keys, instances, epoch = kernels.compose(
                    run.keys[start:stop], right.offsets(), right.keys, stamps, epoch
                )
                kernels.sort_groups(keys)
                result = Run(keys).swapped if backwards else Run(keys)
                sink.add_run(rule.head.predicate, 2, result, instances)
    return True


def _top(run: Run) -> int:
    """A bound for the ids of a run's subjects."""
    return int(run.keys[-1] >> np.uint64(32)) if len(run) else 0


def turned(run: Run, swapped: bool) -> Run:
    """The run, with subject and object exchanged if asked for."""
    return run.swapped if swapped else run


@dataclass(frozen=True)
class Shape:
    """A composition: the predicates of its head and of its left and right atoms, as turned."""

    head: Predicate
    left: Predicate
    right: Predicate
    left_swapped: bool
    right_swapped: bool


def shapes(rules: Sequence[CompiledRule]) -> list[Shape] | None:
    """The rules as compositions, None if one is something else."""
    heads = {rule.head.predicate for rule in rules}
    found = []
    for rule in rules:
        turn = orientation(rule)
        if turn is None or rule.negated or rule.conditions or rule.groupings:
            return None
        left, left_swapped, right_swapped = turn
        shape = Shape(
            rule.head.predicate,
            rule.body[left].predicate,
            rule.body[1 - left].predicate,
            left_swapped,
            right_swapped,
        )
        if (left_swapped and shape.left in heads) or (right_swapped and shape.right in heads):
            return None
        found.append(shape)
    return found


@dataclass(frozen=True)
class Finished:
    """What finishing a closure at once has found."""

    relations: dict[Predicate, Relation]
    instances: int
    rounds: int
