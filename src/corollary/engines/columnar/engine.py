"""`ColumnarEngine`: the operators of `core` over sorted columns.

Most rules of an ontology copy, exchange or project one atom; these pass on whole runs with their
indexes and cost nothing for each fact. Compositions of two binary atoms are computed subject by
subject with marks. All other bodies go through the join pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.compile import CompiledRule, Grouping, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, OnRound, Support
from corollary.engines.columnar.compose import compose_into
from corollary.engines.columnar.facts import ColumnarFacts, Space
from corollary.engines.columnar.join import Body, Source, solve
from corollary.engines.columnar.relation import Relation, Run
from corollary.engines.columnar.sink import Sink
from corollary.lang.stratify import Predicate


@dataclass(frozen=True)
class _Reading:
    """One way to evaluate a rule: which facts each atom reads, and which atom is the delta."""

    atoms: tuple[Relation, ...]
    absent: tuple[ColumnarFacts, ...]  # for each negated atom, facts that must not match
    present: tuple[tuple[Pattern, ColumnarFacts], ...] = ()
    first: int | None = None


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

    def __init__(self, dictionary: Dictionary, *, threads: int = 1) -> None:
        self.dictionary = dictionary
        self.space = Space(dictionary)
        self.threads = threads

    def facts(self, tables: Mapping[Predicate, Ids]) -> ColumnarFacts:
        """A set of facts from rows."""
        return ColumnarFacts(
            self.space, {p: self.space.relation(rows) for p, rows in tables.items() if len(rows)}
        )

    def derive(
        self,
        rules: Sequence[CompiledRule],
        facts: ColumnarFacts,
        *,
        negative: ColumnarFacts | None = None,
        delta: ColumnarFacts | None = None,
        negative_delta: ColumnarFacts | None = None,
        counted: bool = False,
    ) -> Derived[ColumnarFacts]:
        """Π[facts, negative : delta, negative_delta]."""
        sink = Sink(self.space, counted=counted)
        absent = negative if negative is not None else facts
        if delta is None and negative_delta is None:
            for rule in rules:
                atoms = tuple(facts.relation(pattern) for pattern in rule.body)
                self._evaluate(rule, _Reading(atoms, (absent,) * len(rule.negated)), absent, sink)
        else:
            empty = self.facts({})
            changed = delta if delta is not None else empty
            old = facts.difference(changed)
            removed = negative_delta if negative_delta is not None else empty
            for rule in rules:
                for reading in _delta_readings(rule, old, changed, facts, absent, removed):
                    self._evaluate(rule, reading, absent, sink)
        derived = sink.facts()
        return Derived(derived, sink.instances, counts=sink.counts(derived) if counted else None)

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
        while len(delta):
            rounds += 1
            full = _appended(old, delta)
            sink = Sink(self.space)
            for rule in rules:
                for reading in _delta_readings(rule, old, delta, full, absent, None):
                    self._evaluate(rule, reading, absent, sink)
            instances += sink.instances
            old = _settled(full, delta)
            delta = _new(sink.facts(), old)
            result = result.union(delta)
            if on_round is not None:
                on_round(rounds, len(result))
        return Derived(result, instances, rounds)

    def support(
        self, rules: Sequence[CompiledRule], heads: ColumnarFacts, *, within: ColumnarFacts
    ) -> Iterator[Support]:
        """Instances whose head is in `heads` and whose body holds in `within`, rule by rule."""
        for rule in rules:
            sources = [Source(rule.head.arguments, heads.relation(rule.head))]
            sources += [Source(p.arguments, within.relation(p)) for p in rule.body]
            sources += [self._grouped(grouping, within) for grouping in rule.groupings]
            body = Body(
                tuple(sources),
                tuple(Source(p.arguments, within.relation(p)) for p in rule.negated),
                (),
                rule.conditions,
                frozenset(range(rule.bound)),
            )
            parts = [
                np.stack([table.columns[v] for v in range(rule.bound)], axis=1)
                if rule.bound
                else np.zeros((table.rows, 0), np.uint32)
                for table in solve(body, self.space, 0)
            ]
            if parts:
                yield Support(rule, np.concatenate(parts))

    def _evaluate(
        self, rule: CompiledRule, reading: _Reading, groups: ColumnarFacts, sink: Sink
    ) -> None:
        """Put the heads of a rule's instances into the sink."""
        if any(not relation.runs for relation in reading.atoms):
            return
        plain = not (rule.negated or rule.conditions or rule.groupings or sink.counted)
        if plain and _rename_into(rule, reading.atoms, sink):
            return
        if plain and compose_into(rule, reading.atoms, reading.first, sink):
            return
        sources = [Source(p.arguments, r) for p, r in zip(rule.body, reading.atoms, strict=True)]
        sources += [self._grouped(grouping, groups) for grouping in rule.groupings]
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
        for table in solve(body, self.space, reading.first):
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
        relation = self.space.of_columns([c[valid] for c in results], int(valid.sum()))
        return Source(grouping.outer, relation)


def _delta_readings(
    rule: CompiledRule,
    old: ColumnarFacts,
    delta: ColumnarFacts,
    full: ColumnarFacts,
    absent: ColumnarFacts,
    removed: ColumnarFacts | None,
) -> Iterator[_Reading]:
    """Every instance that uses a delta belongs to exactly one reading: that of its first use."""
    untouched = (absent,) * len(rule.negated)
    for position, pattern in enumerate(rule.body):
        changed = delta.relation(pattern)
        if changed.runs:
            before = [old.relation(p) for p in rule.body[:position]]
            after = [full.relation(p) for p in rule.body[position + 1 :]]
            yield _Reading((*before, changed, *after), untouched, (), position)
    if removed is None:
        return
    atoms = tuple(old.relation(p) for p in rule.body)
    for position, pattern in enumerate(rule.negated):
        if removed.relation(pattern).runs:
            wider = absent.union(removed)
            yield _Reading(
                atoms,
                (*(wider,) * position, *(absent,) * (len(rule.negated) - position)),
                ((pattern, removed),),
            )


def _rename_into(rule: CompiledRule, atoms: Iterable[Relation], sink: Sink) -> bool:
    """P(x, y) :- Q(x, y), P(x, y) :- Q(y, x), P(x) :- Q(x, y), P(y) :- Q(x, y), P(x) :- Q(x)."""
    if len(rule.body) != 1 or rule.head.wide or rule.body[0].wide:
        return False
    [relation] = atoms
    body, head = rule.body[0].arguments, rule.head.arguments
    if len(set(body)) < len(body) or min(body, default=-1) < 0 or not 1 <= len(body) <= 2:
        return False
    ways = {
        body: lambda run: run,
        body[::-1]: lambda run: run.swapped,
        body[:1]: lambda run: run.subjects,
        body[1:]: lambda run: run.objects,
    }
    if len(body) == 1:
        ways = {body: lambda run: run}
    way = ways.get(head)
    if way is None:
        return False
    runs: tuple[Run, ...] = relation.runs if relation.dead is None else (relation.run(),)
    for run in runs:
        sink.add_run(rule.head.predicate, len(head), way(run), len(run))
    return True


def _appended(old: ColumnarFacts, delta: ColumnarFacts) -> ColumnarFacts:
    """old ∪ delta for disjoint sets, nothing merged."""
    relations = dict(old.relations)
    for predicate, relation in delta.relations.items():
        mine = relations.get(predicate, Relation(relation.arity))
        for run in relation.runs:
            mine = mine.appended(run)
        relations[predicate] = mine
    full = ColumnarFacts(old.space, relations)
    for wide, relation in old._wide.items():
        full._wide[wide] = relation.union(delta.wide(wide))
    return full


def _settled(full: ColumnarFacts, delta: ColumnarFacts) -> ColumnarFacts:
    relations = dict(full.relations)
    for predicate in delta.relations:
        relations[predicate] = relations[predicate].settled()
    settled = ColumnarFacts(full.space, relations)
    settled._wide.update(full._wide)
    return settled


def _new(derived: ColumnarFacts, known: ColumnarFacts) -> ColumnarFacts:
    """The derived facts that are not known."""
    relations = {}
    for predicate, relation in derived.relations.items():
        mine = known.relations.get(predicate)
        if mine is None:
            relations[predicate] = relation
        else:
            relations[predicate] = Relation.of(relation.arity, mine.missing(relation.keys()))
    return ColumnarFacts(derived.space, relations)
