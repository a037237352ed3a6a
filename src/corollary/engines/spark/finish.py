"""Finish a recursion on the driver when few facts are left to shuffle.

The driver looks up the possible join partners of these facts and applies the same steps as the
tasks. Derived facts stay on the driver; if they become too many, they return to the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame

from corollary.core.dictionary import Ids
from corollary.core.ids import missing_in, together
from corollary.engines.spark.base import SparkRun
from corollary.engines.spark.packing import FRESH, STATE, ChunkBuffer, Key
from corollary.engines.spark.plan import QUERIES, REPLICATED, Plan
from corollary.engines.spark.reports import TaskReport
from corollary.engines.spark.rounds import StepEvaluator, add_results
from corollary.engines.spark.task import Fetch, narrow
from corollary.engines.spark.tuning import tuning

if TYPE_CHECKING:
    from corollary.engines.spark.answers import TermQuery

Rows = dict[int, list[Ids]]  # by placement
Answer = Callable[["TermQuery", Key, Ids], Ids]


class DriverRounds:
    """Rounds on the driver over the chunks of the last round in tasks."""

    def __init__(self, run: SparkRun, plan: Plan, frame: DataFrame, counted: bool) -> None:
        self._run, self._plan, self._frame, self._counted = run, plan, frame, counted
        filtered = any(step.conditions for step in plan.steps)
        self._steps = StepEvaluator(
            plan, run.make_engine, dictionary=run.dictionary if filtered else None
        )
        self._joined = _joined_placements(plan)
        self._known = self._new = self._steps.facts({})
        self._fetched_ids = [np.zeros(0, np.uint32) for _ in plan.placements]
        self._fully_fetched: set[int] = set()
        self._processed: Rows = {}
        self._instances = 0
        self.results = ChunkBuffer()
        fresh = run.collect(run.select_kinds(frame, FRESH))
        self.pending: dict[int, Ids] = {key[0]: rows for key, rows in fresh.items()}

    def apply(self, queries: Mapping[Key, TermQuery], answer: Answer) -> None:
        """Apply the steps until no fact is pending, or so many that tasks should continue."""
        rounds = 0
        while self.pending:
            rounds += 1
            self._known = self._known.union(self._look_up())
            tables = {number: [rows] for number, rows in self.pending.items()}
            delta = self._steps.facts(tables).difference(self._known)
            self._known = self._known.union(delta)
            own = [self._steps.placement_predicates[n] for n in self._plan.primary.values()]
            self._new = self._new.union(delta.only(own))
            for predicate in delta.predicates():
                number = self._steps.number_of[predicate]
                self._processed.setdefault(number, []).append(delta.rows(predicate))
            self.pending = self._derive(delta, queries, answer) if len(delta) else {}
            waiting = sum(map(len, self.pending.values()))
            if waiting > self._run.options.finish_limit or rounds >= tuning.driver_rounds_limit:
                return

    def _derive(
        self, delta: Any, queries: Mapping[Key, TermQuery], answer: Answer
    ) -> dict[int, Ids]:
        """Apply the steps once; return the derived rows by the placements that read them."""
        plan, placed = self._plan, Rows()
        derived, instances = self._steps.advance(self._known, delta, self._counted)
        self._instances += instances
        for target, rows, counts in derived:
            source = plan.targets[target]
            if source.operand == "r":
                add_results(self.results, plan, source.key, rows, counts, self._run.partitions)
                continue
            if source.operand == QUERIES:
                query = queries[source.key]
                readers = [(query.answers, answer(query, source.key, rows))]
            else:
                readers = [*plan.readers(source.operand, source.key, rows)]
            for reader, part in readers:
                for number in plan.placements_of(reader):
                    placed.setdefault(number, []).append(part)
        merged = {number: np.concatenate(parts) for number, parts in placed.items()}
        return {number: rows for number, rows in merged.items() if len(rows)}

    def _look_up(self) -> Any:
        """Fetch the possible join partners of pending facts."""
        wanted: dict[Key, Any] = {}
        plan = self._plan
        for number, rows in self.pending.items():
            place = plan.placements[number].column
            everything = place == REPLICATED or not rows.shape[1]
            for other in self._joined[number] - self._fully_fetched:
                key, column = plan.key_of(other), plan.placements[other].column
                if everything or column == REPLICATED or not key[3]:
                    wanted[key] = None
                    self._fully_fetched.add(other)
                elif key not in wanted or wanted[key] is not None:
                    ids = missing_in(self._fetched_ids[other], rows[:, place])
                    if len(ids):
                        before = wanted.get(key, {}).get(column, ids)
                        wanted[key] = {column: together(before, ids)}
        for key, places in wanted.items():
            if places is not None:
                [ids] = places.values()
                self._fetched_ids[key[0]] = together(self._fetched_ids[key[0]], ids)
        if not wanted:
            return self._steps.facts({})
        replicated = frozenset(k for k in wanted if plan.placements[k[0]].column == REPLICATED)
        fetch = Fetch(STATE, wanted, replicated=replicated)
        tables = self._run.collect(self._run.map_chunks(self._frame, fetch))
        return self._steps.facts({key[0]: [rows] for key, rows in tables.items()})

    def report(self) -> TaskReport:
        """Report the driver's work in the format of a task's report."""
        return {
            "in": 0,
            "derived": len(self._new),
            "sent": sum(map(len, self.pending.values())),
            "instances": self._instances,
            "seconds": 0.0,
        }

    def facts(self) -> Any:
        """Return the facts that the driver has derived or received."""
        tables: dict[Key, Ids] = {}
        for source, number in self._plan.primary.items():
            rows = self._new.rows(self._steps.placement_predicates[number])
            if len(rows):
                tables.update(narrow(source.key, rows, self._plan.type_id))
        return self._run.facts_of(tables)

    def unfinished(self) -> ChunkBuffer:
        """Route all facts of these rounds to the partitions that need them in further rounds."""
        out = ChunkBuffer()
        for kind, tables in (
            (STATE, self._processed),
            (FRESH, {number: [rows] for number, rows in self.pending.items()}),
        ):
            for number, parts in tables.items():
                rows = np.concatenate(parts)
                self._plan.send(out, kind, number, rows, self._run.partitions)
        return out


def _joined_placements(plan: Plan) -> list[frozenset[int]]:
    """Return, for each placement, the placements that some step joins it with, and itself."""
    joined = [{number} for number in range(len(plan.placements))]
    for step in plan.steps:
        numbers = {n for n, _ in (*step.body, *step.negated)}
        for number, _ in step.body:
            joined[number] |= numbers
    return [frozenset(numbers) for numbers in joined]
