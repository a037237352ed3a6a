"""How a rule is read: which facts each of its atoms sees.

An instance that uses a fact of the delta is considered in exactly one reading, that of the first
atom that is in the delta: atoms to its left read the old facts, atoms to its right all facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from corollary.core.compile import CompiledRule, Pattern
from corollary.engines.columnar.compose import orientation
from corollary.engines.columnar.facts import ColumnarFacts, Readable
from corollary.engines.columnar.join import Source, starting_atom
from corollary.engines.columnar.relation import Relation
from corollary.engines.columnar.selection import pair_atom
from corollary.engines.columnar.sink import Sink
from corollary.engines.columnar.tuning import tuning


@dataclass(frozen=True)
class Reading:
    """One way to evaluate a rule: which facts each atom reads, and which atom is the delta."""

    atoms: tuple[Relation, ...]
    absent: tuple[ColumnarFacts, ...]  # for each negated atom, facts that must not match
    present: tuple[tuple[Pattern, ColumnarFacts], ...] = ()
    first: int | None = None


Job = tuple[CompiledRule, Reading]


def independent(rule: CompiledRule) -> bool:
    """Whether the rule can run beside others: it numbers no rows and no terms."""
    patterns = (rule.head, *rule.body, *rule.negated)
    return not rule.groupings and all(not p.wide and len(p.arguments) <= 2 for p in patterns)


def split(job: Job, parts: int) -> list[Job]:
    """The job in parts that together consider the same instances: its first atom is cut."""
    rule, reading = job
    if len(rule.body) < 2 or orientation(rule) is not None or not independent(rule):
        return [job]
    sources = [Source(p.arguments, r) for p, r in zip(rule.body, reading.atoms, strict=True)]
    at = starting_atom(sources, reading.first)
    if at == pair_atom(rule):  # whose pairs are selected together
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
    """All instances at once."""
    return Reading(tuple(map(facts.relation, rule.body)), (absent,) * len(rule.negated))


def delta_readings(
    rule: CompiledRule,
    old: Readable,
    delta: ColumnarFacts,
    full: ColumnarFacts,
    absent: ColumnarFacts,
    removed: ColumnarFacts | None,
) -> Iterator[Reading]:
    """Every instance that uses a delta belongs to exactly one reading: that of its first use."""
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
) -> Iterator[tuple[tuple[Relation, ...], list[Source]]]:
    """What the atoms read so that exactly one (at least two if `several`) reads `unproved`.

    Each reading comes with what must not match: those atoms in `within`.
    """
    places = [at for at, pattern in enumerate(rule.body) if unproved.relation(pattern).runs]
    for size in range(2, len(places) + 1) if several else (1,):
        for chosen in combinations(places, size):
            atoms = tuple(
                (unproved if at in chosen else within).relation(pattern)
                for at, pattern in enumerate(rule.body)
            )
            patterns = (rule.body[at] for at in chosen)
            yield atoms, [Source(p.arguments, within.relation(p)) for p in patterns]


def rename_into(rule: CompiledRule, atoms: tuple[Relation, ...], sink: Sink) -> bool:
    """P(x, y) :- Q(x, y), P(x, y) :- Q(y, x), P(x) :- Q(x, y), P(y) :- Q(x, y), P(x) :- Q(x)."""
    if len(rule.body) != 1 or rule.head.wide or rule.body[0].wide:
        return False
    [relation] = atoms
    body, head = rule.body[0].arguments, rule.head.arguments
    if len(set(body)) < len(body) or min(body, default=-1) < 0 or not 1 <= len(body) <= 2:
        return False
    if not head or head not in (body, body[::-1], body[:1], body[1:]):
        return False
    for run in relation.alive():
        if len(body) == 2:
            sink.add_pairs(rule.head, body, run)
        else:
            sink.add_run(rule.head.predicate, 1, run, len(run))
    return True
