"""Rules over many facts: rounds of local closures in tasks, with an exchange between them.

A round is one job: the facts that a partition holds and those that are new to it meet, the embedded
engine does the steps of the plan until nothing is new there, and what other partitions must know is
sent to them. When little is left to be sent, the driver finishes: it looks up what the few new
facts may join with, and does the same steps on them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.ids import missing_in, together
from corollary.engines.spark.answers import Answer, Asked, Question
from corollary.engines.spark.base import Base, Workspace, counts_of
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.filters import Column, Terms, occurring
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    RESULT,
    STATE,
    Gathering,
    Key,
)
from corollary.engines.spark.plan import ASKED, EVERYWHERE, UNIT, Plan, Source
from corollary.engines.spark.task import (
    Combine,
    Fetch,
    Local,
    Round,
    Route,
    narrow,
)
from corollary.engines.spark.terms import TermTable
from corollary.engines.spark.tuning import tuning
from corollary.engines.spark.views import Select

Operands = Sequence[tuple[str, SparkFacts, int]]  # name, facts, kind of chunks


@dataclass(frozen=True)
class RoundReport:
    """What one exchange did."""

    number: int
    phase: str  # "exchange", "driver" where the driver finished, or what a module's job did
    rows: int  # facts in the partitions, copies included
    new: int  # facts derived
    exchanged: int  # copies of facts sent to other partitions
    instances: int
    seconds: float  # from the driver's point of view
    busy: float  # seconds in tasks, together
    skew: float  # facts of the largest partition, as a multiple of the average

    @classmethod
    def of(
        cls, number: int, phase: str, reports: Sequence[Mapping[str, Any]], seconds: float
    ) -> RoundReport:
        """What the tasks of a job have reported, together."""
        rows = [r["in"] for r in reports] or [0]
        sums = {
            what: sum(r.get(what, 0) for r in reports)
            for what in ("derived", "sent", "instances", "seconds")
        }
        return cls(
            number,
            phase,
            sum(rows),
            sums["derived"],
            sums["sent"],
            sums["instances"],
            seconds,
            sums["seconds"],
            max(rows) * len(rows) / max(1, sum(rows)),
        )


@dataclass
class Evaluation:
    """A plan with its operands, run to the end."""

    workspace: Workspace
    plan: Plan
    asked: Mapping[Key, Asked] = field(default_factory=dict)
    compared: Collection[Column] = ()  # whose terms tasks are told
    counted: bool = False
    whole: bool = True  # whether all instances are wanted, not just those with new facts
    finish: int = field(default_factory=lambda: tuning.driver_finish_facts_limit)
    most_asked: int = field(default_factory=lambda: tuning.driver_terms_limit)
    on_round: Callable[[RoundReport, int], None] | None = None
    reports: list[RoundReport] = field(default_factory=list)
    _told: Terms | None = None  # terms that tasks compare

    def results(self, operands: Operands) -> tuple[Base, int]:
        """What the steps derive as results, and the instances of rules."""
        workspace = self.workspace
        combine = Combine("union", workspace.make, counted=int(self.counted))
        if all(source.operand == "r" for source in self.plan.targets):
            # One pass, and the results go home in the same job.
            start = time.perf_counter()
            self._tell_terms(operands)
            frame = self._round(self._routed(operands), first=True, keep=False)
            kept, reports = workspace.settled(workspace.over(workspace.exchanged(frame), combine))
            rounds = [r for r in reports if "instances" in r]
            self._tell(rounds, "exchange", time.perf_counter() - start)
        else:
            found = workspace.of_kinds(self._run(operands), RESULT)
            kept, reports = workspace.settled(workspace.over(workspace.exchanged(found), combine))
        counts, columns = counts_of(workspace, (r for r in reports if "instances" not in r))
        return Base.of(workspace, [kept], counts, columns), self.instances

    def derived(self, operands: Operands) -> SparkFacts:
        """The facts that the steps add to their sources."""
        last = self.workspace.of_kinds(self._run(operands), DERIVED)
        base = Base.of(self.workspace, [last], *counts_of(self.workspace, self._counts))
        return SparkFacts(self.workspace, self._finished, base)

    @property
    def instances(self) -> int:
        """The instances of rules that were considered."""
        return sum(report.instances for report in self.reports)

    @property
    def _asks_values(self) -> bool:
        return any(asked.of_values for asked in self.asked.values())

    @property
    def _terms(self) -> TermTable | None:
        """What tasks answer questions by, if they can."""
        return self.workspace.terms

    @property
    def _for_tasks(self) -> dict[Key, Asked]:
        """Questions that tasks can answer; what they are told comes from the driver."""
        return {key: asked for key, asked in self.asked.items() if not asked.told}

    # -- rounds ----------------------------------------------------------------------------------

    def _routed(
        self, operands: Operands, given: Sequence[tuple[Source, Ids]] | None = None
    ) -> DataFrame:
        parts: list[DataFrame] = []
        few = Gathering()
        workspace, plan = self.workspace, self.plan
        for operand, facts, kind in operands:
            if facts.base is not None:
                route = Route(plan, operand, kind, workspace.partitions)
                chunks = facts.base.chunks(removed=workspace.packed(facts.removed))
                parts.append(workspace.over(chunks, route))
            route = Route(plan, operand, kind, workspace.partitions)
            for key, rows in workspace.packed(facts.small).items():
                route.add(few, key, rows)
        if given is None:
            given = ((UNIT.source, np.zeros((1, 0), np.uint32)),)
        fresh = self.whole or all(kind == FRESH for *_, kind in operands)
        for source, rows in given:
            self._send(few, FRESH if fresh else STATE, source, rows)
        frame = workspace.chunks(few)
        if frame is not None:
            parts.append(frame)
        if not parts:
            parts.append(workspace.nothing())
        return workspace.united(parts)

    def _send(self, out: Gathering, kind: int, source: Source, rows: Ids) -> None:
        """Send the rows of a source where its placed relations are."""
        for number in self.plan.numbers(source):
            self._send_placed(out, kind, number, rows)

    def _send_placed(self, out: Gathering, kind: int, number: int, rows: Ids) -> None:
        placed = self.plan.placed[number]
        place = None if placed.place == EVERYWHERE else placed.place
        key = (number, NONE, NONE, placed.source.key[3])
        out.send(kind, key, rows, place, self.workspace.partitions)

    def _tell_terms(self, operands: Operands) -> None:
        """Have the terms that filters compare for the tasks."""
        if self.compared:
            ids = occurring(self.workspace, self.plan, operands, self.compared)
            self._told = Terms.of(ids, self.workspace.dictionary)

    def _prepared(self, old: DataFrame) -> DataFrame:
        """Facts that are not new, with the auxiliary relations of all of them."""
        first = True
        while True:
            frame = self._round(old, first=first, cuts=True)
            frame, reports = self.workspace.settled(frame)
            first = False
            asked = sum(r["asked"] for r in reports)
            answers = self._answers(frame, asked) if asked else None
            if not sum(r["sent"] for r in reports) and answers is None:
                return self.workspace.of_kinds(frame, STATE)
            old = self.workspace.of_kinds(frame, STATE, FRESH)
            if answers is not None:
                old = self.workspace.united([old, answers])

    def _round(
        self, frame: DataFrame, *, first: bool, keep: bool = True, cuts: bool = False
    ) -> DataFrame:
        workspace = self.workspace
        work = Round(
            self.plan,
            workspace.make,
            workspace.partitions,
            first,
            self.whole or cuts,
            self.counted,
            keep,
            cuts,
            Dictionary if self._told is None else self._told.dictionary,
        )
        return workspace.over(workspace.exchanged(frame), work)

    def _run(self, operands: Operands) -> DataFrame:
        self._counts: list[dict[str, Any]] = []
        self._finished: Any = self.workspace.embedded.facts({})
        self._tell_terms(operands)
        if self.whole or not any(step.cut for step in self.plan.steps):
            frame = self._routed(operands)
        else:
            old = self._routed([(o, facts, FRESH) for o, facts, kind in operands if kind == STATE])
            new = self._routed([operand for operand in operands if operand[2] == FRESH], given=())
            frame = self.workspace.united([self._prepared(old), new])
        first = True
        while True:
            start = time.perf_counter()
            frame, reports = self.workspace.settled(self._round(frame, first=first))
            first = False
            self._counts += reports
            self._tell(reports, "exchange", time.perf_counter() - start)
            sent, asked = (sum(r[what] for r in reports) for what in ("sent", "asked"))
            if not sent and not asked:
                return frame
            more = self._answers(frame, asked) if asked else None
            if not sent and more is None:
                return frame
            if not asked and sent <= self.finish and not any(r["everywhere"] for r in reports):
                waiting = self._finish(frame)
                if waiting is None:
                    return frame
                left = self.workspace.of_kinds(frame, STATE, DERIVED, RESULT)
                frame = self.workspace.united([left, waiting])
                continue
            frame = self.workspace.of_kinds(frame, STATE, FRESH, DERIVED, RESULT)
            if more is not None:
                frame = self.workspace.united([frame, more])

    def _tell(self, reports: Sequence[Mapping[str, Any]], phase: str, seconds: float) -> None:
        found = RoundReport.of(len(self.reports) + 1, phase, reports, seconds)
        self.reports.append(found)
        if self.on_round is not None:
            total = sum(r.new for r in self.reports)
            self.on_round(found, total)

    def _answers(self, frame: DataFrame, count: int) -> DataFrame | None:
        """The values for which conditions hold, of those that tasks have met."""
        workspace = self.workspace
        questions = workspace.for_driver(frame)
        terms = self._terms
        # The numbers of values are others on the driver.
        answered = None
        if terms is not None and (self._asks_values or count > self.most_asked):
            answered = self._answered(questions, terms)
            told = self.asked.keys() - self._for_tasks.keys()
            if not told:
                return answered
            questions = workspace.over(questions, Select(DERIVED, frozenset(told), {}))
        found = workspace.collected(questions)
        out = Gathering()
        for key, rows in found.items():
            self._send(out, FRESH, self.asked[key].answers, self._told_of(key, rows))
        more = workspace.chunks(out)
        if answered is None or more is None:
            return answered if more is None else more
        return workspace.united([answered, more])

    def _answered(self, questions: DataFrame, terms: TermTable) -> DataFrame:
        """The answers to many questions, by tasks, when the next round reads them."""
        workspace, partitions = self.workspace, self.workspace.partitions
        asked = self._for_tasks
        literals = all(question.of_literals for question in asked.values())
        question = Question(partitions, frozenset(asked))
        parts = [workspace.over(questions, question), terms.texts(literals=literals)]
        if self._asks_values:
            parts.append(terms.values)
        answer = Answer(asked, self.plan, partitions)
        return workspace.over(workspace.exchanged(workspace.united(parts)), answer)

    def _told_of(self, key: Key, rows: Ids) -> Ids:
        """The driver's answer to a question."""
        asked, dictionary = self.asked[key], self.workspace.dictionary
        answers = asked.rows(rows, dictionary)
        if asked.told:
            before = [] if self._told is None else [self._told.ids]
            self._told = Terms.of(np.concatenate([*before, answers[:, 0]]), dictionary)
        return answers

    # -- the driver ------------------------------------------------------------------------------

    def _finish(self, frame: DataFrame) -> DataFrame | None:
        """Do the rest on the driver; returns what waits to be sent if it becomes too much."""
        start = time.perf_counter()
        workspace, plan = self.workspace, self.plan
        waiting = {
            key[0]: rows
            for key, rows in workspace.collected(workspace.of_kinds(frame, FRESH)).items()
        }
        filtered = any(step.conditions for step in plan.steps)
        local = Local(plan, workspace.make, dictionary=workspace.dictionary if filtered else None)
        linked = _linked(plan)
        known, looked = local.facts({}), [np.zeros(0, np.uint32) for _ in plan.placed]
        whole: set[int] = set()
        homes = {number: source.key for source, number in plan.homes.items()}
        new, instances, rounds, results = local.facts({}), 0, 0, Gathering()
        done: dict[int, list[Ids]] = {}
        while waiting:
            rounds += 1
            known = known.union(self._looked_up(frame, waiting, linked, looked, whole, local))
            delta = local.facts({n: [rows] for n, rows in waiting.items()}).difference(known)
            known = known.union(delta)
            new = new.union(delta.only([local.numbers[n] for n in homes]))
            for predicate in delta.predicates():
                done.setdefault(local.number_of[predicate], []).append(delta.rows(predicate))
            waiting = {}
            if not len(delta):
                break
            found, more = local.advance(known, delta, self.counted)
            instances += more
            placed: dict[int, list[Ids]] = {}
            for target, rows, counts in found:
                source = plan.targets[target]
                if source.operand == ASKED:
                    asked = self.asked[source.key]
                    if asked.of_values and self._terms is not None:
                        rows = self._terms.values_of(rows[:, 0])
                    else:
                        rows = self._told_of(source.key, rows)
                    for number in plan.numbers(asked.answers):
                        placed.setdefault(number, []).append(rows)
                    continue
                if source.operand == "r":
                    Round(plan, workspace.make, workspace.partitions)._results(
                        results, source.key, rows, counts
                    )
                    continue
                for reader, part in plan.readers(source.operand, source.key, rows):
                    for number in plan.numbers(reader):
                        if len(part):
                            placed.setdefault(number, []).append(part)
            merged = {number: np.concatenate(rows) for number, rows in placed.items()}
            waiting = {number: rows for number, rows in merged.items() if len(rows)}
            if (
                sum(map(len, waiting.values())) > self.finish
                or rounds >= tuning.driver_rounds_limit
            ):
                break
        return self._put_back(
            waiting, done, new, homes, results, local, instances, time.perf_counter() - start
        )

    def _put_back(
        self,
        waiting: Mapping[int, Ids],
        done: Mapping[int, list[Ids]],
        new: Any,
        homes: Mapping[int, Key],
        results: Gathering,
        local: Local,
        instances: int,
        seconds: float,
    ) -> DataFrame | None:
        workspace, plan = self.workspace, self.plan
        report = {
            "in": 0,
            "derived": len(new),
            "sent": sum(map(len, waiting.values())),
            "instances": instances,
            "seconds": 0.0,
        }
        self._tell([report], "driver", seconds)
        tables: dict[Key, Ids] = {}
        for number, home in homes.items():
            if len(rows := new.rows(local.numbers[number])):
                tables.update(narrow(home, rows, plan.type_id))
        self._finished = self._finished.union(workspace.unpacked(tables))
        left = workspace.chunks(results)
        if not waiting:
            return left
        # What the driver found belongs to the partitions, and the rounds go on there.
        out = Gathering()
        for kind, found in ((STATE, done), (FRESH, {n: [r] for n, r in waiting.items()})):
            for number, parts in found.items():
                self._send_placed(out, kind, number, np.concatenate(parts))
        frame = workspace.chunks(out)
        assert frame is not None, "something waits"
        return frame if left is None else workspace.united([frame, left])

    def _looked_up(
        self,
        frame: DataFrame,
        waiting: Mapping[int, Ids],
        linked: Sequence[frozenset[int]],
        looked: list[Ids],
        whole: set[int],
        local: Local,
    ) -> Any:
        """What partitions hold by the keys of facts that wait."""
        wanted: dict[Key, Any] = {}
        plan = self.plan
        for number, rows in waiting.items():
            place = plan.placed[number].place
            everything = place == EVERYWHERE or not rows.shape[1]
            for other in linked[number]:
                key = (other, NONE, NONE, plan.placed[other].source.key[3])
                column = plan.placed[other].place
                if other in whole:
                    continue
                if everything or column == EVERYWHERE or not key[3]:
                    wanted[key] = None
                    whole.add(other)
                elif key not in wanted or wanted[key] is not None:
                    ids = missing_in(looked[other], rows[:, place])
                    if len(ids):
                        before = wanted.get(key, {}).get(column, ids)
                        wanted[key] = {column: together(before, ids)}
        for key, places in wanted.items():
            if places is not None:
                [ids] = places.values()
                looked[key[0]] = together(looked[key[0]], ids)
        if not wanted:
            return local.facts({})
        replicated = frozenset(key for key in wanted if plan.placed[key[0]].place == EVERYWHERE)
        fetch = Fetch(STATE, wanted, replicated=replicated)
        found = self.workspace.collected(self.workspace.over(frame, fetch))
        return local.facts({key[0]: [rows] for key, rows in found.items()})


def _linked(plan: Plan) -> list[frozenset[int]]:
    """Which placed relations facts of each one meet: in a body, and itself."""
    found = [{number} for number in range(len(plan.placed))]
    for step in plan.steps:
        numbers = {n for n, _ in (*step.body, *step.negated)}
        for number, _ in step.body:
            found[number] |= numbers
    return [frozenset(numbers) for numbers in found]
