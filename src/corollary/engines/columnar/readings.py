"""Semi-naive evaluation plans: which facts each atom of a rule reads.

An instance that uses a fact of the delta is evaluated in exactly one reading, that of the first
atom in the delta: atoms to its left read the old facts, atoms to its right all facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from corollary.core.compile import CompiledRule, Pattern
from corollary.engines.columnar.collector import HeadCollector
from corollary.engines.columnar.compose import orientation
from corollary.engines.columnar.facts import ColumnarFacts, PatternSource
from corollary.engines.columnar.join import JoinAtom, starting_atom
from corollary.engines.columnar.relation import Relation
from corollary.engines.columnar.semijoin import pair_atom
from corollary.engines.columnar.tuning import tuning


@dataclass(frozen=True)
class Reading:
    """The facts that each atom of a rule reads, and the position of the delta atom."""

    atoms: tuple[Relation, ...]
    absent: tuple[ColumnarFacts, ...]  # for each negated atom, the facts it must not match
    present: tuple[tuple[Pattern, ColumnarFacts], ...] = ()
    first: int | None = None


Job = tuple[CompiledRule, Reading]


def independent(rule: CompiledRule) -> bool:
    """Test whether the rule may run in parallel with others: it assigns no row or term numbers."""
    patterns = (rule.head, *rule.body, *rule.negated)
    return not rule.groupings and all(not p.wide and len(p.arguments) <= 2 for p in patterns)


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


def plain_reading(rule: CompiledRule, facts: ColumnarFacts, absent: ColumnarFacts) -> Reading:
    """Return the reading that covers all instances."""
    return Reading(tuple(map(facts.relation, rule.body)), (absent,) * len(rule.negated))


def delta_readings(
    rule: CompiledRule,
    old: PatternSource,
    delta: ColumnarFacts,
    full: ColumnarFacts,
    absent: ColumnarFacts,
    removed: ColumnarFacts | None,
) -> Iterator[Reading]:
    """Yield readings such that each instance that uses the delta belongs to exactly one."""
    untouched = (absent,) * len(rule.negated)
    for position, pattern in enumerate(rule.body):
        changed = delta.relation(pattern)
        if changed.runs:
            before = [old.relation(p) for p in rule.body[:position]]
            after = [full.relation(p) for p in rule.body[position + 1 :]]
            yield Reading((*before, changed, *after), untouched, (), position)
    if removed is None or not rule.negated:
        return
    atoms = tuple(old.relation(p) for p in rule.body)
    for position, pattern in enumerate(rule.negated):
        if removed.relation(pattern).runs:
            wider = absent.union(removed)
            yield Reading(
                atoms,
                (*(wider,) * position, *(absent,) * (len(rule.negated) - position)),
                ((pattern, removed),),
            )


def open_readings(
    rule: CompiledRule, within: ColumnarFacts, unproved: ColumnarFacts, several: bool
) -> Iterator[tuple[tuple[Relation, ...], list[JoinAtom]]]:
    """Yield readings in which exactly one atom (at least two if `several`) reads `unproved`.

    Each comes with the atoms that must not match: the same atoms, read from `within`.
    """
    places = [at for at, pattern in enumerate(rule.body) if unproved.relation(pattern).runs]
    for size in range(2, len(places) + 1) if several else (1,):
        for unproved_at in combinations(places, size):
            atoms = tuple(
                (unproved if at in unproved_at else within).relation(pattern)
                for at, pattern in enumerate(rule.body)
            )
            patterns = (rule.body[at] for at in unproved_at)
            yield atoms, [JoinAtom(p.arguments, within.relation(p)) for p in patterns]


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
