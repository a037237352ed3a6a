"""Readings: the relations that the atoms of a rule read under a plan of `core.delta`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from corollary.core.compile import CompiledRule, Pattern
from corollary.core.delta import (
    DeltaPlan,
    Operand,
    delta_plans,
    full_plan,
    negative_delta_plans,
    unproved_plans,
)
from corollary.engines.columnar.bindings import JoinAtom
from corollary.engines.columnar.collector import HeadCollector
from corollary.engines.columnar.compose import orientation
from corollary.engines.columnar.facts import ColumnarFacts, PatternSource
from corollary.engines.columnar.join import starting_atom
from corollary.engines.columnar.relation import Relation
from corollary.engines.columnar.semijoin import pair_atom
from corollary.engines.columnar.tuning import tuning

Operands = Mapping[Operand, PatternSource]


@dataclass(frozen=True)
class Reading:
    """The facts that each atom of a rule reads, and the position of the delta atom."""

    atoms: tuple[Relation, ...]
    absent: tuple[PatternSource, ...]  # for each negated atom, the facts it must not match
    present: tuple[tuple[Pattern, PatternSource], ...] = ()
    first: int | None = None


Job = tuple[CompiledRule, Reading]


def independent(rule: CompiledRule) -> bool:
    """Test whether the rule may run in parallel with others: it assigns no row or term numbers."""
    patterns = (rule.head, *rule.body, *rule.negated)
    return (
        not rule.groupings
        and all(not p.wide and len(p.arguments) <= 2 for p in patterns)
        and not rule.computes
    )


def split(job: Job, parts: int) -> list[Job]:
    """Split a job into parts over slices of its first atom."""
    rule, reading = job
    if len(rule.body) < 2 or orientation(rule) is not None or not independent(rule):
        return [job]
    sources = [JoinAtom(p.arguments, r) for p, r in zip(rule.body, reading.atoms, strict=True)]
    at = starting_atom(sources, reading.first)
    if at == pair_atom(rule):  # a semi-join runs in parallel itself
        return [job]
    relation = reading.atoms[at]
    if len(relation) < tuning.parallel_atom_facts_minimum:
        return [job]
    first = at if reading.first is not None else None
    before, after = reading.atoms[:at], reading.atoms[at + 1 :]
    return [
        (rule, replace(reading, atoms=(*before, part, *after), first=first))
        for part in relation.sliced(parts)
    ]


def full_reading(rule: CompiledRule, facts: ColumnarFacts, absent: ColumnarFacts) -> Reading:
    """Return the reading that covers all instances."""
    plan = full_plan(len(rule.body), len(rule.negated))
    return _reading(rule, plan, {Operand.FACTS: facts, Operand.ABSENT: absent})


def delta_readings(rule: CompiledRule, operands: Operands) -> Iterator[Reading]:
    """Yield readings such that each instance that uses a changed fact belongs to exactly one."""
    sizes = len(rule.body), len(rule.negated)
    delta = operands[Operand.DELTA]
    for plan, pattern in zip(delta_plans(*sizes), rule.body, strict=True):
        if delta.relation(pattern).runs:
            yield _reading(rule, plan, operands)
    removed = operands.get(Operand.REMOVED)
    if removed is not None:
        for plan, pattern in zip(negative_delta_plans(*sizes), rule.negated, strict=True):
            if removed.relation(pattern).runs:
                yield _reading(rule, plan, operands)


def unproved_readings(
    rule: CompiledRule, within: ColumnarFacts, unproved: ColumnarFacts, *, several: bool
) -> Iterator[tuple[tuple[Relation, ...], list[JoinAtom]]]:
    """Yield the relations of the body in which one atom (or several) reads `unproved`.

    Each comes with the atoms that must not match: the same atoms, read from `within`.
    """
    positions = [at for at, pattern in enumerate(rule.body) if unproved.relation(pattern).runs]
    operands = {Operand.FACTS: within, Operand.UNPROVED: unproved}
    for plan in unproved_plans(len(rule.body), 0, positions, several=several):
        atoms = tuple(operands[o].relation(p) for o, p in zip(plan.body, rule.body, strict=True))
        patterns = (rule.body[at] for at in plan.unproved)
        yield atoms, [JoinAtom(p.arguments, within.relation(p)) for p in patterns]


def _reading(rule: CompiledRule, plan: DeltaPlan, operands: Operands) -> Reading:
    return Reading(
        tuple([operands[o].relation(p) for o, p in zip(plan.body, rule.body, strict=True)]),
        tuple([operands[o] for o in plan.negated]),
        () if plan.removed is None else ((rule.negated[plan.removed], operands[Operand.REMOVED]),),
        plan.delta,
    )


def rename_into(rule: CompiledRule, atoms: tuple[Relation, ...], collector: HeadCollector) -> bool:
    """Evaluate a rule that renames, transposes or projects one relation; False for other rules.

    P(x, y) :- Q(x, y), P(x, y) :- Q(y, x), P(x) :- Q(x, y), P(y) :- Q(x, y), P(x) :- Q(x).
    """
    if len(rule.body) != 1 or rule.head.wide or rule.body[0].wide:
        return False
    [relation] = atoms
    body, head = rule.body[0].arguments, rule.head.arguments
    if len(set(body)) < len(body) or min(body, default=-1) < 0 or not 1 <= len(body) <= 2:
        return False
    if not head or head not in (body, body[::-1], body[:1], body[1:]):
        return False
    for run in relation.live_runs():
        if len(body) == 2:
            collector.add_pairs(rule.head, body, run)
        else:
            collector.add_run(rule.head.predicate, 1, run, len(run))
    return True
