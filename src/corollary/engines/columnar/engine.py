"""`ColumnarEngine`: the operators of `core` over sorted columns.

Most rules of an ontology copy, transpose or project one atom; these pass on whole runs with their
indexes, without any work per fact. Compositions of two binary atoms are computed subject by subject
with marks. All other bodies go through the join pipeline.

The algorithms on graphs are imported when a rule needs them: a query over a store needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.compile import CompiledRule, Grouping
from corollary.core.delta import Operand
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, Difference, OnRound, Support
from corollary.core.notices import note
from corollary.engines.columnar.bindings import JoinAtom
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.collector import HeadCollector
from corollary.engines.columnar.compose import as_compositions, compose_into
from corollary.engines.columnar.counts import ColumnarCounts
from corollary.engines.columnar.exists import membership_check
from corollary.engines.columnar.facts import (
    ColumnarFacts,
    LazySet,
    Space,
    appended,
    consolidated,
)
from corollary.engines.columnar.join import Body, solve
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.layers import transpose
from corollary.engines.columnar.readings import (
    Job,
    Operands,
    Reading,
    delta_readings,
    full_reading,
    rename_into,
    split,
    unproved_readings,
)
from corollary.engines.columnar.relation import Relation
from corollary.engines.columnar.rule_index import RuleIndexes
from corollary.engines.columnar.semijoin import semijoin_into
from corollary.engines.columnar.small_join import small_join_into
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import Workers, with_workers
from corollary.lang.stratify import Predicate

if TYPE_CHECKING:
    from corollary.engines.columnar.closure_diff import LinearClosure, PairChanges


class ColumnarEngine:
    """The embedded engine; implements `core.engine.Engine`.

    >>> from corollary.algorithms.seminaive import materialize
    >>> from corollary.lang.program import Program
    >>> engine = ColumnarEngine(Dictionary())
    >>> program = Program.parse("p(?x, ?y) :- e(?x, ?y) . p(?x, ?z) :- e(?x, ?y), p(?y, ?z) .")
    >>> edges = engine.facts({Predicate("e"): np.array([[1, 2], [2, 3]], np.uint32)})
    >>> materialize(program, edges, engine).facts.rows(Predicate("p")).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """

    def __init__(
        self,
        dictionary: Dictionary,
        *,
        threads: int = 1,
        limit_memory: int | None = None,
        limit_facts: int | None = None,
    ) -> None:
        self.dictionary = dictionary
        self.workers = Workers(threads)
        self.space = Space(dictionary, Budget(limit_memory, limit_facts), self.workers)
        self._indexes = RuleIndexes()

    def with_dictionary(self, dictionary: Dictionary) -> ColumnarEngine:
        """Create an engine with the settings of this one, for a copy of its dictionary.

        Keys of wide facts mean the same in both.

        >>> ColumnarEngine(Dictionary(), threads=2).with_dictionary(Dictionary()).workers.threads
        2
        """
        budget = self.space.budget
        engine = ColumnarEngine(
            dictionary,
            threads=self.workers.threads,
            limit_memory=budget.limit,
            limit_facts=budget.facts,
        )
        engine.space.packing = self.space.packing
        return engine

    def facts(self, tables: Mapping[Predicate, Ids]) -> ColumnarFacts:
        """Create a set of facts from rows."""
        return ColumnarFacts(
            self.space, {p: self.space.relation(rows) for p, rows in tables.items() if len(rows)}
        )

    @with_workers
    def derive(
        self,
        rules: Sequence[CompiledRule],
        facts: ColumnarFacts,
        *,
        negative: ColumnarFacts | None = None,
        delta: ColumnarFacts | None = None,
        negative_delta: ColumnarFacts | None = None,
        heads: ColumnarFacts | None = None,
        counted: bool = False,
    ) -> Derived[ColumnarFacts]:
        """Π[facts, negative : delta, negative_delta], restricted to `heads` if given."""
        absent = negative if negative is not None else facts
        if heads is not None and delta is None and negative_delta is None and not counted:
            return self._derive_heads(rules, facts, absent, heads)
        # The limit applies to facts that are added, not to those that an update checks.
        collector = HeadCollector(
            self.space, counted=counted, known=facts if delta is None else None
        )
        if delta is None and negative_delta is None:
            jobs = [(rule, full_reading(rule, facts, absent)) for rule in rules]
        else:
            empty = self.facts({})
            changed = delta if delta is not None else empty
            removed = negative_delta if negative_delta is not None else empty
            operands: Operands = {
                Operand.FACTS: facts,
                Operand.OLD: LazySet(Relation.difference, facts, changed),
                Operand.DELTA: changed,
                Operand.ABSENT: absent,
                Operand.WIDE_ABSENT: LazySet(Relation.union, absent, removed),
                Operand.REMOVED: removed,
            }
            index = self._indexes.of(rules)
            touched = rules if index is None else index.reading(changed, removed)
            jobs = [
                (rule, reading) for rule in touched for reading in delta_readings(rule, operands)
            ]
            if not jobs and not counted:
                return Derived(empty, 0)
        self._run(jobs, absent, collector, heads)
        derived = collector.facts()
        return Derived(
            derived, collector.instances, counts=collector.counts(derived) if counted else None
        )

    def _derive_heads(
        self,
        rules: Sequence[CompiledRule],
        facts: ColumnarFacts,
        absent: ColumnarFacts,
        heads: ColumnarFacts,
    ) -> Derived[ColumnarFacts]:
        """Find the heads that some rule derives; a head is dropped once one instance is found."""
        left = dict(heads.relations)
        instances = 0
        index = self._indexes.of(rules)
        for rule in rules if index is None else index.deriving(heads):
            predicate = rule.head.predicate
            if rule.head.wide:
                collector = HeadCollector(self.space)
                reading = full_reading(rule, facts, absent)
                wanted = ColumnarFacts(self.space, left)
                self._evaluate(rule, reading, absent, collector, wanted, once=True)
                derived = collector.facts()
                left |= {p: left[p].difference(r) for p, r in derived.relations.items()}
                instances += len(derived)
                continue
            pending = left.get(predicate)
            if pending is None or not pending.runs:
                continue
            check = membership_check(rule)
            if check is not None:
                relation = facts.relations.get(rule.body[0].predicate)
                if relation is None:
                    continue
                if (
                    rule.head.arguments == rule.body[0].arguments
                    and len(pending) > tuning.set_comparison_keys_minimum
                ):
                    same = pending.intersection(relation)
                    left[predicate] = pending.difference(same)
                    instances += len(same)
                    continue
                keys = pending.keys()
                mask = check(keys, relation)
                count = int(np.count_nonzero(mask))
                if count:
                    left[predicate] = Relation.of(pending.arity, keys[~mask])
            else:
                collector = HeadCollector(self.space)
                reading = full_reading(rule, facts, absent)
                self._evaluate(
                    rule,
                    reading,
                    absent,
                    collector,
                    ColumnarFacts(self.space, {predicate: pending}),
                    once=True,
                )
                relation = collector.facts().relations.get(predicate)
                count = len(relation) if relation is not None else 0
                if relation is not None:
                    left[predicate] = pending.difference(relation)
            instances += count
        return Derived(heads.difference(ColumnarFacts(self.space, left)), instances)

    @with_workers
    def close(
        self,
        rules: Sequence[CompiledRule],
        facts: ColumnarFacts,
        delta: ColumnarFacts,
        *,
        negative: ColumnarFacts | None = None,
        on_round: OnRound | None = None,
    ) -> Derived[ColumnarFacts]:
        """Derive the consequences of `delta` to the fixpoint, round by round."""
        absent = negative if negative is not None else facts
        old, result = facts.difference(delta), self.facts({})
        instances = rounds = 0
        compositions = as_compositions(rules)
        index = self._indexes.of(rules)
        heads = {rule.head.predicate for rule in rules}
        while len(delta):
            full = appended(old, delta)
            if compositions and heads.issuperset(delta.relations):
                from corollary.engines.columnar import bit_matrix, linear_closure

                on_later_round = _offset(rounds, len(result), on_round)
                for finish in (linear_closure.finish, bit_matrix.finish):
                    closure = finish(compositions, old, delta, self.workers, on_later_round)
                    if closure is not None:
                        last = ColumnarFacts(self.space, closure.relations).mark_disjoint(result)
                        result = result.union(last).mark_disjoint(facts)
                        instances += closure.instances
                        return Derived(result, instances, rounds + closure.rounds)
            rounds += 1
            collector = HeadCollector(self.space, known=full)
            operands: Operands = {
                Operand.FACTS: full,
                Operand.OLD: old,
                Operand.DELTA: delta,
                Operand.ABSENT: absent,
            }
            jobs = [
                (rule, reading)
                for rule in (rules if index is None else index.reading(delta))
                for reading in delta_readings(rule, operands)
            ]
            self._run(jobs, absent, collector)
            instances += collector.instances
            old = consolidated(full, delta)
            delta = collector.facts(known=old)
            result = result.union(delta.mark_disjoint(result))
            if on_round is not None:
                on_round(rounds, len(result))
        return Derived(result.mark_disjoint(facts), instances, rounds)

    def support(
        self,
        rules: Sequence[CompiledRule],
        heads: ColumnarFacts,
        *,
        within: ColumnarFacts,
        negative: ColumnarFacts | None = None,
        unproved: ColumnarFacts | None = None,
        several: bool = False,
    ) -> Iterator[Support]:
        """Yield, rule by rule, the instances whose head is in `heads` and whose body holds."""
        absent = negative if negative is not None else within
        index = self._indexes.of(rules)
        for rule in rules if index is None else index.deriving(heads):
            head = JoinAtom(rule.head.arguments, heads.relation(rule.head))
            if not head.relation.runs:
                continue
            readings: Iterable[tuple[tuple[Relation, ...], list[JoinAtom]]]
            readings = [(tuple(map(within.relation, rule.body)), [])]
            if unproved is not None:
                readings = unproved_readings(rule, within, unproved, several=several)
            for atoms, outside in readings:
                body = self._body_of(rule, head, atoms, absent, outside)
                for table in solve(body, self.space, 0):
                    columns = [table.columns[v] for v in range(rule.bound)]
                    unbound = np.zeros((table.rows, 0), np.uint32)
                    yield Support(rule, np.stack(columns, axis=1) if columns else unbound)

    @with_workers
    def reclose(
        self,
        rule: CompiledRule,
        before: ColumnarFacts,
        after: ColumnarFacts,
        *,
        changed: ColumnarFacts,
        known: ColumnarFacts,
    ) -> Difference[ColumnarFacts]:
        """Maintain the closure of a linear rule incrementally: the pairs gained and lost."""
        compositions = as_compositions([rule])
        assert compositions is not None, "the rule is linear"
        [shape] = compositions
        head = shape.head
        backwards = shape.right == head
        edge, transposed = (
            (shape.left, shape.left_transposed)
            if backwards
            else (shape.right, shape.right_transposed)
        )

        from corollary.engines.columnar.closure_diff import closure_changes, closure_of

        def parts(facts: ColumnarFacts) -> LinearClosure:
            base, edges = (facts.relations.get(p) or Relation(2) for p in (head, edge))
            return closure_of(base, edges, transposed)

        states = [parts(before), parts(after), parts(changed)]
        # If the base pairs are the edges, both directions give the same closure.
        backwards = backwards and not all(state.base is state.edges for state in states)
        pairs = known.relations.get(head) or Relation(2)
        if backwards:
            states, pairs = [state.transposed() for state in states], transpose(pairs)
        old, new, other = states
        changes = closure_changes(old, new, other, pairs, self.workers, self.space.budget)
        return self._difference(head, changes, backwards)

    @with_workers
    def reconnect(
        self,
        edge: Predicate,
        pair: Predicate,
        before: ColumnarFacts,
        after: ColumnarFacts,
        *,
        changed: ColumnarFacts,
        known: ColumnarFacts,
    ) -> Difference[ColumnarFacts]:
        """Maintain connected components incrementally: the pairs gained and lost."""
        from corollary.engines.columnar.components import component_changes

        old, new, other = (f.relations.get(edge) or Relation(2) for f in (before, after, changed))
        pairs = known.relations.get(pair) or Relation(2)
        changes = component_changes(old, new, other, pairs, self.space.budget)
        return self._difference(pair, changes, False)

    def components(self, edge: Predicate, least: Predicate, facts: ColumnarFacts) -> ColumnarFacts:
        """Pair each node with the least node of its connected component."""
        from corollary.engines.columnar.components import least as least_nodes

        return self.facts({least: least_nodes(facts.relations.get(edge) or Relation(2))})

    def _difference(
        self, head: Predicate, changes: PairChanges, backwards: bool
    ) -> Difference[ColumnarFacts]:
        def facts(keys: Keys) -> ColumnarFacts:
            relation = Relation.of(2, keys)
            return ColumnarFacts(self.space, {head: transpose(relation) if backwards else relation})

        whole = facts(changes.whole) if changes.whole is not None else None
        return Difference(facts(changes.inserted), facts(changes.deleted), changes.instances, whole)

    def counts(self) -> ColumnarCounts:
        """Create counts that are all zero."""
        return ColumnarCounts(self.space)

    def _body_of(
        self,
        rule: CompiledRule,
        head: JoinAtom,
        atoms: tuple[Relation, ...],
        absent: ColumnarFacts,
        outside: list[JoinAtom],
    ) -> Body:
        """Return the body of a rule joined with its head, with all variables."""
        sources = [JoinAtom(p.arguments, r) for p, r in zip(rule.body, atoms, strict=True)]
        sources += [self._aggregate(grouping, absent) for grouping in rule.groupings]
        return Body(
            (head, *sources),
            (*(JoinAtom(p.arguments, absent.relation(p)) for p in rule.negated), *outside),
            (),
            rule.conditions,
            frozenset(range(rule.bound)),
        )

    def _run(
        self,
        jobs: list[Job],
        groups: ColumnarFacts,
        collector: HeadCollector,
        heads: ColumnarFacts | None = None,
    ) -> None:
        """Evaluate rules into the collector; large joins are split between threads."""

        def evaluate(job: Job) -> HeadCollector:
            part = HeadCollector(self.space, known=collector.known)
            self._evaluate(*job, groups, part)
            return part

        threads = 1 if collector.counted or heads is not None else self.workers.threads
        for job in jobs:
            parts = split(job, threads) if threads > 1 else [job]
            if len(parts) == 1:
                self._evaluate(*job, groups, collector, heads)
            else:
                for part in self.workers.map(evaluate, parts):
                    collector.include(part)

    def _evaluate(
        self,
        rule: CompiledRule,
        reading: Reading,
        groups: ColumnarFacts,
        collector: HeadCollector,
        heads: ColumnarFacts | None = None,
        *,
        once: bool = False,
    ) -> None:
        """Collect the heads of a rule's instances; `once`: at least one of each in `heads`."""
        if any(not relation.runs for relation in reading.atoms):
            return
        plain = not (
            rule.negated
            or rule.conditions
            or rule.groupings
            or collector.counted
            or heads is not None
        )
        if plain and rename_into(rule, reading.atoms, collector):
            return
        if plain and compose_into(rule, reading.atoms, reading.first, collector):
            return
        if plain and semijoin_into(rule, reading.atoms, reading.first, collector):
            return
        if plain and small_join_into(rule, reading.atoms, collector, self.space):
            return
        sources = [JoinAtom(p.arguments, r) for p, r in zip(rule.body, reading.atoms, strict=True)]
        sources += [self._aggregate(grouping, groups) for grouping in rule.groupings]
        first = reading.first
        if heads is not None:
            relation = heads.relation(rule.head)
            if first is None or len(relation) < len(reading.atoms[first]):
                first = len(sources)
            sources.append(JoinAtom(rule.head.arguments, relation))
        body = Body(
            tuple(sources),
            tuple(
                JoinAtom(p.arguments, facts.relation(p))
                for p, facts in zip(rule.negated, reading.absent, strict=True)
            ),
            tuple(JoinAtom(p.arguments, facts.relation(p)) for p, facts in reading.present),
            rule.conditions,
            frozenset(a for a in rule.head.arguments if a >= 0),
            once=once and first == len(rule.body) + len(rule.groupings),
        )
        for table in solve(body, self.space, first):
            collector.add_table(rule.head, table)

    def _aggregate(self, grouping: Grouping, facts: ColumnarFacts) -> JoinAtom:
        """Evaluate an aggregate to an atom: one row of group and results per group."""
        number = max((v for p in grouping.patterns for v in p.variables), default=-1) + 1
        body = Body(
            tuple(JoinAtom(p.arguments, facts.relation(p)) for p in grouping.patterns),
            needed=frozenset(range(number)),
        )
        tables = list(solve(body, self.space))
        columns = (
            [np.concatenate([t.columns[v] for t in tables]) for v in range(number)]
            if tables
            else []
        )
        if not tables:
            return JoinAtom(grouping.outer, Relation(len(grouping.outer)))
        rows = sum(table.rows for table in tables)
        keys = self.space.packing.pack([columns[v] for v in grouping.group], rows)
        order = np.argsort(keys, kind="stable")
        distinct, first = np.unique(keys[order], return_index=True)
        groups = np.searchsorted(distinct, keys[order])
        results = [columns[v][order][first] for v in grouping.group]
        for function in grouping.functions:
            ids = columns[function.variable][order]
            results.append(aggregate(function, ids, groups, len(distinct), self.dictionary))
        valid = np.ones(len(distinct), bool)
        for column in results[len(grouping.group) :]:
            valid &= column != NO_VALUE
        if not valid.all():
            names = ", ".join(function.name for function in grouping.functions)
            note("W104", int((~valid).sum()), detail=names)
        relation = self.space.of_columns([c[valid] for c in results], int(valid.sum()))
        return JoinAtom(grouping.outer, relation)


def _offset(rounds: int, facts: int, on_round: OnRound | None) -> OnRound | None:
    """Offset `on_round` by the rounds and facts so far."""
    if on_round is None:
        return None
    return lambda round_, derived: on_round(rounds + round_, facts + derived)
