"""The Spark engine: Π[Ip, In : Δp, Δn] as DataFrame joins.

All rules of one `derive` form one plan with one job: each reading of each rule (see `joins`) is a
join, their heads are united, and a count by head gives facts, counts and instances at once. `close`
is semi-naive evaluation, one `derive` a round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from corollary.core.compile import CompiledRule
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Derived, Difference, OnRound, Support
from corollary.engines.spark.components import Components
from corollary.engines.spark.counts import SparkCounts
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.joins import (
    KEYS,
    Joins,
    Operands,
    Reading,
    bindings,
    body_readings,
    head_rows,
)
from corollary.engines.spark.session import build_session
from corollary.engines.spark.tables import UNIT, Table, Workspace, columns, from_arrow
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE

# Collecting 10,000 rows of a few numbers takes less time than the smallest Spark job.
SMALL = 10_000

COUNT = "instances"  # the column with the number of instances of a head


class SparkEngine:
    """Evaluates rules with Spark; starts a session when first needed, unless given one.

    Tables with at most `small` rows are kept on the driver.
    """

    def __init__(
        self, dictionary: Dictionary, session: SparkSession | None = None, *, small: int = SMALL
    ) -> None:
        self.dictionary = dictionary
        self._workspace = Workspace(lambda: session or build_session(), small)

    def facts(self, tables: Mapping[Predicate, Ids]) -> SparkFacts:
        """A set of facts from rows (narrow predicates, duplicates allowed)."""
        return self._facts({p: Table.of(rows, self._workspace) for p, rows in tables.items()})

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
        if negative is None:
            negative = facts
        joins = Joins(negative, self.dictionary, self._workspace)
        operands = Operands(facts, negative, delta, negative_delta)
        found = [
            (rule, instances)
            for rule in rules
            for reading in operands.readings(rule)
            if (instances := joins.instances(rule, reading.of_heads(rule, heads))) is not None
        ]
        if not found:
            return Derived(self._facts({}), 0, counts={} if counted else None)
        arities = {rule.head.predicate.relation: _arity(rule) for rule, _ in found}
        relations, width = list(arities), max(1, *arities.values())
        parts = [
            head_rows(
                rule,
                instances,
                relations.index(rule.head.predicate.relation),
                width,
                self.dictionary,
            )
            for rule, instances in found
        ]
        return self._scatter(reduce(DataFrame.union, parts), arities, counted)

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
        if negative is None:
            negative = facts
        derived = self._facts({})  # J
        instances, rounds = 0, 0
        # while Δ ≠ ∅: Δ := Π[I : Δ] \ I; I := I ∪ Δ
        while len(delta):
            step = self.derive(rules, facts, negative=negative, delta=delta)
            delta = step.facts.difference(facts)
            facts = facts.union(delta)
            derived = derived.union(delta)
            instances += step.instances
            rounds += 1
            if on_round is not None:
                on_round(rounds, len(derived))
        return Derived(derived, instances, rounds)

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
        absent = negative if negative is not None else within
        joins = Joins(absent, self.dictionary, self._workspace)
        for rule in rules:
            # H, b₁, …, bₙ, NOT c₁, …: the head is one more atom
            parts = [
                rows
                for atoms, outside in body_readings(rule, within, unproved, several)
                if (
                    found := joins.instances(
                        rule,
                        Reading(
                            [(rule.head, heads), *atoms],
                            [*((pattern, absent) for pattern in rule.negated), *outside],
                        ),
                    )
                )
                is not None
                and len(rows := bindings(found, rule.bound))
            ]
            if parts:
                yield Support(rule, np.concatenate(parts))

    def reclose(
        self,
        rule: CompiledRule,
        before: SparkFacts,
        after: SparkFacts,
        *,
        changed: SparkFacts,
        known: SparkFacts,
    ) -> Difference[SparkFacts]:
        """By what the closure under a linear rule differs afterwards: it is made anew."""
        given = after.only([rule.head.predicate])
        closed = self.close([rule], after, given)
        return _difference(given.union(closed.facts), known, closed.instances)

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
        """By what the pairs of connected components differ afterwards; on the driver."""
        components = Components()
        rows = after.rows(edge)
        components.connect(rows)
        pairs = components.pairs()
        facts = self.facts({pair: pairs} if len(pairs) else {})
        return _difference(facts, known, len(rows))

    def counts(self) -> SparkCounts:
        """Counts that are all 0."""
        return SparkCounts(self.facts)

    def _facts(self, tables: Mapping[Predicate, Table]) -> SparkFacts:
        return SparkFacts(tables, self.dictionary, self._workspace)

    def _scatter(
        self, found: DataFrame, arities: Mapping[str, int], counted: bool
    ) -> Derived[SparkFacts]:
        """Heads, one row an instance, as facts of their predicates."""
        by_head = found.groupBy(*found.columns).agg(f.count("*").alias(COUNT))
        by_head, local = self._workspace.settle(by_head)
        if local is None:
            tables, instances = self._remote_tables(by_head, arities)
            split = self._split(by_head.toArrow(), arities) if counted else {}
        else:
            split = self._split(local, arities)
            tables = {p: Table.of(rows, self._workspace) for p, (rows, _) in split.items()}
            instances = sum(int(counts.sum()) for _, counts in split.values())
        counts = {predicate: counts for predicate, (_, counts) in split.items()}
        return Derived(self._facts(tables), instances, counts=counts if counted else None)

    def _remote_tables(
        self, by_head: DataFrame, arities: Mapping[str, int]
    ) -> tuple[dict[Predicate, Table], int]:
        """A selection of a settled frame for each predicate, and the number of instances."""
        tables, instances = {}, 0
        sizes = by_head.groupBy(*KEYS).agg(f.count("*"), f.sum(COUNT)).collect()
        for *key, count, total in sizes:
            predicate, arity = self._predicate(key, arities)
            chosen = " AND ".join(f"{k} = {v}L" for k, v in zip(KEYS, key, strict=True))
            values = columns(arity) if arity else [f"0L AS {UNIT}"]
            rows = by_head.where(chosen).selectExpr(*values)
            tables[predicate] = Table(self._workspace, arity, count, remote=rows)
            instances += total
        return tables, instances

    def _split(
        self, heads: pa.Table, arities: Mapping[str, int]
    ) -> dict[Predicate, tuple[Ids, npt.NDArray[np.int64]]]:
        """Rows in lexicographic order and their counts, by predicate."""
        keys = np.column_stack([heads[name].to_numpy() for name in KEYS])
        counts = heads[COUNT].to_numpy()
        values = heads.drop_columns([*KEYS, COUNT])
        rows = from_arrow(values, values.num_columns)
        distinct_keys, place = np.unique(keys, axis=0, return_inverse=True)
        out = {}
        for number, key in enumerate(distinct_keys.tolist()):
            predicate, arity = self._predicate(key, arities)
            chosen = place.reshape(-1) == number
            of_key, of_counts = rows[chosen, :arity], counts[chosen]
            order = np.lexsort(of_key.T[::-1]) if arity else np.arange(len(of_key))
            out[predicate] = of_key[order], of_counts[order]
        return out

    def _predicate(self, key: Sequence[int], arities: Mapping[str, int]) -> tuple[Predicate, int]:
        """The predicate that `KEYS` name, and its arity."""
        relation, property_, member_of = key
        name = list(arities)[relation]
        if name != TRIPLE:
            return Predicate(name), arities[name]
        if member_of >= 0:
            return Predicate(TRIPLE, TYPE, self.dictionary.term(member_of)), 1
        return Predicate(TRIPLE, self.dictionary.term(property_)), 2


def _difference(facts: SparkFacts, known: SparkFacts, instances: int) -> Difference[SparkFacts]:
    return Difference(facts.difference(known), known.difference(facts), instances, facts)


def _arity(rule: CompiledRule) -> int:
    """The number of columns that the facts of a head need."""
    predicate = rule.head.predicate
    return 2 if predicate.relation == TRIPLE else len(rule.head.arguments)
