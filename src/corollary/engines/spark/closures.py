"""Closures of linear rules in tasks: every task has all edges, and some of the pairs' ends.

P(x, z) :- P(x, y), E(y, z) keeps x, so that the pairs of x follow from pairs of x. A task that has
all edges closes its share of the subjects alone, with the kernels of the embedded engine, and sends
nothing; with E first, the same holds for objects. After a change, a task compares the closures of
its share before and after. That takes one job each. Where there are more edges than a task can
hold, the rule is evaluated in rounds as any other one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corollary.core.compile import CompiledRule, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, Difference
from corollary.core.ids import in_order
from corollary.engines.spark import task
from corollary.engines.spark.base import Base, counts_of
from corollary.engines.spark.components import Batches, Tell, report
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import DERIVED, FRESH, NONE, Gathering, Key, chunks_of
from corollary.engines.spark.task import Embedded
from corollary.lang.stratify import Predicate

_PAIR, _EDGE = Predicate("pair"), Predicate("edge")
_GONE = Predicate("GONE PAIRS")

# The sets of facts that a task is given.
FULL, DELTA, KNOWN = "full", "delta", "known"  # Δ is not sent twice if all pairs are new
_ROLES = (FULL, DELTA, KNOWN)


@dataclass(frozen=True)
class Shape:
    """A linear rule without its names: where its pair and its edge stand."""

    backwards: bool  # whether the edge is first, and objects are kept
    head: tuple[int, ...]
    body: tuple[tuple[bool, tuple[int, ...]], ...]  # whether an atom is the pair, its arguments

    @classmethod
    def of(cls, rules: Sequence[CompiledRule]) -> Shape | None:
        """The shape of a single linear rule, else None."""
        if len(rules) != 1 or rules[0].negated or rules[0].conditions or rules[0].groupings:
            return None
        [rule] = rules
        patterns = (rule.head, *rule.body)
        binary = all(len(p.arguments) == len(p.variables) == 2 and not p.wide for p in patterns)
        own = [p for p in rule.body if p.predicate is rule.head.predicate]
        if not binary or len(rule.body) != 2 or len(own) != 1 or rule.bound != 3:
            return None
        x, z = rule.head.arguments
        [edge] = [p for p in rule.body if p is not own[0]]
        kept = [at for at in (0, 1) if own[0].arguments[at] == rule.head.arguments[at]]
        if len(kept) != 1 or {x, z} - {*own[0].arguments} - {*edge.arguments}:
            return None
        body = tuple((p is own[0], p.arguments) for p in rule.body)
        return cls(kept == [1], rule.head.arguments, body)

    @property
    def place(self) -> int:
        """The column by which pairs are shared out."""
        return int(self.backwards)

    def rule(self) -> CompiledRule:
        """The rule inside a task."""
        return CompiledRule(
            source=None,  # type: ignore[arg-type]  # engines do not look at it
            head=Pattern(_PAIR, self.head),
            body=tuple(Pattern(_PAIR if own else _EDGE, a) for own, a in self.body),
            negated=(),
            conditions=(),
            groupings=(),
            bound=3,
        )


def edges_of(rule: CompiledRule) -> Predicate:
    """The relation of a linear rule's edges."""
    [edge] = [p.predicate for p in rule.body if p.predicate is not rule.head.predicate]
    return edge


def fits(rule: CompiledRule, facts: SparkFacts, limit: int) -> bool:
    """Whether the driver may close a rule over facts that it holds.

    Each subject may reach each object; the result has `limit` facts at most.
    """
    subjects, objects = (
        [rows[:, column] for p in (rule.head.predicate, edges_of(rule)) if len(rows := _rows(f, p))]
        for f in [facts.local()]
        for column in (0, 1)
    )
    count = len(in_order(np.concatenate(subjects))) if subjects else 0
    return count * (len(in_order(np.concatenate(objects))) if objects else 0) <= limit


def _rows(facts: Any, predicate: Predicate) -> Ids:
    rows: Ids = facts.rows(predicate)
    return rows.reshape(-1, 2)


def closed(
    rule: CompiledRule, shape: Shape, facts: SparkFacts, delta: SparkFacts, tell: Tell
) -> Derived[SparkFacts]:
    """`Engine.close` of a linear rule, of which all edges go everywhere."""
    found, instances = _run(rule, shape, {FULL: facts, DELTA: delta}, tell)
    return Derived(found.only([rule.head.predicate]), instances)


def reclosed(
    rule: CompiledRule,
    shape: Shape,
    after: SparkFacts,
    changed: SparkFacts,
    known: SparkFacts,
    tell: Tell,
) -> Difference[SparkFacts]:
    """`Engine.reclose`; the facts before are those after, but for what has changed."""
    sets = {FULL: after, DELTA: changed, KNOWN: known}
    found, instances = _run(rule, shape, sets, tell)
    head = rule.head.predicate
    return Difference(
        found.only([head]).settled(),
        found.only([_GONE]).renamed(_GONE, head).settled(),
        instances,
    )


def _run(
    rule: CompiledRule, shape: Shape, sets: Mapping[str, SparkFacts], tell: Tell
) -> tuple[SparkFacts, int]:
    """One job: the sets to tasks, and what they find home."""
    start = time.perf_counter()
    workspace = next(iter(sets.values())).workspace
    head, edge = rule.head.predicate, edges_of(rule)
    frames = []
    new = KNOWN not in sets and len(sets[FULL].only([head])) == len(sets[DELTA].only([head]))
    for role, facts in sets.items():
        wanted = [head] if role == KNOWN else [edge] if role == FULL and new else [head, edge]
        own = facts.only(wanted)
        if len(own):
            places = {workspace.key(head, 2): shape.place, workspace.key(edge, 2): None}
            route = Share(_ROLES.index(role), places, workspace.partitions)
            frames.append(workspace.over(own.chunks(), route))
    names = (workspace.key(head, 2), workspace.key(_GONE, 2))
    work = Close(shape, workspace.make, names, KNOWN in sets, workspace.partitions)
    frame = workspace.over(workspace.exchanged(workspace.united(frames)), work)
    if shape.backwards:  # what belongs to an object is at home by its subject
        frame = workspace.over(workspace.exchanged(frame), task.Combine("union", workspace.make))
    kept, reports = workspace.settled(frame)
    done = [r for r in reports if "instances" in r]
    tell("closure", done, time.perf_counter() - start)
    counted = [r for r in reports if ("instances" in r) != shape.backwards]
    base = Base.of(workspace, [kept], *counts_of(workspace, counted))
    nothing = workspace.embedded.facts({})
    return SparkFacts(workspace, nothing, base), sum(r["instances"] for r in done)


@dataclass(frozen=True)
class Share:
    """Facts of a set under the number of its role; edges everywhere, pairs by what they keep."""

    role: int
    places: Mapping[Key, int | None]
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for _, _, key, rows in chunks_of(batches):
            place = self.places[key]
            name = (self.role, int(place is None), NONE, 2)
            out.send(FRESH, name, rows, place, self.partitions)
            if out.full:
                yield from out.take()
        yield from out.take()


@dataclass(frozen=True)
class Close:
    """The closure of a task's share, or by what it differs from the known one."""

    shape: Shape
    embedded: Embedded
    names: tuple[Key, Key]  # of pairs that come and go
    again: bool
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        me, start = task.this_partition(), time.perf_counter()
        engine = self.embedded(Dictionary())
        tables: dict[str, dict[Predicate, Ids]] = {role: {} for role in _ROLES}
        for (role, is_edge, _, _), rows in task.all_of(batches).items():
            tables[_ROLES[role]][_EDGE if is_edge else _PAIR] = rows
        full, delta, known = (engine.facts(tables.pop(role)) for role in _ROLES)
        total = len(full) + len(known)
        rule, nothing = self.shape.rule(), engine.facts({})
        parts, instances = [nothing, nothing], 0
        if self.again and len(delta):
            before = full.difference(delta).union(delta.difference(full))
            found = engine.reclose(rule, before, full, changed=delta, known=known)
            parts, instances = [found.inserted, found.deleted], found.instances
        elif len(delta):
            closed = engine.close([rule], full.union(delta), delta)
            parts, instances = [closed.facts, nothing], closed.instances
        out, counts = Gathering(), []
        for key, facts in zip(self.names, parts, strict=True):
            rows = facts.rows(_PAIR)
            if len(rows):
                counts.append([list(key), len(rows)])
                if self.shape.backwards:
                    out.send(DERIVED, key, rows, 0, self.partitions)
                else:
                    out.add(me, DERIVED, key, rows)
        yield from out.take()
        yield report(
            me, total, start, counts=counts, instances=instances, derived=len(parts[0]), sent=0
        )
