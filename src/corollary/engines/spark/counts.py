"""Count the rule instances that derive each fact.

Like a set of facts, counts have a large base in Spark, and later changes on the driver, in the
embedded engine. In Spark a count is the last column of its fact, modulo 2³²: a count that is
subtracted before it is added is temporarily negative.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from corollary.core.compile import covers
from corollary.core.dictionary import Ids
from corollary.core.engine import Counts, Derived
from corollary.engines.spark import task
from corollary.engines.spark.base import Base, SparkRun, merge
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import (
    DERIVED,
    STATE,
    ChunkBuffer,
    Key,
    Table,
)
from corollary.engines.spark.task import Batches, Combine, Numbers, TableTask
from corollary.lang.stratify import Predicate


class LazyCounts(Mapping[Predicate, Numbers]):
    """The counts of a `derive` in Spark, collected on the driver on first access."""

    def __init__(self, base: Base) -> None:
        self.base = base

    @property
    def facts(self) -> SparkFacts:
        """The facts that are counted."""
        return SparkFacts.of(self.base.drop_last_column()).collect_if_small()

    def __getitem__(self, predicate: Predicate) -> Numbers:
        rows = self._rows(predicate)
        order = np.lexsort(rows[:, :-1].T[::-1]) if rows.shape[1] > 1 else np.arange(len(rows))
        counts: Numbers = rows[order, -1].astype(np.int64)
        return counts

    def __iter__(self) -> Iterator[Predicate]:
        return iter(self.base.counts)

    def __len__(self) -> int:
        return len(self.base.counts)

    def _rows(self, predicate: Predicate) -> Ids:
        only = self.base.only([predicate])
        tables = only.run.collect(only.chunks(STATE))
        [rows] = tables.values()
        return rows


class SparkCounts:
    """Counts of facts; implements `core.engine.Counts`."""

    def __init__(
        self, run: SparkRun, base: Base | None = None, changed: Counts[Any] | None = None
    ) -> None:
        """`changed` holds counts of the embedded engine to be added to the base."""
        self._run = run
        self._base = base if base is not None and base.counts else None
        self._changed = run.embedded.counts() if changed is None else changed

    def plus(self, derived: Derived[SparkFacts]) -> SparkCounts:
        """Add the instances of a counted `derive`."""
        return self._with(derived, 1)

    def minus(self, derived: Derived[SparkFacts]) -> SparkCounts:
        """Subtract the instances of a counted `derive`."""
        return self._with(derived, -1)

    def _with(self, derived: Derived[SparkFacts], sign: int) -> SparkCounts:
        counts = derived.counts
        assert counts is not None, "counted"
        if not isinstance(counts, LazyCounts) or len(counts.base) <= self._run.small:
            few = Derived(derived.facts.local(), derived.instances, counts=dict(counts))
            changed = self._changed.plus(few) if sign > 0 else self._changed.minus(few)
            found = SparkCounts(self._run, self._base, changed)
            many = len(changed.facts()) > self._run.small
            return SparkCounts(self._run, found._added(found._changed_chunks())) if many else found
        if sign > 0 and self._base is None:
            return SparkCounts(self._run, counts.base, self._changed)
        more = counts.base.chunks(STATE)
        if sign < 0:
            more = self._run.map_chunks(more, NegateCounts())
        return SparkCounts(self._run, self._added(more), self._changed)

    def _added(self, more: Any) -> Base:
        """Sum the counts of the base and others in tasks."""
        parts = [more] if self._base is None else [self._base.chunks(STATE), more]
        combine = Combine("union", self._run.make_engine, counted=1)
        return merge(self._run, self._run.union(parts), combine)

    def _changed_chunks(self) -> Any:
        """Pack the changed counts as chunks, counts last; None if nothing changed."""
        run, out = self._run, ChunkBuffer()
        facts = self._changed.facts()
        counts = self._changed.of(facts)
        for predicate in facts.predicates():
            rows = np.column_stack([facts.rows(predicate), counts[predicate].astype(np.uint32)])
            key = (*run.key(predicate, 0)[:3], rows.shape[1])
            if key[3] == 1:  # no column but the count
                out.add(0, STATE, key, rows)
            else:
                out.send(STATE, key, rows, 0, run.partitions)
        return run.chunks(out)

    def without(self, predicates: Collection[Predicate]) -> SparkCounts:
        """Set the counts of these predicates to 0."""
        base = self._base
        if base is not None:
            base = base.only(
                [p for p in base.counts if not any(covers(wide, p) for wide in predicates)]
            )
        return SparkCounts(self._run, base, self._changed.without(predicates))

    def positive(self, facts: SparkFacts) -> SparkFacts:
        """Keep the facts that are derived at least once."""
        if len(facts) > self._run.small and facts.base is not None:
            return self._positive(facts)
        own = facts.local()
        return SparkFacts(self._run, self._of_base(own).positive(own))

    def _positive(self, facts: SparkFacts) -> SparkFacts:
        """Do the same in tasks: facts and their counts are co-partitioned."""
        run = self._run
        frames = [facts.chunks()]
        if self._base is not None:
            frames.append(self._base.chunks(STATE))
        if (changed := self._changed_chunks()) is not None:
            frames.append(changed)
        base = merge(run, run.union(frames), KeepPositive(frozenset(facts.counts_by_key())))
        return SparkFacts.of(base).collect_if_small()

    def of(self, facts: SparkFacts) -> Mapping[Predicate, Numbers]:
        """Return the count of each fact, in the order of `facts.rows(predicate)`."""
        own = facts.local()
        return self._of_base(own).of(own)

    def facts(self) -> SparkFacts:
        """Return all facts whose count is not 0."""
        return SparkFacts(self._run, self._of_base(None).facts())

    def _of_base(self, facts: Any) -> Counts[Any]:
        """Fetch the counts of driver facts, or of all facts if None, into the embedded engine."""
        base, counts = self._base, self._changed
        if base is None:
            return counts
        wanted: dict[Predicate, Mapping[int, Ids] | None] = {}
        if facts is None:
            wanted = dict.fromkeys(base.counts)
        else:
            for predicate in base.counts.keys() & facts.predicates():
                rows = facts.rows(predicate)
                wanted[predicate] = {0: rows[:, 0]} if rows.shape[1] else None
        fetched = base.fetch(wanted)
        for predicate in wanted:
            rows = fetched.rows(predicate)
            if len(rows):
                table = self._run.embedded.facts({predicate: rows[:, :-1]})
                own = {predicate: rows[:, -1].astype(np.int32).astype(np.int64)}
                counts = counts.plus(Derived(table, 0, counts=own))
        return counts


@dataclass(frozen=True)
class NegateCounts(TableTask):
    """Negate counts, to subtract them."""

    def add(self, table: Table, out: ChunkBuffer) -> None:
        rows = table.rows.copy()
        rows[:, -1] = -table.rows[:, -1]
        out.add(table.partition, table.kind, table.key, rows)


@dataclass(frozen=True)
class KeepPositive:
    """Keep the facts whose counts sum to more than 0; counts have one column more than facts."""

    keys: frozenset[Key]

    def __call__(self, batches: Batches) -> Batches:
        me, out = task.this_partition(), ChunkBuffer()
        tables = task.merge_chunks(batches)
        for key in self.keys & tables.keys():
            counts = tables.get((*key[:3], key[3] + 1))
            if counts is None:
                continue
            counts = task.sum_counts(counts)
            derived = counts[counts[:, -1].astype(np.int32) > 0][:, :-1]
            out.add(me, DERIVED, key, task.intersect_rows(tables[key], derived))
        yield from out.drain()
        yield out.report(me)
