"""Evaluate a plan in rounds: a local closure in each task, a shuffle between rounds.

A round is one job: each partition joins its facts with those that are new to it, the embedded
engine applies the steps of the plan to a local fixpoint, and new facts are routed to the other
partitions that read them. When few facts are left to send, the driver finishes: it looks up their
possible join partners and applies the same steps.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import OnRound
from corollary.core.partial import PartialDictionary
from corollary.engines.spark.answers import MOST_COMPUTED, RouteQueries, TermQuery, TermResult
from corollary.engines.spark.base import Base
from corollary.engines.spark.copies import Checkpoint
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.filters import BroadcastTerms, column_ids
from corollary.engines.spark.finish import DriverRounds
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    RESULT,
    STATE,
    ChunkBuffer,
    Key,
)
from corollary.engines.spark.plan import UNIT, Source, last_round
from corollary.engines.spark.reports import RoundReport, TaskReport
from corollary.engines.spark.rounds import Round, Route
from corollary.engines.spark.task import Combine, Select
from corollary.engines.spark.terms import TermTable
from corollary.engines.spark.translate import Translation
from corollary.engines.spark.tuning import tuning
from corollary.engines.spark.values import values_by_tasks
from corollary.errors import OperationFailed

Operands = Sequence[tuple[str, SparkFacts, int]]  # name, facts, kind of chunks


class Evaluation:
    """Runs a plan over its operands to the fixpoint."""

    def __init__(
        self,
        translation: Translation,
        *,
        counted: bool = False,
        all_new: bool = True,
        on_round: OnRound | None = None,
    ) -> None:
        """With `all_new`, all instances are wanted, not just those with new facts."""
        self.run, self.plan = translation.run, translation.plan
        self.queries, self.compared = translation.queries, translation.compared
        self.counted, self.all_new, self.on_round = counted, all_new, on_round
        self.reports: list[RoundReport] = []
        self._broadcast: BroadcastTerms | None = None  # terms that tasks compare
        self._last_round: int | None = None  # of a plan without recursion
        self._combine: Combine | None = None  # applied to the results of the last round
        self._combined = False
        self._last: Checkpoint  # of the last round

    def results(self, operands: Operands) -> tuple[Base, int]:
        """Evaluate the plan; return the results and the number of rule instances."""
        run = self.run
        self._combine = Combine("union", run.make_engine, counted=int(self.counted))
        self._last_round = last_round(self.plan, self.queries)
        frame = self._run(operands)
        if not self._combined:
            run.describe("collect results")
            self._last = run.checkpoint(run.shuffle(run.select_kinds(frame, RESULT)), self._combine)
        return Base.reported(run, self._last), self.instances

    def derived(self, operands: Operands) -> SparkFacts:
        """Return the facts that the steps add to their sources."""
        frame = self.run.select_kinds(self._run(operands), DERIVED)
        base = Base.reported(self.run, self._last._replace(frame=frame))
        return SparkFacts(self.run, self._driver_facts, base)

    @property
    def instances(self) -> int:
        """The number of rule instances considered."""
        return sum(report.instances for report in self.reports)

    @property
    def _queries_values(self) -> bool:
        return any(query.of_values for query in self.queries.values())

    @property
    def _task_queries(self) -> dict[Key, TermQuery]:
        """The queries that tasks can answer; the driver broadcasts terms and computes values."""
        return {key: query for key, query in self.queries.items() if not query.by_driver}

    # -- rounds ----------------------------------------------------------------------------------

    def _route(self, operands: Operands, *, unit: bool = True) -> DataFrame:
        """Route operands, and the fact that empty bodies read, to the partitions that read them."""
        parts: list[DataFrame] = []
        buffer = ChunkBuffer()
        run, plan = self.run, self.plan
        for operand, facts, kind in operands:
            if facts.base is not None:
                chunks = facts.base.chunks(removed=run.tables_of(facts.removed))
                route = Route(plan, operand, kind, run.partitions)
                parts.append(run.map_chunks(chunks, route))
            for key, rows in run.tables_of(facts.small).items():
                for source, part in plan.readers(operand, key, rows):
                    self._send(buffer, kind, source, part)
        if unit:
            fresh = self.all_new or all(kind == FRESH for *_, kind in operands)
            row = np.zeros((1, 0), np.uint32)
            self._send(buffer, FRESH if fresh else STATE, UNIT.source, row)
        frame = run.chunks(buffer)
        if frame is not None:
            parts.append(frame)
        if not parts:
            parts.append(run.empty())
        return run.union(parts)

    def _send(self, out: ChunkBuffer, kind: int, source: Source, rows: Ids) -> None:
        """Route the rows of a source to all its placements."""
        for number in self.plan.placements_of(source):
            self.plan.send(out, kind, number, rows, self.run.partitions)

    def _broadcast_terms(self, operands: Operands) -> None:
        """Collect the terms that filters compare, to broadcast them."""
        if self.compared:
            ids = column_ids(self.run, self.plan, operands, self.compared)
            self._broadcast = BroadcastTerms.of(ids, self.run.dictionary)

    def _prepare(self, old: DataFrame) -> DataFrame:
        """Derive the auxiliary relations of the old facts, and return both as state."""
        first = True
        while True:
            work = self._round(first=first, auxiliary_only=True)
            self.run.describe("auxiliary relations")
            found = self.run.checkpoint(self.run.shuffle(old), work)
            first = False
            query_results = self._query_results(found)
            if not sum(r["sent"] for r in found.reports) and query_results is None:
                return self.run.select_kinds(found.frame, STATE)
            old = self.run.select_kinds(found.frame, STATE, FRESH)
            if query_results is not None:
                old = self.run.union([old, query_results])

    def _round(self, *, first: bool, keep: bool = True, auxiliary_only: bool = False) -> Round:
        return Round(
            self.plan,
            self.run.make_engine,
            self.run.partitions,
            first,
            self.all_new or auxiliary_only,
            self.counted,
            keep,
            auxiliary_only,
            Dictionary if self._broadcast is None else self._broadcast.dictionary,
        )

    def _run(self, operands: Operands) -> DataFrame:
        self._driver_facts: Any = self.run.nothing
        self._broadcast_terms(operands)
        if self.all_new or not any(step.auxiliary for step in self.plan.steps):
            frame = self._route(operands)
        else:
            old = self._route([(o, facts, FRESH) for o, facts, kind in operands if kind == STATE])
            new = self._route([operand for operand in operands if operand[2] == FRESH], unit=False)
            frame = self.run.union([self._prepare(old), new])
        first, number = True, 0
        while True:
            start = time.perf_counter()
            self.run.describe(f"round {len(self.reports) + 1}")
            number += 1
            if number == self._last_round:
                done = self._final_round(frame, first=first)
            else:
                done = self.run.checkpoint(self.run.shuffle(frame), self._round(first=first))
            first = False
            self._last, frame = done, done.frame
            reports = [report for report in done.reports if "instances" in report]
            self._report(reports, "exchange", time.perf_counter() - start)
            sent, queried = sum(r["sent"] for r in reports), any(r["queried"] for r in reports)
            query_results = self._query_results(done)
            if not sent and query_results is None:
                return frame
            if (
                not queried
                and number + 1 != self._last_round  # or the next job is the last one
                and sent <= self.run.options.finish_limit
                and not any(r["everywhere"] for r in reports)
            ):
                pending = self._finish_on_driver(frame)
                if pending is None:
                    return frame
                rest = self.run.select_kinds(frame, STATE, DERIVED, RESULT)
                frame = self.run.union([rest, pending])
                continue
            frame = self.run.select_kinds(frame, STATE, FRESH, DERIVED, RESULT)
            if query_results is not None:
                frame = self.run.union([frame, query_results])

    def _final_round(self, frame: DataFrame, *, first: bool) -> Checkpoint:
        """Run the last round of a plan without recursion, and combine its results: one job."""
        assert self._combine is not None, "only results have a last round"
        self._combined = True
        work = self._round(first=first, keep=False)
        frame = self.run.map_chunks(self.run.shuffle(frame), work)
        return self.run.checkpoint(self.run.shuffle(frame), self._combine)

    def _report(self, reports: Sequence[TaskReport], phase: str, seconds: float) -> None:
        round_report = RoundReport.of(len(self.reports) + 1, phase, reports, seconds)
        self.reports.append(round_report)
        self.run.record(round_report)
        if self.on_round is not None:
            self.on_round(round_report.number, sum(r.new for r in self.reports))

    def _finish_on_driver(self, frame: DataFrame) -> DataFrame | None:
        """Finish on the driver; if the facts become too many, return chunks for another round."""
        start = time.perf_counter()
        run = self.run
        run.describe(f"round {len(self.reports) + 1}, on the driver")
        rounds = DriverRounds(run, self.plan, frame, self.counted)
        rounds.apply(self.queries, self._finish_query)
        self._report([rounds.report()], "driver", time.perf_counter() - start)
        self._driver_facts = self._driver_facts.union(rounds.facts())
        chunks = [run.chunks(rounds.results)]
        if rounds.pending:
            chunks.append(run.chunks(rounds.unfinished()))
        found = [frame for frame in chunks if frame is not None]
        return run.union(found) if found else None

    def _finish_query(self, query: TermQuery, key: Key, rows: Ids) -> Ids:
        """Answer a query on the driver, with values as tasks number them."""
        if query.of_values and self.run.terms is not None:
            return self.run.terms.values_of(rows[:, 0])
        return self._driver_rows(key, rows)

    def _query_results(self, found: Checkpoint) -> DataFrame | None:
        """Answer the queries that tasks have emitted; None if there are none."""
        run = self.run
        counts: Counter[int] = Counter()
        for report in found.reports:
            counts.update({int(key): rows for key, rows in report.get("queried", {}).items()})
        count = counts.total()
        if not count:
            return None
        questions = run.select_for_driver(found.frame)
        terms = run.terms
        by_tasks: list[DataFrame] = []
        by_driver = {*self.queries}
        # The driver numbers values differently, so tasks must answer all queries for values.
        many = self._queries_values or count > tuning.driver_terms_limit
        if terms is not None and many and self._task_queries:
            by_tasks.append(self._results_by_tasks(questions, terms))
            by_driver -= self._task_queries.keys()
        about_rows = {key: query for key, query in self.queries.items() if query.of_rows}
        in_tasks = {k: q for k, q in about_rows.items() if not q.computes or self._is_extensible}
        if terms is not None and in_tasks and count > tuning.driver_values_limit:
            by_tasks.append(values_by_tasks(run, self.plan, in_tasks, questions, terms))
            by_driver -= in_tasks.keys()
        if not by_driver:
            return run.union(by_tasks)
        if by_tasks:
            questions = run.map_chunks(questions, Select(DERIVED, frozenset(by_driver), {}))
        if count > MOST_COMPUTED and not about_rows.keys().isdisjoint(by_driver):
            raise OperationFailed(
                "E595",
                f"rules compute values for up to {count:,} combinations of terms in one round,"
                f" and Spark's driver takes {MOST_COMPUTED:,}",
                "the embedded engine has no such limit: choose --engine columnar",
            )
        tables = {key: rows for key, rows in found.for_driver.items() if key in by_driver}
        if any(len(tables.get(key, ())) < counts[key[0]] for key in by_driver):
            run.describe("look up terms")
            tables = run.collect(questions)
        out = ChunkBuffer()
        for key, rows in tables.items():
            self._send(out, FRESH, self.queries[key].answers, self._driver_rows(key, rows))
        driver_results = run.chunks(out)
        frames = [*by_tasks, *([] if driver_results is None else [driver_results])]
        return run.union(frames) if frames else None

    @property
    def _is_extensible(self) -> bool:
        """Whether tasks may compute values: their terms can be stored."""
        dictionary = self.run.dictionary
        return isinstance(dictionary, PartialDictionary) and dictionary.extensible

    def _results_by_tasks(self, questions: DataFrame, terms: TermTable) -> DataFrame:
        """Answer many queries in tasks, as part of the next round's job."""
        run, partitions = self.run, self.run.partitions
        queries = self._task_queries
        literals = all(query.of_literals for query in queries.values())
        route = RouteQueries(partitions, frozenset(queries))
        parts = [run.map_chunks(questions, route), terms.texts(literals=literals)]
        if self._queries_values:
            parts.append(terms.values)
        term_result = TermResult(queries, self.plan, partitions)
        return run.map_chunks(run.shuffle(run.union(parts)), term_result)

    def _driver_rows(self, key: Key, rows: Ids) -> Ids:
        """Answer a query on the driver."""
        query, dictionary = self.queries[key], self.run.dictionary
        rows_found = query.rows(rows, dictionary)
        if query.broadcast:
            before = [] if self._broadcast is None else [self._broadcast.ids]
            self._broadcast = BroadcastTerms.of(
                np.concatenate([*before, rows_found[:, 0]]), dictionary
            )
        return rows_found
