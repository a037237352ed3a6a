"""The Spark engine: the operators of `core` over facts in partitions.

What is small is computed on the driver by the embedded engine, which is also what tasks use: over
few facts a Spark job is slower than the whole operation. What is large is a plan of local steps
(`plan`), run in rounds (`evaluate`). A small change of many facts is computed on the driver over
what it may join with, which is looked up (`lookups`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from corollary.core.compile import CompiledRule, Grouping, Pattern
from corollary.core.connected import count_pairs
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, Difference, OnRound, Support
from corollary.core.ids import in_order
from corollary.engines.spark import closures
from corollary.engines.spark.aggregates import groups_of, instances_rule
from corollary.engines.spark.base import Workspace
from corollary.engines.spark.components import components, reconnected
from corollary.engines.spark.counts import CountsOfRows, SparkCounts
from corollary.engines.spark.evaluate import Evaluation, RoundReport
from corollary.engines.spark.facts import SparkFacts, looked_up, spilled
from corollary.engines.spark.frames import read, read_distinct, read_few, write
from corollary.engines.spark.lookups import Lookups
from corollary.engines.spark.packing import FRESH, STATE
from corollary.engines.spark.plan import AtomOf, Source
from corollary.engines.spark.session import STEADY, build_session
from corollary.engines.spark.task import Embedded
from corollary.engines.spark.terms import TermTable
from corollary.engines.spark.translate import (
    Translation,
    body_readings,
    delta_readings,
)
from corollary.engines.spark.tuning import tuning
from corollary.lang.stratify import Predicate


class SparkEngine:
    """Evaluates rules with Spark; starts a session when first needed, unless given one.

    `embedded` makes the engine of tasks and of the driver. Sets of at most `small` facts are kept
    on the driver; others are cut into `partitions`. The driver finishes when at most `finish` facts
    wait to be exchanged; relations of at most `tiny` facts are sent everywhere, and so are at most
    `edges` edges of a linear recursion. Facts of `replicated` predicates are sent everywhere even
    where rules derive them, up to a limit: those of a schema, so that rules about it join locally.
    One task finds the components of as many edges. `terms` is the table (id, term) of a dictionary
    that has only some of them: tasks then answer filters themselves if more than `asked` terms are
    in question.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        embedded: Embedded,
        session: SparkSession | None = None,
        *,
        small: int | None = None,
        partitions: int | None = None,
        finish: int | None = None,
        tiny: int | None = None,
        edges: int | None = None,
        replicated: Collection[Predicate] = (),
        terms: DataFrame | None = None,
        asked: int | None = None,
        on_report: Callable[[RoundReport], None] | None = None,
    ) -> None:
        self.dictionary = dictionary
        if small is None:
            small = tuning.driver_facts_limit
        self.workspace = Workspace(
            lambda: session or build_session(config=STEADY), dictionary, embedded, small, partitions
        )
        self._finish = min(small, tuning.driver_finish_facts_limit) if finish is None else finish
        if terms is not None:
            self.workspace.terms = TermTable(self.workspace, terms)
        self._asked = tuning.driver_terms_limit if asked is None else asked
        self._tiny = tiny
        self.replicated = frozenset(replicated)
        self._edges = tuning.task_edges_limit if edges is None else edges
        self._most = tuning.driver_pairs_ratio * small
        self.on_report = on_report
        self.reports: list[RoundReport] = []

    def facts(self, tables: Mapping[Predicate, Ids]) -> SparkFacts:
        """A set of facts from rows (narrow predicates, duplicates allowed)."""
        return self._kept(self.workspace.embedded.facts(tables))

    def derive(
        self,
        rules: Sequence[CompiledRule],
        facts: SparkFacts,
        *,
        negative: SparkFacts | None = None,
        delta: SparkFacts | None = None,
        negative_delta: SparkFacts | None = None,
        heads: SparkFacts | None = None,
        counted: bool = False,
    ) -> Derived[SparkFacts]:
        """Π[facts, negative : delta, negative_delta]; see `core.engine.Engine.derive`."""
        body = [p.predicate for rule in rules for p in rule.body]
        absent = [p.predicate for rule in rules for p in (*rule.negated, *_grouped(rule))]
        head = [rule.head.predicate for rule in rules]
        sets = {
            "f": facts.only(body),
            "n": (facts if negative is None else negative).only(absent),
            "d": None if delta is None else delta.only(body),
            "e": None if negative_delta is None else negative_delta.only(absent),
            "h": None if heads is None else heads.only(head),
        }
        if self._fits(sets.values()):
            f, n, d, e, h = (None if s is None else s.local() for s in sets.values())
            found = self.workspace.embedded.derive(
                rules, f, negative=n, delta=d, negative_delta=e, heads=h, counted=counted
            )
            return Derived(self._kept(found.facts), found.instances, counts=found.counts)
        few = self._by_lookups(rules, sets, counted)
        if few is not None:
            return few
        translation = self._translation(sets, rules)
        for rule in rules:
            readings = delta_readings(
                translation,
                rule,
                delta=delta is not None,
                negative_delta=negative_delta is not None,
            )
            self._add(translation, rule, readings, heads is not None)
        return self._results(translation, counted)

    def close(
        self,
        rules: Sequence[CompiledRule],
        facts: SparkFacts,
        delta: SparkFacts,
        *,
        negative: SparkFacts | None = None,
        on_round: OnRound | None = None,
    ) -> Derived[SparkFacts]:
        """The least J with Π[facts ∪ J, negative : delta ∪ J] ⊆ facts ∪ J, less `facts`."""
        read = [p.predicate for rule in rules for p in (rule.head, *rule.body)]
        absent = [p.predicate for rule in rules for p in (*rule.negated, *_grouped(rule))]
        sets = {
            "f": facts.only(read),
            "n": (facts if negative is None else negative).only(absent),
            "d": delta.only(read),
        }
        if not len(sets["d"]):
            return Derived(self.facts({}), 0, 0)
        shape = closures.Shape.of(rules)
        fits = self._fits(sets.values())
        if fits and (shape is None or closures.fits(rules[0], sets["f"], self._most)):
            f, n, d = (s.local() for s in sets.values())
            closed = self.workspace.embedded.close(rules, f, d, negative=n, on_round=on_round)
            kept = self._kept(closed.facts).apart_from(facts)
            return Derived(kept, closed.instances, closed.rounds)
        few = self._is_few(sets["d"])
        if shape is not None and (fits or not few) and self._has_few_edges(rules[0], sets["f"]):
            done = closures.closed(rules[0], shape, sets["f"], sets["d"], self._told)
            if on_round is not None:
                on_round(1, len(done.facts))
            return Derived(done.facts.settled().apart_from(facts), done.instances)
        if few and not any(rule.groupings for rule in rules):
            return self._close_few(rules, facts, delta, negative, on_round)
        translation = self._translation(sets, rules, recursive=True)
        for rule in rules:
            head = translation.atom("f", rule.head)
            absent_atoms = translation.atoms("n", rule.negated)
            translation.add(rule, head, (translation.atoms("f", rule.body), absent_atoms, []))

        def tell(report: RoundReport, total: int) -> None:
            self._report(report)
            if on_round is not None:
                on_round(report.number, total)

        work = self._evaluation(translation, tell)
        work.whole = len(sets["f"]) == len(sets["d"])  # Δ is all of it
        operands = [("f", sets["d"], FRESH), ("n", sets["n"], FRESH if work.whole else STATE)]
        if "g" in translation.operands:
            operands.append(("g", translation.operands["g"], operands[1][2]))
        if not work.whole:
            operands.append(("f", sets["f"].difference(sets["d"]), STATE))
        found = work.derived(operands).settled()
        return Derived(found.apart_from(facts), work.instances, len(work.reports))

    def support(
        self,
        rules: Sequence[CompiledRule],
        heads: SparkFacts,
        *,
        within: SparkFacts,
        negative: SparkFacts | None = None,
        unproved: SparkFacts | None = None,
        several: bool = False,
    ) -> Iterator[Support]:
        """Instances whose head is in `heads` and whose body holds, rule by rule."""
        rules = [rule for rule in rules if len(heads.only([rule.head.predicate]))]
        body = [p.predicate for rule in rules for p in rule.body]
        absent = [p.predicate for rule in rules for p in (*rule.negated, *_grouped(rule))]
        sets = {
            "h": heads.only([rule.head.predicate for rule in rules]),
            "f": within.only(body),
            "n": (within if negative is None else negative).only(absent),
            "p": None if unproved is None else unproved.only(body),
        }
        if self._fits(sets.values()):
            views: Any = [None if s is None else s.local() for s in sets.values()]
        else:
            views = self._supporting(rules, sets)
        if views is not None:
            h, f, n, p = views
            yield from self.workspace.embedded.support(
                rules, h, within=f, negative=n, unproved=p, several=several
            )
            return
        translation = self._translation(sets, rules)
        names = [Predicate(f"INSTANCES {number}") for number in range(len(rules))]
        for rule, name in zip(rules, names, strict=True):
            key = self.workspace.key(name, rule.bound)
            head = AtomOf(Source("r", key), tuple(range(rule.bound)))
            for positive, away, present in body_readings(
                translation, rule, unproved=unproved is not None, several=several
            ):
                atoms = [translation.atom("h", rule.head), *positive]
                translation.add(rule, head, (atoms, away, present))
        found = self._results(translation, False).facts
        for rule, name in zip(rules, names, strict=True):
            if len(rows := found.rows(name)):
                yield Support(rule, rows)

    def reclose(
        self,
        rule: CompiledRule,
        before: SparkFacts,
        after: SparkFacts,
        *,
        changed: SparkFacts,
        known: SparkFacts,
    ) -> Difference[SparkFacts]:
        """By what the closure under a linear rule differs afterwards."""
        sets = (before, after, changed, known)
        if self._fits(sets) and closures.fits(rule, after, self._most):
            b, a, c, k = (s.local() for s in sets)
            return self._difference(self.workspace.embedded.reclose(rule, b, a, changed=c, known=k))
        shape = closures.Shape.of([rule])
        assert shape is not None, "the rule is linear"
        if self._has_few_edges(rule, after):
            return closures.reclosed(rule, shape, after, changed, known, self._told)
        given = after.only([rule.head.predicate])
        closed = self.close([rule], after, given)
        facts = given.union(closed.facts)
        return Difference(facts.difference(known), known.difference(facts), closed.instances, facts)

    def reconnect(
        self,
        edge: Predicate,
        pair: Predicate,
        before: SparkFacts,
        after: SparkFacts,
        *,
        changed: SparkFacts,
        known: SparkFacts,
    ) -> Difference[SparkFacts]:
        """By what the pairs of connected components differ afterwards."""
        sets = (before, after, changed, known)
        parts: tuple[Any, Any, Any] | None = None
        if self._fits(sets):
            parts = self._connected(edge, before.local(), after.local(), known.local())
        elif self._is_few(changed) and len(before):
            parts = self._near(edge, pair, before, after, changed, known)
        if parts is None:
            return reconnected(edge, pair, before, after, self._edges, self._told)
        b, a, k = parts
        found = self.workspace.embedded.reconnect(
            edge, pair, b, a, changed=changed.local(), known=k
        )
        return self._difference(found)

    def components(self, edge: Predicate, least: Predicate, facts: SparkFacts) -> SparkFacts:
        """Each node of an edge and the least node that it is connected to."""
        own = facts.only([edge])
        if self._fits([own]):
            return self._kept(self.workspace.embedded.components(edge, least, own.local()))
        return components(own, edge, least, self._edges, self._told).settled()

    def _connected(
        self, edge: Predicate, before: Any, after: Any, known: Any
    ) -> tuple[Any, Any, Any] | None:
        """The facts of the driver again, if it can also hold the pairs that they connect."""
        pairs = sum(count_pairs(f.rows(edge).reshape(-1, 2)) for f in (before, after))
        return (before, after, known) if pairs <= self._most else None

    def _near(
        self,
        edge: Predicate,
        pair: Predicate,
        before: SparkFacts,
        after: SparkFacts,
        changed: SparkFacts,
        known: SparkFacts,
    ) -> tuple[Any, Any, Any] | None:
        """The components of changed edges, before and after; None if they are large."""
        nodes = in_order(changed.local().rows(edge).ravel())
        while len(nodes) <= self.workspace.small // 4:
            places = {edge: {0: nodes, 1: nodes}}
            parts = [looked_up(facts, places) for facts in (before, after)]
            found = in_order(np.concatenate([nodes, *(p.rows(edge).ravel() for p in parts)]))
            if len(found) == len(nodes):
                if self._connected(edge, parts[0], parts[1], None) is None:
                    return None
                pairs = looked_up(known, {pair: {0: nodes}})
                return parts[0], parts[1], pairs
            nodes = found
        return None

    def release(self) -> None:
        """Let Spark forget what was kept of terms and of stored facts."""
        self.workspace.release()

    def counts(self) -> SparkCounts:
        """Counts that are all 0."""
        return SparkCounts(self.workspace)

    # -- few facts and many ----------------------------------------------------------------------

    def _is_few(self, facts: SparkFacts | None) -> bool:
        """Whether a recursion may go on from these facts by look-ups, round by round."""
        return facts is not None and len(facts) <= self.workspace.small // 4

    def _are_few(self, facts: SparkFacts | None) -> bool:
        """Whether what facts join with may be looked up once."""
        return facts is not None and len(facts) <= self.workspace.small + self.workspace.small // 4

    def _by_lookups(
        self,
        rules: Sequence[CompiledRule],
        sets: Mapping[str, SparkFacts | None],
        counted: bool,
    ) -> Derived[SparkFacts] | None:
        """`derive` on the driver, where each instance has one of few facts; else None."""
        facts, negative = sets["f"], sets["n"]
        assert facts is not None
        given = [sets[letter] for letter in "deh" if sets[letter] is not None]
        if not given or not all(map(self._are_few, given)) or any(r.groupings for r in rules):
            return None
        d, e, h = (None if (s := sets[letter]) is None else s.local() for letter in "deh")
        only_heads = d is None and e is None
        lookups = Lookups(facts, negative, any_will_do=only_heads and not counted)
        for rule in rules:
            if d is not None:
                for at, pattern in enumerate(rule.body):
                    others = [*rule.body[:at], *rule.body[at + 1 :]]
                    lookups.begin(rule, pattern, d, others)
            if e is not None:
                for pattern in rule.negated:
                    lookups.begin(rule, pattern, e, rule.body)
            if only_heads:
                lookups.begin(rule, rule.head, h, rule.body)
        views = lookups.run()
        if views is None:
            return None
        f, n = views
        found = self.workspace.embedded.derive(
            rules,
            f if d is None else f.union(d),
            negative=n,
            delta=d,
            negative_delta=e,
            heads=h,
            counted=counted,
        )
        return Derived(self._kept(found.facts), found.instances, counts=found.counts)

    def _close_few(
        self,
        rules: Sequence[CompiledRule],
        facts: SparkFacts,
        delta: SparkFacts,
        negative: SparkFacts | None,
        on_round: OnRound | None,
    ) -> Derived[SparkFacts]:
        """Rounds of `derive`, each over what the new facts of the last one may join with."""
        absent = facts if negative is None else negative
        full, total = facts, self.facts({})
        instances = rounds = 0
        while len(delta):
            step = self.derive(rules, full, negative=absent, delta=delta)
            delta = step.facts.difference(full)
            full, total = full.union(delta), total.union(delta)
            instances += step.instances
            rounds += 1
            if on_round is not None:
                on_round(rounds, len(total))
        return Derived(total.apart_from(facts), instances, rounds)

    def _supporting(
        self, rules: Sequence[CompiledRule], sets: Mapping[str, SparkFacts | None]
    ) -> tuple[Any, Any, Any, Any] | None:
        """The operands of `support` with what few heads need of them; None if that is too much.

        It is looked up for all rules together.
        """
        heads, facts = sets["h"], sets["f"]
        assert heads is not None
        assert facts is not None
        if not self._are_few(heads) or any(rule.groupings for rule in rules):
            return None
        lookups = Lookups(facts, sets["n"], sets["p"])
        own = heads.local()
        for rule in rules:
            lookups.begin(rule, rule.head, own, rule.body)
        views = lookups.run()
        return None if views is None else (own, *views, lookups.extra)

    # -- large operands --------------------------------------------------------------------------

    def _fits(self, sets: Any) -> bool:
        """Whether the driver can hold all of them."""
        return sum(len(s) for s in sets if s is not None) <= self.workspace.small

    def _kept(self, facts: Any) -> SparkFacts:
        if len(facts) > self.workspace.small:
            return spilled(self.workspace, facts)
        return SparkFacts(self.workspace, facts)

    def _difference(self, found: Difference[Any]) -> Difference[SparkFacts]:
        whole = None if found.facts is None else self._kept(found.facts)
        return Difference(
            self._kept(found.inserted), self._kept(found.deleted), found.instances, whole
        )

    def _translation(
        self,
        sets: Mapping[str, SparkFacts | None],
        rules: Sequence[CompiledRule],
        *,
        recursive: bool = False,
    ) -> Translation:
        operands = {letter: facts for letter, facts in sets.items() if facts is not None}
        if not recursive:
            if "d" in operands:
                operands["o"] = operands["f"].difference(operands["d"])
            if "e" in operands:
                operands["b"] = operands["n"].union(operands["e"])
        groups = {g: Predicate(f"GROUPS {n}") for n, g in enumerate(_groupings(rules))}
        if groups:
            operands["g"] = self.facts({})
        for grouping, name in groups.items():
            instances = self.derive([instances_rule(grouping)], operands["n"]).facts
            operands["g"] = operands["g"].union(groups_of(grouping, instances, name))
        return Translation(
            self.workspace,
            operands,
            rules if recursive else (),
            self._tiny,
            groups=groups,
            replicated=self.replicated,
        )

    def _add(
        self, translation: Translation, rule: CompiledRule, readings: Any, heads: bool
    ) -> None:
        head = translation.atom("r", rule.head)
        for positive, absent, present in readings:
            atoms = [*positive, translation.atom("h", rule.head)] if heads else positive
            translation.add(rule, head, (atoms, absent, present))

    def _evaluation(self, translation: Translation, tell: Any, counted: bool = False) -> Evaluation:
        return Evaluation(
            self.workspace,
            translation.plan,
            translation.asked,
            translation.compared,
            counted,
            finish=self._finish,
            most_asked=self._asked,
            on_round=tell,
        )

    def _results(self, translation: Translation, counted: bool) -> Derived[SparkFacts]:
        nothing = self.workspace.embedded.facts({})
        if not translation.plan.steps:
            return Derived(SparkFacts(self.workspace, nothing), 0, counts={} if counted else None)
        work = self._evaluation(translation, lambda report, _: self._report(report), counted)
        read = {placed.source.operand for placed in translation.plan.placed}
        base, instances = work.results(
            [(o, facts, FRESH) for o, facts in translation.operands.items() if o in read]
        )
        if counted:
            rows = CountsOfRows(base)
            return Derived(rows.facts, instances, counts=rows)
        return Derived(SparkFacts(self.workspace, nothing, base).settled(), instances)

    def _has_few_edges(self, rule: CompiledRule, facts: SparkFacts) -> bool:
        """Whether every task may have all edges of a linear rule."""
        return len(facts.only([closures.edges_of(rule)])) <= self._edges

    def _told(self, phase: str, reports: Sequence[Mapping[str, Any]], seconds: float) -> None:
        """Pass on what tasks of closures and components have reported."""
        self._report(RoundReport.of(len(self.reports) + 1, phase, reports, seconds))

    def _report(self, report: RoundReport) -> None:
        self.reports.append(report)
        if self.on_report is not None:
            self.on_report(report)

    # -- DataFrames ------------------------------------------------------------------------------

    def read(self, frame: DataFrame, *, triples: str = "triples") -> SparkFacts:
        """The facts of a DataFrame: relation, arg0, arg1, …; duplicates allowed."""
        return read(self.workspace, frame, triples)

    def read_few(
        self, frame: DataFrame, relations: Collection[str], *, triples: str = "triples"
    ) -> SparkFacts:
        """The facts of a DataFrame of few rows, of known relations; duplicates allowed."""
        return self._kept(read_few(self.workspace, frame, triples, relations))

    def read_stored(
        self, frame: DataFrame, relations: Collection[str], *, triples: str = "triples"
    ) -> tuple[SparkFacts, SparkFacts]:
        """The explicit facts of a DataFrame with a column `explicit`, and all facts.

        There are no duplicates, and these relations. Nothing is exchanged, and the two sets share
        what they have in common, so that operations between them cost no job.
        """
        explicit, others = (
            read_distinct(self.workspace, frame.where(chosen), triples, relations)
            for chosen in ("explicit", "NOT explicit")
        )
        return explicit, explicit.union(others.apart_from(explicit))

    def frame(self, facts: SparkFacts, *, triples: str = "triples", width: int = 3) -> DataFrame:
        """Facts as a DataFrame: relation, arg0, arg1, …"""
        return write(self.workspace, facts, triples, width)


def _groupings(rules: Sequence[CompiledRule]) -> Collection[Grouping]:
    return dict.fromkeys(grouping for rule in rules for grouping in rule.groupings)


def _grouped(rule: CompiledRule) -> list[Pattern]:
    return [pattern for grouping in rule.groupings for pattern in grouping.patterns]
