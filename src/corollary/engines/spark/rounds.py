"""A round in a task: close the facts of a partition locally, route new facts to the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from corollary.core.compile import CompiledRule, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.spark import task
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    RESULT,
    STATE,
    ChunkBuffer,
    Key,
    Table,
    iter_tables,
    partition_of,
)
from corollary.engines.spark.plan import DRIVER, QUERIES, REPLICATED, Plan, Source
from corollary.engines.spark.task import Batches, Embedded, Numbers, TableTask, local_rule, narrow
from corollary.lang.stratify import Predicate


class StepEvaluator:
    """Evaluates the steps of a plan with an embedded engine, in a task or on the driver."""

    def __init__(
        self,
        plan: Plan,
        embedded: Embedded,
        *,
        auxiliary_only: bool = False,
        dictionary: Dictionary | None = None,
    ) -> None:
        """`auxiliary_only` skips steps other than those that derive auxiliary relations.

        The dictionary holds the terms that filters compare.
        """
        self.plan = plan
        self.engine = embedded(Dictionary() if dictionary is None else dictionary)
        self.placement_predicates = [
            Predicate(str(number)) for number in range(len(plan.placements))
        ]
        self.targets = [Predicate(f"t{number}") for number in range(len(plan.targets))]
        self._target_of = {predicate: n for n, predicate in enumerate(self.targets)}
        self.number_of = {predicate: n for n, predicate in enumerate(self.placement_predicates)}
        # keyed by whether their instances count
        self._rules: dict[bool, list[CompiledRule]] = {True: [], False: []}
        for step in plan.steps:
            if auxiliary_only and not step.auxiliary:
                continue
            rule = local_rule(
                Pattern(self.targets[step.head], step.arguments),
                [Pattern(self.placement_predicates[n], a) for n, a in step.body],
                step.bound,
                [Pattern(self.placement_predicates[n], a) for n, a in step.negated],
                step.conditions,
            )
            self._rules[not step.auxiliary].append(rule)

    def facts(self, tables: Mapping[int, list[Ids]]) -> Any:
        """Build a set of facts from tables by placement."""
        return self.engine.facts(
            {
                self.placement_predicates[n]: np.concatenate(rows)
                for n, rows in tables.items()
                if rows
            }
        )

    def advance(
        self, full: Any, delta: Any | None, counted: bool
    ) -> tuple[list[tuple[int, Ids, Numbers | None]], int]:
        """Apply the steps once; return rows (and counts) of targets, and the instance count."""
        out: list[tuple[int, Ids, Numbers | None]] = []
        instances = 0
        changed = frozenset(delta.predicates()) if delta is not None else None
        for final, rules in self._rules.items():
            if changed is not None:
                rules = [r for r in rules if any(p.predicate in changed for p in r.body)]
            if not rules:
                continue
            derived = self.engine.derive(rules, full, delta=delta, counted=counted and final)
            if final:
                instances += derived.instances
            for predicate in derived.facts.predicates():
                counts = derived.counts[predicate] if derived.counts is not None else None
                out.append((self._target_of[predicate], derived.facts.rows(predicate), counts))
        return out, instances


@dataclass(frozen=True)
class Round:
    """One round of a partition: close its facts locally, route new facts to other partitions."""

    plan: Plan
    embedded: Embedded
    partitions: int
    first: bool = True
    all_new: bool = True  # Δ is the whole set: no facts existed before the first round
    counted: bool = False
    keep_state: bool = True  # another round may follow
    auxiliary_only: bool = False  # before the first round: auxiliary relations of old facts
    dictionary: Callable[[], Dictionary] = Dictionary  # terms that filters compare

    def __call__(self, batches: Batches) -> Batches:
        yield from _PartitionRound(self, task.this_partition()).run(batches)


class _PartitionRound:
    """A round in one partition: its input, the facts that are new to others, and its output."""

    def __init__(self, work: Round, partition: int) -> None:
        self._work, self._plan, self._partition = work, work.plan, partition
        self._evaluator = StepEvaluator(
            work.plan,
            work.embedded,
            auxiliary_only=work.auxiliary_only,
            dictionary=work.dictionary(),
        )
        self._primary = {
            self._evaluator.placement_predicates[number]: source.key
            for source, number in work.plan.primary.items()
        }
        self._remote: dict[int, list[Ids]] = {}
        self._out = ChunkBuffer()
        self._steps = self._instances = 0
        self._queried: dict[int, int] = {}  # rows of queries by number

    def run(self, batches: Batches) -> Batches:
        start = time.perf_counter()
        work, evaluator, out = self._work, self._evaluator, self._out
        tables: dict[int, dict[int, list[Ids]]] = {STATE: {}, FRESH: {}}
        for _, kind, key, rows in iter_tables(batches):
            if kind in tables:
                tables[kind].setdefault(key[0], []).append(rows)
            else:
                out.add(self._partition, kind, key, rows)
                if out.full:
                    yield from out.drain()
        known, delta = evaluator.facts(tables[STATE]), evaluator.facts(tables[FRESH])
        tables.clear()
        if not work.first:
            delta = delta.difference(known)
        full = known.union(delta)
        read = len(full)
        full, new = self._close(full, delta)
        self._emit(new)
        remote = evaluator.facts(self._remote)
        everywhere = self._send(remote)
        if work.keep_state:
            for predicate in full.predicates():
                key = self._plan.key_of(evaluator.number_of[predicate])
                out.add(self._partition, STATE, key, full.rows(predicate))
        yield from out.drain()
        report = {
            "in": read,
            "instances": self._instances,
            "steps": self._steps,
            "sent": len(remote),
            "everywhere": everywhere,
            "queried": self._queried,
            "derived": len(new),
            "seconds": time.perf_counter() - start,
        }
        yield out.report(self._partition, report)

    def _close(self, full: Any, delta: Any) -> tuple[Any, Any]:
        """Apply the steps to a local fixpoint; return all facts, and those that are new here."""
        work, plan, evaluator = self._work, self._plan, self._evaluator
        everything = work.first and work.all_new
        new = evaluator.facts({})
        if not work.first and len(delta):
            new = delta.only([*self._primary])
        while len(delta):
            derivations, instances = evaluator.advance(
                full, None if everything else delta, work.counted
            )
            everything = False
            self._instances += instances
            self._steps += 1
            local: dict[int, list[Ids]] = {}
            for target, rows, counts in derivations:
                source = plan.targets[target]
                if source.operand == QUERIES:
                    self._out.add(DRIVER, FRESH, source.key, rows)
                    number = source.key[0]
                    self._queried[number] = self._queried.get(number, 0) + len(rows)
                elif source.operand == "r":
                    add_results(self._out, plan, source.key, rows, counts, work.partitions)
                else:
                    self._place(source, self._unknown(full, source, rows), local)
            delta = evaluator.facts(local).difference(full)
            full = full.union(delta)
            new = new.union(delta.only([*self._primary]))
        return full, new

    def _emit(self, new: Any) -> None:
        """Emit the derived facts."""
        for predicate, primary_key in self._primary.items():
            rows = new.rows(predicate)
            for key, part in narrow(primary_key, rows, self._plan.type_id) if len(rows) else ():
                self._out.add(self._partition, DERIVED, key, part)

    def _send(self, remote: Any) -> bool:
        """Route facts to other partitions; return whether all of them receive some."""
        everywhere, partitions = False, self._work.partitions
        for predicate in remote.predicates():
            number = self._evaluator.number_of[predicate]
            rows = remote.rows(predicate)
            if self._plan.placements[number].column == REPLICATED:
                everywhere = True
                for other in range(partitions):
                    if other != self._partition:
                        self._out.add(other, FRESH, self._plan.key_of(number), rows)
            else:
                self._plan.send(self._out, FRESH, number, rows, partitions)
        return everywhere

    def _unknown(self, full: Any, source: Source, rows: Ids) -> Ids:
        """Keep the rows that other partitions may lack.

        All partitions already have the rows of a replicated relation that this one has.
        """
        if not self._plan.is_placed(source, REPLICATED):
            return rows
        number = self._plan.place(source, REPLICATED)
        new = self._evaluator.facts({number: [rows]}).difference(full)
        return new.rows(self._evaluator.placement_predicates[number]) if len(new) else rows[:0]

    def _place(self, source: Source, rows: Ids, local: dict[int, list[Ids]]) -> None:
        """Split derived rows into those for this partition and those for others."""
        plan, partitions, remote = self._plan, self._work.partitions, self._remote
        for reader, part in plan.readers(source.operand, source.key, rows):
            for number in plan.placements_of(reader):
                place = plan.placements[number].column
                if partitions == 1 or not len(part):
                    local.setdefault(number, []).append(part)
                elif place == REPLICATED:
                    local.setdefault(number, []).append(part)
                    remote.setdefault(number, []).append(part)
                else:
                    if part.shape[1]:
                        here = partition_of(part[:, place], partitions) == self._partition
                    else:
                        here = np.full(len(part), self._partition == 0)
                    local.setdefault(number, []).append(part[here])
                    remote.setdefault(number, []).append(part[~here])


def add_results(
    out: ChunkBuffer, plan: Plan, key: Key, rows: Ids, counts: Numbers | None, partitions: int
) -> None:
    """Route results of steps, with counts as their last column, to their partitions."""
    extra = 0
    if counts is not None:
        rows, extra = np.column_stack([rows, counts.astype(np.uint32)]), 1
    for narrowed, part in narrow(key, rows, plan.type_id, extra):
        if narrowed[3] > extra:
            out.send(RESULT, narrowed, part, 0, partitions)
        else:
            out.add(0, RESULT, narrowed, part)


@dataclass(frozen=True)
class Route(TableTask):
    """Route facts to the partitions of all placements that contain them."""

    plan: Plan
    operand: str
    kind: int
    partitions: int

    def add(self, table: Table, out: ChunkBuffer) -> None:
        for source, part in self.plan.readers(self.operand, table.key, table.rows):
            for number in self.plan.placements_of(source):
                self.plan.send(out, self.kind, number, part, self.partitions)
