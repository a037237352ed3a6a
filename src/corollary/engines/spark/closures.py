"""Close linear rules in tasks: edges are replicated, pairs are partitioned by the kept column.

P(x, z) :- P(x, y), E(y, z) keeps x: the pairs of x follow from pairs of x. A task with all edges
closes its partition of the subjects without a shuffle, with the kernels of the embedded engine;
with E first, the same holds for objects. After a change, a task compares the closures of its
partition before and after. Each of the two takes one job. If the edges do not fit in a task, the
rule is evaluated in rounds like any other rule.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corollary.core import graph_engine
from corollary.core.compile import CompiledRule, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, Difference
from corollary.core.ids import in_order
from corollary.engines.spark import task
from corollary.engines.spark.base import Base
from corollary.engines.spark.components import GONE, report
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import DERIVED, FRESH, NONE, ChunkBuffer, Key, Table
from corollary.engines.spark.task import Batches, Embedded
from corollary.lang.stratify import Predicate

_PAIR, _EDGE = Predicate("pair"), Predicate("edge")

# The sets of facts that are sent to a task.
FULL, DELTA, KNOWN = "full", "delta", "known"  # Δ is not sent twice if all pairs are new
_ROLES = (FULL, DELTA, KNOWN)


@dataclass(frozen=True)
class Shape:
    """The shape of a linear rule: the positions of its pair and its edge, without names."""

    backwards: bool  # the edge is first, and objects are kept
    head: tuple[int, ...]
    body: tuple[tuple[bool, tuple[int, ...]], ...]  # for each atom: is it the pair?, arguments

    @classmethod
    def of(cls, rules: Sequence[CompiledRule]) -> Shape | None:
        """Recognize a single linear rule; None for other rules."""
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
        """The column by which pairs are partitioned."""
        return int(self.backwards)

    def rule(self) -> CompiledRule:
        """Build the rule that a task evaluates."""
        body = [Pattern(_PAIR if own else _EDGE, a) for own, a in self.body]
        return task.local_rule(Pattern(_PAIR, self.head), body, 3)


def edges_of(rule: CompiledRule) -> Predicate:
    """Return the predicate of a linear rule's edges."""
    [edge] = [p.predicate for p in rule.body if p.predicate is not rule.head.predicate]
    return edge


def fits(rule: CompiledRule, facts: SparkFacts, limit: int) -> bool:
    """Check that the driver can close a rule over facts that it holds.

    In the worst case each subject reaches each object; the result must have at most `limit` facts.
    """
    local, predicates = facts.local(), (rule.head.predicate, edges_of(rule))
    rows = np.concatenate([local.rows(predicate).reshape(-1, 2) for predicate in predicates])
    subjects, objects = (len(in_order(column)) for column in rows.T)
    return subjects * objects <= limit


def close_linear(
    rule: CompiledRule, shape: Shape, facts: SparkFacts, delta: SparkFacts
) -> Derived[SparkFacts]:
    """Close a linear rule (`Engine.close`) with its edges replicated to all tasks."""
    found, instances = _run(rule, shape, {FULL: facts, DELTA: delta})
    return Derived(found.only([rule.head.predicate]), instances)


def closure_changes(
    rule: CompiledRule,
    shape: Shape,
    after: SparkFacts,
    changed: SparkFacts,
    known: SparkFacts,
) -> Difference[SparkFacts]:
    """Maintain a closure (`Engine.reclose`); the facts before are `after` without the changes."""
    sets = {FULL: after, DELTA: changed, KNOWN: known}
    found, instances = _run(rule, shape, sets)
    head = rule.head.predicate
    return Difference(
        found.only([head]).collect_if_small(),
        found.only([GONE]).renamed(GONE, head).collect_if_small(),
        instances,
    )


def _run(
    rule: CompiledRule, shape: Shape, sets: Mapping[str, SparkFacts]
) -> tuple[SparkFacts, int]:
    """Run one job: send the sets to tasks, and hash-partition their results."""
    run = next(iter(sets.values())).run
    head, edge = rule.head.predicate, edges_of(rule)
    frames = []
    new = KNOWN not in sets and len(sets[FULL].only([head])) == len(sets[DELTA].only([head]))
    for role, facts in sets.items():
        wanted = [head] if role == KNOWN else [edge] if role == FULL and new else [head, edge]
        own = facts.only(wanted)
        if len(own):
            places = {run.key(head, 2): shape.place, run.key(edge, 2): None}
            route = Share(_ROLES.index(role), places, run.partitions)
            frames.append(run.map_chunks(own.chunks(), route))
    names = (run.key(head, 2), run.key(GONE, 2))
    work: task.OverArrow = Close(shape, run.make_engine, names, KNOWN in sets, run.partitions)
    frame, last = run.shuffle(run.union(frames)), work
    if shape.backwards:  # results are partitioned by object here, but facts by subject
        frame = run.shuffle(run.map_chunks(frame, work))
        last = task.Combine("union", run.make_engine)
    done = run.job("closure", frame, last)
    found = SparkFacts.of(Base.reported(run, done))
    return found, sum(r.get("instances", 0) for r in done.reports)


@dataclass(frozen=True)
class Share(task.TableTask):
    """Label facts with their role; replicate edges, and partition pairs by the kept column."""

    role: int
    places: Mapping[Key, int | None]
    partitions: int

    def add(self, table: Table, out: ChunkBuffer) -> None:
        place = self.places[table.key]
        name = (self.role, int(place is None), NONE, 2)
        out.send(FRESH, name, table.rows, place, self.partitions)


@dataclass(frozen=True)
class Close:
    """Close a task's partition, or compute the diff to the known closure."""

    shape: Shape
    embedded: Embedded
    names: tuple[Key, Key]  # keys of the pairs gained and lost
    has_known: bool  # compute the diff to the known closure
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        me, start = task.this_partition(), time.perf_counter()
        engine = self.embedded(Dictionary())
        tables: dict[str, dict[Predicate, Ids]] = {role: {} for role in _ROLES}
        for (role, is_edge, _, _), rows in task.merge_chunks(batches).items():
            tables[_ROLES[role]][_EDGE if is_edge else _PAIR] = rows
        full, delta, known = (engine.facts(tables.pop(role)) for role in _ROLES)
        total = len(full) + len(known)
        rule, nothing = self.shape.rule(), engine.facts({})
        parts, instances = [nothing, nothing], 0
        if self.has_known and len(delta):
            before = full.difference(delta).union(delta.difference(full))
            found = graph_engine.reclose(engine, rule, before, full, changed=delta, known=known)
            parts, instances = [found.inserted, found.deleted], found.instances
        elif len(delta):
            closed = engine.close([rule], full.union(delta), delta)
            parts, instances = [closed.facts, nothing], closed.instances
        out = ChunkBuffer()
        for key, facts in zip(self.names, parts, strict=True):
            rows = facts.rows(_PAIR)
            if self.shape.backwards:
                out.send(DERIVED, key, rows, 0, self.partitions)
            else:
                out.add(me, DERIVED, key, rows)
        yield from out.drain()
        yield report(out, me, total, start, instances=instances, derived=len(parts[0]), sent=0)
