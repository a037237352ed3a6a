"""The Spark engine: the operators of `core` over facts in partitions.

Small operands are evaluated on the driver by the embedded engine, which tasks also use: over few
facts, a Spark job takes longer than the whole operation. Large operands become a plan of local
steps (`plan`), run in rounds (`evaluate`). For a small delta of a large set, the driver looks up
its possible join partners (`lookups`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.core import graph_engine
from corollary.core.compile import CompiledRule, Grouping
from corollary.core.connected import count_pairs
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, Difference, OnRound, Support
from corollary.core.ids import in_order
from corollary.engines.spark import closures
from corollary.engines.spark.aggregates import groups_of, instances_rule
from corollary.engines.spark.base import SparkRun, TooManyFacts
from corollary.engines.spark.components import component_changes, components
from corollary.engines.spark.counts import LazyCounts, SparkCounts
from corollary.engines.spark.evaluate import Evaluation
from corollary.engines.spark.facts import SparkFacts, look_up, wrap
from corollary.engines.spark.frames import (
    read,
    read_distinct,
    read_few,
    read_rows,
    table,
    write,
)
from corollary.engines.spark.lookups import Lookups
from corollary.engines.spark.options import EngineOptions
from corollary.engines.spark.packing import FRESH, STATE
from corollary.engines.spark.plan import Source, SourceAtom
from corollary.engines.spark.reports import RoundReport
from corollary.engines.spark.session import STEADY, build_session
from corollary.engines.spark.task import Embedded
from corollary.engines.spark.translate import (
    Translation,
    delta_readings,
    support_readings,
)
from corollary.lang.stratify import Predicate


class SparkEngine:
    """Evaluates rules with Spark; starts a session on first use, unless given one.

    `embedded` creates the engine of tasks and of the driver. Facts of `replicated` predicates, such
    as those of a schema, are replicated up to a limit even if rules derive them, so that rules
    about them join locally.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        embedded: Embedded,
        session: SparkSession | None = None,
        **options: Any,
    ) -> None:
        """`options` are those of `EngineOptions`."""
        self.dictionary = dictionary
        chosen = EngineOptions(**options)
        self.run = SparkRun(
            lambda: session or build_session(chosen.master, config=STEADY | dict(chosen.config)),
            dictionary,
            embedded,
            chosen,
        )
        self.replicated = frozenset(self.run.options.replicated)

    @property
    def reports(self) -> list[RoundReport]:
        """The rounds and jobs so far."""
        return self.run.reports

    def facts(self, tables: Mapping[Predicate, Ids]) -> SparkFacts:
        """Create a set of facts from rows (narrow predicates, duplicates allowed)."""
        return wrap(self.run, self.run.embedded.facts(tables))

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
        """Evaluate Π[facts, negative : delta, negative_delta]; see `core.engine.Engine.derive`."""
        body, absent = _predicates_read(rules)
        head = [rule.head.predicate for rule in rules]
        sets = {
            "f": facts.only(body),
            "n": (facts if negative is None else negative).only(absent),
            "d": None if delta is None else delta.only(body),
            "e": None if negative_delta is None else negative_delta.only(absent),
            "h": None if heads is None else heads.only(head),
        }
        views: tuple[Any, ...] | None
        if self._fits_driver(sets.values()):
            views = tuple(None if s is None else s.local() for s in sets.values())
        else:
            views = self._look_up_bodies(rules, sets, counted)
        if views is not None:
            f, n, d, e, h = views
            derived = self.run.embedded.derive(
                rules, f, negative=n, delta=d, negative_delta=e, heads=h, counted=counted
            )
            return Derived(wrap(self.run, derived.facts), derived.instances, counts=derived.counts)
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
        """Compute the least J with Π[facts ∪ J, negative : delta ∪ J] ⊆ facts ∪ J, less `facts`."""
        body, absent = _predicates_read(rules)
        read = [*body, *(rule.head.predicate for rule in rules)]
        sets = {
            "f": facts.only(read),
            "n": (facts if negative is None else negative).only(absent),
            "d": delta.only(read),
        }
        if not len(sets["d"]):
            return Derived(self.facts({}), 0, 0)
        shape = closures.Shape.of(rules)
        fits = self._fits_driver(sets.values())
        if fits and (
            shape is None or closures.fits(rules[0], sets["f"], self.run.driver_pairs_limit)
        ):
            f, n, d = (s.local() for s in sets.values())
            closed = self.run.embedded.close(rules, f, d, negative=n, on_round=on_round)
            facts_closed = wrap(self.run, closed.facts).assume_disjoint(facts)
            return Derived(facts_closed, closed.instances, closed.rounds)
        few_new = self._fits_lookup_rounds(sets["d"])
        if (
            shape is not None
            and (fits or not few_new)
            and self._edges_fit_tasks(rules[0], sets["f"])
        ):
            derived = closures.close_linear(rules[0], shape, sets["f"], sets["d"])
            if on_round is not None:
                on_round(1, len(derived.facts))
            return Derived(
                derived.facts.collect_if_small().assume_disjoint(facts), derived.instances
            )
        if few_new and not any(rule.groupings or rule.computes for rule in rules):
            return self._close_by_lookup(rules, facts, delta, negative, on_round)
        translation = self._translation(sets, rules, recursive=True)
        for rule in rules:
            head = translation.atom("f", rule.head)
            absent_atoms = translation.atoms("n", rule.negated)
            translation.add(rule, head, (translation.atoms("f", rule.body), absent_atoms, []))
        all_new = len(sets["f"]) == len(sets["d"])  # Δ is the whole set
        work = Evaluation(translation, all_new=all_new, on_round=on_round)
        operands = [("f", sets["d"], FRESH), ("n", sets["n"], FRESH if all_new else STATE)]
        if "g" in translation.operands:
            operands.append(("g", translation.operands["g"], operands[1][2]))
        if not all_new:
            operands.append(("f", sets["f"].difference(sets["d"]), STATE))
        derived_facts = work.derived(operands).collect_if_small()
        return Derived(derived_facts.assume_disjoint(facts), work.instances, len(work.reports))

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
        """Yield, rule by rule, the instances whose head is in `heads` and whose body holds."""
        rules = [rule for rule in rules if len(heads.only([rule.head.predicate]))]
        body, absent = _predicates_read(rules)
        sets = {
            "h": heads.only([rule.head.predicate for rule in rules]),
            "f": within.only(body),
            "n": (within if negative is None else negative).only(absent),
            "p": None if unproved is None else unproved.only(body),
        }
        if self._fits_driver(sets.values()):
            views: Any = [None if s is None else s.local() for s in sets.values()]
        else:
            views = self._look_up_support(rules, sets)
        if views is not None:
            h, f, n, p = views
            yield from self.run.embedded.support(
                rules, h, within=f, negative=n, unproved=p, several=several
            )
            return
        translation = self._translation(sets, rules)
        names = [Predicate(f"INSTANCES {number}") for number in range(len(rules))]
        for rule, name in zip(rules, names, strict=True):
            key = self.run.key(name, rule.bound)
            head = SourceAtom(Source("r", key), tuple(range(rule.bound)))
            for positive, away, present in support_readings(
                translation, rule, unproved=unproved is not None, several=several
            ):
                atoms = [translation.atom("h", rule.head), *positive]
                translation.add(rule, head, (atoms, away, present))
        instances = self._results(translation, False).facts
        for rule, name in zip(rules, names, strict=True):
            if len(rows := instances.rows(name)):
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
        """Maintain the closure of a linear rule: the pairs gained and lost."""
        sets = (before, after, changed, known)
        if self._fits_driver(sets) and closures.fits(rule, after, self.run.driver_pairs_limit):
            b, a, c, k = (s.local() for s in sets)
            found = graph_engine.reclose(self.run.embedded, rule, b, a, changed=c, known=k)
            return self._wrap_difference(found)
        shape = closures.Shape.of([rule])
        assert shape is not None, "the rule is linear"
        if self._edges_fit_tasks(rule, after):
            return closures.closure_changes(rule, shape, after, changed, known)
        pairs = after.only([rule.head.predicate])
        closed = self.close([rule], after, pairs)
        facts = pairs.union(closed.facts)
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
        """Maintain the pairs of connected components: those gained and lost."""
        sets = (before, after, changed, known)
        parts: tuple[Any, Any, Any] | None = None
        if self._fits_driver(sets):
            parts = self._if_pairs_fit(edge, before.local(), after.local(), known.local())
        elif self._fits_lookup_rounds(changed) and len(before):
            with suppress(TooManyFacts):
                parts = self._changed_components(edge, pair, before, after, changed, known)
        if parts is None:
            return component_changes(edge, pair, before, after)
        b, a, k = parts
        now = changed.local()
        changes = graph_engine.reconnect(self.run.embedded, edge, pair, b, a, changed=now, known=k)
        return self._wrap_difference(changes)

    def components(self, edge: Predicate, least: Predicate, facts: SparkFacts) -> SparkFacts:
        """Label each node with the least node of its connected component."""
        own = facts.only([edge])
        if self._fits_driver([own]):
            return wrap(
                self.run, graph_engine.components(self.run.embedded, edge, least, own.local())
            )
        return components(own, edge, least).collect_if_small()

    def _if_pairs_fit(
        self, edge: Predicate, before: Any, after: Any, known: Any
    ) -> tuple[Any, Any, Any] | None:
        """Return the facts on the driver if their pairs also fit there, else None."""
        pairs = sum(count_pairs(f.rows(edge).reshape(-1, 2)) for f in (before, after))
        return (before, after, known) if pairs <= self.run.driver_pairs_limit else None

    def _changed_components(
        self,
        edge: Predicate,
        pair: Predicate,
        before: SparkFacts,
        after: SparkFacts,
        changed: SparkFacts,
        known: SparkFacts,
    ) -> tuple[Any, Any, Any] | None:
        """Look up the components of changed edges, before and after; None if they are large."""
        nodes = in_order(changed.local().rows(edge).ravel())
        while len(nodes) <= self.run.small // 4:
            places = {edge: {0: nodes, 1: nodes}}
            parts = [look_up(facts, places) for facts in (before, after)]
            reached = in_order(np.concatenate([nodes, *(p.rows(edge).ravel() for p in parts)]))
            if len(reached) == len(nodes):
                if self._if_pairs_fit(edge, parts[0], parts[1], None) is None:
                    return None
                return parts[0], parts[1], look_up(known, {pair: {0: nodes}})
            nodes = reached
        return None

    def counts(self) -> SparkCounts:
        """Create counts that are all 0."""
        return SparkCounts(self.run)

    # -- small operands against large ones -------------------------------------------------------

    def _fits_lookup_rounds(self, facts: SparkFacts | None) -> bool:
        """Whether a recursion from these facts may run by look-ups, round by round."""
        return facts is not None and len(facts) <= self.run.small // 4

    def _fits_lookup(self, facts: SparkFacts | None) -> bool:
        """Whether the join partners of these facts may be looked up once."""
        return facts is not None and len(facts) <= self.run.small + self.run.small // 4

    def _look_up_bodies(
        self,
        rules: Sequence[CompiledRule],
        sets: Mapping[str, SparkFacts | None],
        counted: bool,
    ) -> tuple[Any, ...] | None:
        """Look up the operands of `derive` if each instance uses one of few facts; else None."""
        facts, negative = sets["f"], sets["n"]
        assert facts is not None
        starts = [sets[letter] for letter in "deh" if sets[letter] is not None]
        if (
            not starts
            or not all(map(self._fits_lookup, starts))
            or any(r.groupings or r.computes for r in rules)
        ):
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
        return (f if d is None else f.union(d), n, d, e, h)

    def _close_by_lookup(
        self,
        rules: Sequence[CompiledRule],
        facts: SparkFacts,
        delta: SparkFacts,
        negative: SparkFacts | None,
        on_round: OnRound | None,
    ) -> Derived[SparkFacts]:
        """Close in rounds of `derive`, each over the join partners of the last round's facts."""
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
        return Derived(total.assume_disjoint(facts), instances, rounds)

    def _look_up_support(
        self, rules: Sequence[CompiledRule], sets: Mapping[str, SparkFacts | None]
    ) -> tuple[Any, Any, Any, Any] | None:
        """Look up the facts of `support` that few heads may use; None if they are too many.

        One look-up serves all rules.
        """
        heads, facts = sets["h"], sets["f"]
        assert heads is not None
        assert facts is not None
        if not self._fits_lookup(heads) or any(r.groupings or r.computes for r in rules):
            return None
        lookups = Lookups(facts, sets["n"], sets["p"])
        own = heads.local()
        for rule in rules:
            lookups.begin(rule, rule.head, own, rule.body)
        views = lookups.run()
        return None if views is None else (own, *views, lookups.extra)

    # -- large operands --------------------------------------------------------------------------

    def _fits_driver(self, sets: Any) -> bool:
        """Whether all sets together fit on the driver."""
        return sum(len(s) for s in sets if s is not None) <= self.run.small

    def _wrap_difference(self, changes: Difference[Any]) -> Difference[SparkFacts]:
        whole = None if changes.facts is None else wrap(self.run, changes.facts)
        return Difference(
            wrap(self.run, changes.inserted),
            wrap(self.run, changes.deleted),
            changes.instances,
            whole,
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
            self.run,
            operands,
            rules if recursive else (),
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

    def _results(self, translation: Translation, counted: bool) -> Derived[SparkFacts]:
        if not translation.plan.steps:
            nothing = SparkFacts(self.run, self.run.nothing)
            return Derived(nothing, 0, counts={} if counted else None)
        work = Evaluation(translation, counted=counted)
        read = {placement.source.operand for placement in translation.plan.placements}
        base, instances = work.results(
            [(o, facts, FRESH) for o, facts in translation.operands.items() if o in read]
        )
        if counted:
            rows = LazyCounts(base)
            return Derived(rows.facts, instances, counts=rows)
        return Derived(SparkFacts.of(base).collect_if_small(), instances)

    def _edges_fit_tasks(self, rule: CompiledRule, facts: SparkFacts) -> bool:
        """Whether the edges of a linear rule can be replicated to all tasks."""
        return len(facts.only([closures.edges_of(rule)])) <= self.run.options.edges

    # -- DataFrames ------------------------------------------------------------------------------

    def read(self, frame: DataFrame) -> SparkFacts:
        """Read the facts of a DataFrame: relation, arg0, arg1, …; duplicates allowed."""
        return read(self.run, frame)

    def read_few(self, frame: DataFrame, relations: Collection[str]) -> SparkFacts:
        """Read the facts of a small DataFrame, of known relations; duplicates allowed."""
        return wrap(self.run, read_few(self.run, frame, relations))

    def read_rows(self, rows: pa.Table, relations: Collection[str]) -> SparkFacts:
        """Read the facts of a table on the driver, of known relations; duplicates allowed."""
        return wrap(self.run, read_rows(self.run, rows, relations))

    def read_stored(
        self, frame: DataFrame, relations: Collection[str]
    ) -> tuple[SparkFacts, SparkFacts]:
        """Read the explicit facts and all facts of a DataFrame with a column `explicit`.

        Rows must be distinct and of these relations. Nothing is shuffled, and the two sets share
        their common chunks, so set operations between them need no job.
        """
        explicit, others = (
            read_distinct(self.run, frame.where(chosen), relations)
            for chosen in ("explicit", "NOT explicit")
        )
        return explicit, explicit.union(others.assume_disjoint(explicit))

    def table(self, facts: SparkFacts, *, width: int = 3) -> pa.Table:
        """Convert facts of the driver to rows: relation, arg0, arg1, …"""
        return table(self.run, facts.small, width)

    def frame(self, facts: SparkFacts, *, width: int = 3) -> DataFrame:
        """Convert facts to a DataFrame: relation, arg0, arg1, …"""
        return write(self.run, facts, width)


def _groupings(rules: Sequence[CompiledRule]) -> Collection[Grouping]:
    return dict.fromkeys(grouping for rule in rules for grouping in rule.groupings)


def _predicates_read(rules: Sequence[CompiledRule]) -> tuple[list[Predicate], list[Predicate]]:
    """Return the predicates of body atoms, and those of negated and aggregated atoms."""
    patterns = [p for rule in rules for p in rule.negated]
    patterns += [p for grouping in _groupings(rules) for p in grouping.patterns]
    body = [p.predicate for rule in rules for p in rule.body]
    return body, [p.predicate for p in patterns]
