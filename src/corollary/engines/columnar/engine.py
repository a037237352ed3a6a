"""`ColumnarEngine`: the operators of `core` over sorted columns.

Most rules of an ontology copy, exchange or project one atom; these pass on whole runs with their
indexes and cost nothing for each fact. Compositions of two binary atoms are computed subject by
subject with marks. All other bodies go through the join pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.compile import CompiledRule, Grouping
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, Difference, OnRound, Support
from corollary.core.notices import note
from corollary.engines.columnar import components, dense, linear, reroute
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.checks import check_of
from corollary.engines.columnar.compose import compose_into, shapes
from corollary.engines.columnar.counts import ColumnarCounts
from corollary.engines.columnar.facts import (
    ColumnarFacts,
    Less,
    Space,
    appended,
    settled,
)
from corollary.engines.columnar.guard import guard_into
from corollary.engines.columnar.join import Body, Source, solve
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.layers import turned
from corollary.engines.columnar.readings import (
    Job,
    Reading,
    delta_readings,
    open_readings,
    plain_reading,
    rename_into,
    split,
)
from corollary.engines.columnar.relation import Relation, Run
from corollary.engines.columnar.rule_index import RuleIndexes
from corollary.engines.columnar.selection import select_into
from corollary.engines.columnar.sink import Sink
from corollary.engines.columnar.tuning import tuning
from corollary.engines.columnar.workers import Workers, assisted
from corollary.lang.stratify import Predicate


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

    def facts(self, tables: Mapping[Predicate, Ids]) -> ColumnarFacts:
        """A set of facts from rows."""
        return ColumnarFacts(
            self.space, {p: self.space.relation(rows) for p, rows in tables.items() if len(rows)}
        )

    @assisted
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
        """Π[facts, negative : delta, negative_delta], of these heads only if they are given."""
        absent = negative if negative is not None else facts
        if heads is not None and delta is None and negative_delta is None and not counted:
            return self._some(rules, facts, absent, heads)
        # The limit is for facts that are added, not for those that an update checks.
        sink = Sink(self.space, counted=counted, known=facts if delta is None else None)
        if delta is None and negative_delta is None:
            jobs = [(rule, plain_reading(rule, facts, absent)) for rule in rules]
        else:
            empty = self.facts({})
            changed = delta if delta is not None else empty
            removed = negative_delta if negative_delta is not None else empty
            old = Less(facts, changed)
            index = self._indexes.of(rules)
            touched = (
                rules if index is None else index.reading(changed.relations, removed.relations)
            )
            jobs = [
                (rule, reading)
                for rule in touched
                for reading in delta_readings(rule, old, changed, facts, absent, removed)
            ]
        self._run(jobs, absent, sink, heads)
        derived = sink.facts()
        return Derived(derived, sink.instances, counts=sink.counts(derived) if counted else None)

    def _some(
        self,
        rules: Sequence[CompiledRule],
        facts: ColumnarFacts,
        absent: ColumnarFacts,
        heads: ColumnarFacts,
    ) -> Derived[ColumnarFacts]:
        """The heads that some rule derives; a head is not looked at again when one was found."""
        left = dict(heads.relations)
        instances = 0
        index = self._indexes.of(rules)
        for rule in rules if index is None else index.deriving(left):
            predicate = rule.head.predicate
            if rule.head.wide:
                sink = Sink(self.space)
                reading = plain_reading(rule, facts, absent)
                self._evaluate(rule, reading, absent, sink, ColumnarFacts(self.space, left))
                found = sink.facts()
                left |= {p: left[p].difference(r) for p, r in found.relations.items()}
                instances += len(found)
                continue
            asked = left.get(predicate)
            if asked is None or not asked.runs:
                continue
            check = check_of(rule)
            if check is not None:
                relation = facts.relations.get(rule.body[0].predicate)
                if relation is None:
                    continue
                if (
                    rule.head.arguments == rule.body[0].arguments
                    and len(asked) > tuning.set_comparison_keys_minimum
                ):
                    same = asked.intersection(relation)
                    left[predicate] = asked.difference(same)
                    instances += len(same)
                    continue
                keys = asked.keys()
                mask = check(keys, relation)
                count = int(np.count_nonzero(mask))
                if count:
                    left[predicate] = Relation.of(asked.arity, keys[~mask])
            else:
                sink = Sink(self.space)
                reading = plain_reading(rule, facts, absent)
                self._evaluate(
                    rule, reading, absent, sink, ColumnarFacts(self.space, {predicate: asked})
                )
                relation = sink.facts().relations.get(predicate)
                count = len(relation) if relation is not None else 0
                if relation is not None:
                    left[predicate] = asked.difference(relation)
            instances += count
        return Derived(heads.difference(ColumnarFacts(self.space, left)), instances)

    @assisted
    def close(
        self,
        rules: Sequence[CompiledRule],
        facts: ColumnarFacts,
        delta: ColumnarFacts,
        *,
        negative: ColumnarFacts | None = None,
        on_round: OnRound | None = None,
    ) -> Derived[ColumnarFacts]:
        """The consequences of `delta` to the fixpoint, round by round."""
        absent = negative if negative is not None else facts
        old, result = facts.difference(delta), self.facts({})
        instances = rounds = 0
        compositions = shapes(rules)
        index = self._indexes.of(rules)
        heads = {rule.head.predicate for rule in rules}
        while len(delta):
            full = appended(old, delta)
            if compositions and heads.issuperset(delta.relations):
                told = _after(rounds, len(result), on_round)
                for finish in (linear.finish, dense.finish):
                    done = finish(compositions, old, delta, self.workers, told)
                    if done is not None:
                        last = ColumnarFacts(self.space, done.relations).apart_from(result)
                        result = result.union(last).apart_from(facts)
                        return Derived(result, instances + done.instances, rounds + done.rounds)
            rounds += 1
            sink = Sink(self.space, known=full)
            jobs = [
                (rule, reading)
                for rule in (rules if index is None else index.reading(delta.relations))
                for reading in delta_readings(rule, old, delta, full, absent, None)
            ]
            self._run(jobs, absent, sink)
            instances += sink.instances
            old = settled(full, delta)
            delta = sink.facts(known=old)
            result = result.union(delta.apart_from(result))
            if on_round is not None:
                on_round(rounds, len(result))
        return Derived(result.apart_from(facts), instances, rounds)

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
        """Instances whose head is in `heads` and whose body holds, rule by rule."""
        absent = negative if negative is not None else within
        index = self._indexes.of(rules)
        for rule in rules if index is None else index.deriving(heads.relations):
            head = Source(rule.head.arguments, heads.relation(rule.head))
            if not head.relation.runs:
                continue
            readings: Iterable[tuple[tuple[Relation, ...], list[Source]]]
            readings = [(tuple(map(within.relation, rule.body)), [])]
            if unproved is not None:
                readings = open_readings(rule, within, unproved, several)
            for atoms, outside in readings:
                body = self._body_of(rule, head, atoms, absent, outside)
                for table in solve(body, self.space, 0):
                    columns = [table.columns[v] for v in range(rule.bound)]
                    unbound = np.zeros((table.rows, 0), np.uint32)
                    yield Support(rule, np.stack(columns, axis=1) if columns else unbound)

    @assisted
    def reclose(
        self,
        rule: CompiledRule,
        before: ColumnarFacts,
        after: ColumnarFacts,
        *,
        changed: ColumnarFacts,
        known: ColumnarFacts,
    ) -> Difference[ColumnarFacts]:
        """By what the closure under a linear rule differs afterwards."""
        found_shapes = shapes([rule])
        assert found_shapes is not None, "the rule is linear"
        [shape] = found_shapes
        head = shape.head
        backwards = shape.right == head
        edge, exchanged = (
            (shape.left, shape.left_swapped) if backwards else (shape.right, shape.right_swapped)
        )

        def parts(facts: ColumnarFacts) -> reroute.Linear:
            given, edges = (facts.relations.get(p) or Relation(2) for p in (head, edge))
            return reroute.linear(given, edges, exchanged)

        states = [parts(before), parts(after), parts(changed)]
        # Where the given pairs are the edges, either direction gives the same.
        backwards = backwards and not all(state.given is state.edges for state in states)
        pairs = known.relations.get(head) or Relation(2)
        if backwards:
            states, pairs = [state.turned() for state in states], turned(pairs)
        old, new, other = states
        found = reroute.differ(old, new, other, pairs, self.workers, self.space.budget)
        return self._difference(head, found, backwards)

    @assisted
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
        """By what the pairs of connected components differ afterwards."""
        old, new, other = (f.relations.get(edge) or Relation(2) for f in (before, after, changed))
        pairs = known.relations.get(pair) or Relation(2)
        found = components.differ(old, new, other, pairs, self.space.budget)
        return self._difference(pair, found, False)

    def components(self, edge: Predicate, least: Predicate, facts: ColumnarFacts) -> ColumnarFacts:
        """Each node of an edge and the least node that it is connected to."""
        return self.facts({least: components.least(facts.relations.get(edge) or Relation(2))})

    def _difference(
        self, head: Predicate, found: reroute.Difference, backwards: bool
    ) -> Difference[ColumnarFacts]:
        def facts(keys: Keys | list[Keys]) -> ColumnarFacts:
            parts = keys if isinstance(keys, list) else [keys]
            relation = Relation(2, tuple(Run(part) for part in parts if len(part)))
            return ColumnarFacts(self.space, {head: turned(relation) if backwards else relation})

        whole = facts(found.whole) if found.whole is not None else None
        return Difference(facts(found.inserted), facts(found.deleted), found.instances, whole)

    def counts(self) -> ColumnarCounts:
        """Counts that are all 0."""
        return ColumnarCounts(self.space)

    def _body_of(
        self,
        rule: CompiledRule,
        head: Source,
        atoms: tuple[Relation, ...],
        absent: ColumnarFacts,
        outside: list[Source],
    ) -> Body:
        """A rule's body behind its head, with all variables asked for."""
        sources = [Source(p.arguments, r) for p, r in zip(rule.body, atoms, strict=True)]
        sources += [self._grouped(grouping, absent) for grouping in rule.groupings]
        return Body(
            (head, *sources),
            (*(Source(p.arguments, absent.relation(p)) for p in rule.negated), *outside),
            (),
            rule.conditions,
            frozenset(range(rule.bound)),
        )

    def _run(
        self,
        jobs: list[Job],
        groups: ColumnarFacts,
        sink: Sink,
        heads: ColumnarFacts | None = None,
    ) -> None:
        """Evaluate rules into the sink; large joins in parts, on several threads."""

        def evaluate(job: Job) -> Sink:
            part = Sink(self.space, known=sink.known)
            self._evaluate(*job, groups, part)
            return part

        threads = 1 if sink.counted or heads is not None else self.workers.threads
        for job in jobs:
            parts = split(job, threads) if threads > 1 else [job]
            if len(parts) == 1:
                self._evaluate(*job, groups, sink, heads)
            else:
                for part in self.workers.map(evaluate, parts):
                    sink.include(part)

    def _evaluate(
        self,
        rule: CompiledRule,
        reading: Reading,
        groups: ColumnarFacts,
        sink: Sink,
        heads: ColumnarFacts | None = None,
    ) -> None:
        """Put the heads of a rule's instances into the sink."""
        if any(not relation.runs for relation in reading.atoms):
            return
        plain = not (
            rule.negated or rule.conditions or rule.groupings or sink.counted or heads is not None
        )
        if plain and rename_into(rule, reading.atoms, sink):
            return
        if plain and compose_into(rule, reading.atoms, reading.first, sink):
            return
        if plain and select_into(rule, reading.atoms, reading.first, sink):
            return
        if plain and guard_into(rule, reading.atoms, sink, self.space):
            return
        sources = [Source(p.arguments, r) for p, r in zip(rule.body, reading.atoms, strict=True)]
        sources += [self._grouped(grouping, groups) for grouping in rule.groupings]
        first = reading.first
        if heads is not None:
            relation = heads.relation(rule.head)
            if first is None or len(relation) < len(reading.atoms[first]):
                first = len(sources)
            sources.append(Source(rule.head.arguments, relation))
        body = Body(
            tuple(sources),
            tuple(
                Source(p.arguments, facts.relation(p))
                for p, facts in zip(rule.negated, reading.absent, strict=True)
            ),
            tuple(Source(p.arguments, facts.relation(p)) for p, facts in reading.present),
            rule.conditions,
            frozenset(a for a in rule.head.arguments if a >= 0),
        )
        for table in solve(body, self.space, first):
            sink.add_table(rule.head, table)

    def _grouped(self, grouping: Grouping, facts: ColumnarFacts) -> Source:
        """An aggregate as a source: one row of group and results for each group."""
        number = max((v for p in grouping.patterns for v in p.variables), default=-1) + 1
        body = Body(
            tuple(Source(p.arguments, facts.relation(p)) for p in grouping.patterns),
            needed=frozenset(range(number)),
        )
        tables = list(solve(body, self.space))
        columns = (
            [np.concatenate([t.columns[v] for t in tables]) for v in range(number)]
            if tables
            else []
        )
        if not tables:
            return Source(grouping.outer, Relation(len(grouping.outer)))
        rows = sum(table.rows for table in tables)
        keys = self.space.packing.pack([columns[v] for v in grouping.group], rows)
        order = np.argsort(keys, kind="stable")
        distinct, first = np.unique(keys[order], return_index=True)
        groups = np.searchsorted(distinct, keys[order])
        results = [columns[v][order][first] for v in grouping.group]
        for function, variable in grouping.functions:
            ids = columns[variable][order]
            results.append(aggregate(function, ids, groups, len(distinct), self.dictionary))
        valid = np.ones(len(distinct), bool)
        for column in results[len(grouping.group) :]:
            valid &= column != NO_VALUE
        if not valid.all():
            names = ", ".join(function for function, _ in grouping.functions)
            note("W104", int((~valid).sum()), detail=names)
        relation = self.space.of_columns([c[valid] for c in results], int(valid.sum()))
        return Source(grouping.outer, relation)


def _after(rounds: int, facts: int, on_round: OnRound | None) -> OnRound | None:
    """`on_round` for rounds that come after others."""
    if on_round is None:
        return None
    return lambda round_, derived: on_round(rounds + round_, facts + derived)
