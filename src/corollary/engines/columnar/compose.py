"""P(x, z) :- Q(x, y), R(y, z): composition of binary relations without materializing columns.

One atom is scanned subject by subject, the other is read through an offset index; marks over the
objects drop duplicates on the fly. If the delta is on the right, the composition runs backwards, so
that the work is proportional to the delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from corollary.core.compile import CompiledRule
from corollary.engines.columnar import kernels
from corollary.engines.columnar.bindings import pieces
from corollary.engines.columnar.collector import HeadCollector
from corollary.engines.columnar.relation import Relation, Run, as_set
from corollary.engines.columnar.tuning import tuning
from corollary.lang.stratify import Predicate

# An offset index pays off if the other side has at least 1/8 as many keys as the run, and 1/64 as
# many keys as there are ids.
_KEYS_PER_PROBE, _IDS_PER_PROBE = 8, 64


@lru_cache(maxsize=10_000)
def orientation(rule: CompiledRule) -> tuple[int, bool, bool] | None:
    """Which atom holds the head's subject, and whether it and the other one are transposed."""
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
    rule: CompiledRule, atoms: Iterable[Relation], first: int | None, collector: HeadCollector
) -> bool:
    """Evaluate a composition; False if the rule has another form."""
    orientations = orientation(rule)
    if orientations is None:
        return False
    left, left_transposed, right_transposed = orientations
    relations = tuple(atoms)
    lefts = relations[left].live_runs()
    rights = relations[1 - left].live_runs()
    backwards = first is not None and first != left
    driving, driven = (rights, lefts) if backwards else (lefts, rights)
    size = sum(map(len, driving))
    # forwards: (x, y), (y, z) → (x, z); backwards: (z, y), (y, x) → (z, x)
    outer = [
        oriented(run, right_transposed != backwards if backwards else left_transposed)
        for run in driving
    ]
    inner = [
        oriented(run, left_transposed != backwards if backwards else right_transposed)
        for run in driven
    ]
    for right in inner:
        if not len(right):
            continue
        if right._offsets is None and size < max(
            len(right) // _KEYS_PER_PROBE, _largest_subject(right) // _IDS_PER_PROBE
        ):
            for run in outer:
                keys = kernels.compose_by_search(run.keys, right.keys)
                result = Run(as_set(keys))
                collector.add_run(
                    rule.head.predicate, 2, result.transposed if backwards else result, len(keys)
                )
            continue
        stamps = np.zeros(kernels.largest_low(right.keys) + 1, np.int64)
        epoch = 0
        for run in outer:
            sizes = kernels.fan_out(run.keys, right.offsets())
            for start, stop in pieces(sizes, tuning.join_piece_rows):
                total = int(sizes[start:stop].sum())
                purpose = f"a composition with {int(sizes.sum()):,} instances, {total:,} at a time,"
                collector.space.budget.reserve(16 * total, purpose)
                keys, instances, epoch = kernels.compose(
                    run.keys[start:stop], right.offsets(), right.keys, stamps, epoch
                )
                kernels.sort_groups(keys)
                result = Run(keys).transposed if backwards else Run(keys)
                collector.add_run(rule.head.predicate, 2, result, instances)
    return True


def _largest_subject(run: Run) -> int:
    return int(run.keys[-1] >> np.uint64(32)) if len(run) else 0


def oriented(run: Run, transposed: bool) -> Run:
    """The run, transposed if `transposed`."""
    return run.transposed if transposed else run


@dataclass(frozen=True)
class Composition:
    """A composition: the predicates of its head and of its left and right atoms."""

    head: Predicate
    left: Predicate
    right: Predicate
    left_transposed: bool
    right_transposed: bool


def as_compositions(rules: Sequence[CompiledRule]) -> list[Composition] | None:
    """Recognize compositions; None if a rule has another form."""
    heads = {rule.head.predicate for rule in rules}
    compositions = []
    for rule in rules:
        orientations = orientation(rule)
        if orientations is None or rule.negated or rule.conditions or rule.groupings:
            return None
        left, left_transposed, right_transposed = orientations
        composition = Composition(
            rule.head.predicate,
            rule.body[left].predicate,
            rule.body[1 - left].predicate,
            left_transposed,
            right_transposed,
        )
        if (left_transposed and composition.left in heads) or (
            right_transposed and composition.right in heads
        ):
            return None
        compositions.append(composition)
    return compositions


@dataclass(frozen=True)
class FixpointResult:
    """The facts derived by evaluating a fixpoint at once."""

    relations: dict[Predicate, Relation]
    instances: int
    rounds: int
