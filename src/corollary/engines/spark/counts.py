"""How many rule instances derive each fact.

As sets of facts, counts are a base of many, in Spark, and what was changed since, on the driver, as
long as it is little. A count in Spark is the last column of its fact, modulo 2³²: one that is taken
away before it is added is below 0 for a while.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.compile import covers
from corollary.core.dictionary import Ids
from corollary.core.engine import Derived
from corollary.engines.spark import task
from corollary.engines.spark.base import Base, Workspace, merged
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import (
    DERIVED,
    STATE,
    Gathering,
    Key,
    chunks_of,
    report_of,
)
from corollary.engines.spark.task import Batches, Combine
from corollary.lang.stratify import Predicate

Numbers = npt.NDArray[np.int64]
Row = tuple[int, ...]


class CountsOfRows(Mapping[Predicate, Numbers]):
    """The counts of a `derive` in Spark, brought to the driver when they are read."""

    def __init__(self, base: Base) -> None:
        self.base = base

    @property
    def facts(self) -> SparkFacts:
        """The facts that are counted."""
        nothing = self.base.workspace.embedded.facts({})
        return SparkFacts(self.base.workspace, nothing, self.base.without_last()).settled()

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
        tables = only.workspace.collected(only.chunks(STATE))
        [rows] = tables.values()
        return rows


class SparkCounts:
    """Counts of facts; implements `core.engine.Counts`."""

    def __init__(
        self,
        workspace: Workspace,
        base: Base | None = None,
        changed: Mapping[Predicate, Mapping[Row, int]] | None = None,
    ) -> None:
        self._workspace = workspace
        self._base = base if base is not None and base.counts else None
        self._changed: Mapping[Predicate, Mapping[Row, int]] = changed or {}

    def plus(self, derived: Derived[SparkFacts]) -> SparkCounts:
        """With the instances of a counted `derive` added."""
        return self._with_all(derived, 1)

    def minus(self, derived: Derived[SparkFacts]) -> SparkCounts:
        """With the instances of a counted `derive` taken away."""
        return self._with_all(derived, -1)

    def _with_all(self, derived: Derived[SparkFacts], sign: int) -> SparkCounts:
        counts = derived.counts
        if not isinstance(counts, CountsOfRows) or len(counts.base) <= self._workspace.small:
            found = self._with(derived, sign)
            many = sum(map(len, found._changed.values())) > self._workspace.small
            return SparkCounts(self._workspace, found._added(found._few())) if many else found
        if sign > 0 and self._base is None:
            return SparkCounts(self._workspace, counts.base, self._changed)
        more = counts.base.chunks(STATE)
        if sign < 0:
            more = self._workspace.over(more, Negated())
        return SparkCounts(self._workspace, self._added(more), self._changed)

    def _added(self, more: Any) -> Base:
        """The counts of the base and others, added up in tasks."""
        parts = [more] if self._base is None else [self._base.chunks(STATE), more]
        combine = Combine("union", self._workspace.make, counted=1)
        return merged(self._workspace, self._workspace.united(parts), combine)

    def _few(self) -> Any:
        """What was changed, as chunks."""
        out = Gathering()
        for predicate, sums in self._changed.items():
            if not sums:
                continue
            rows = np.array([(*row, n & 0xFFFFFFFF) for row, n in sums.items()], np.uint32)
            columns = rows.shape[1]
            key = (*self._workspace.key(predicate, columns)[:3], columns)
            if columns == 1:  # the count alone
                out.add(0, STATE, key, rows)
            else:
                out.send(STATE, key, rows, 0, self._workspace.partitions)
        return self._workspace.chunks(out)

    def _with(self, derived: Derived[SparkFacts], sign: int) -> SparkCounts:
        assert derived.counts is not None, "counted"
        changed = dict(self._changed)
        for predicate, counts in derived.counts.items():
            sums = dict(changed.get(predicate, {}))
            rows = derived.facts.rows(predicate).tolist()
            for row, count in zip(map(tuple, rows), counts.tolist(), strict=True):
                sums[row] = sums.get(row, 0) + sign * count
            changed[predicate] = {row: count for row, count in sums.items() if count}
        return SparkCounts(self._workspace, self._base, changed)

    def without(self, predicates: Collection[Predicate]) -> SparkCounts:
        """With the counts of these predicates set to 0."""

        def is_left(predicate: Predicate) -> bool:
            return not any(covers(wide, predicate) for wide in predicates)

        base = self._base
        if base is not None:
            base = base.only([p for p in base.counts if is_left(p)])
        changed = {p: rows for p, rows in self._changed.items() if is_left(p)}
        return SparkCounts(self._workspace, base, changed)

    def positive(self, facts: SparkFacts) -> SparkFacts:
        """Those of the facts that are derived at least once."""
        if len(facts) > self._workspace.small and facts.base is not None:
            return self._positive(facts)
        counts = self.of(facts)
        found = {p: facts.rows(p)[counts[p] > 0] for p in facts.predicates()}
        rows = {p: part for p, part in found.items() if len(part)}
        return SparkFacts(self._workspace, self._workspace.embedded.facts(rows))

    def _positive(self, facts: SparkFacts) -> SparkFacts:
        """The same, in tasks: facts and their counts are at home in the same ones."""
        workspace = self._workspace
        frames = [facts.chunks()]
        keys = frozenset(
            [*workspace.packed(facts.small), *(facts.base.keys() if facts.base else ())]
        )
        if self._base is not None:
            frames.append(self._base.chunks(STATE))
        if (few := self._few()) is not None:
            frames.append(few)
        base = merged(workspace, workspace.united(frames), Positive(keys))
        return SparkFacts(workspace, workspace.embedded.facts({}), base).settled()

    def of(self, facts: SparkFacts) -> Mapping[Predicate, Numbers]:
        """The count of each of the facts, in the order of `facts.rows(predicate)`."""
        tables = {predicate: facts.rows(predicate) for predicate in facts.predicates()}
        counted = self._looked_up(tables)
        found = {}
        for predicate, table in tables.items():
            sums, known = self._changed.get(predicate, {}), counted.get(predicate, {})
            rows = list(map(tuple, table.tolist()))
            found[predicate] = np.array(
                [sums.get(row, 0) + known.get(row, 0) for row in rows], np.int64
            )
        return found

    def facts(self) -> SparkFacts:
        """All facts whose count is not 0."""
        sums: dict[Predicate, dict[Row, int]] = {p: dict(r) for p, r in self._changed.items()}
        if self._base is not None:
            wanted = list(self._base.counts)
            for predicate, rows in _numbers(self._base.fetch(dict.fromkeys(wanted)), wanted):
                own = sums.setdefault(predicate, {})
                for row, count in rows.items():
                    own[row] = own.get(row, 0) + count
        tables = {
            predicate: np.array([row for row, n in rows.items() if n], np.uint32).reshape(
                sum(1 for n in rows.values() if n), -1
            )
            for predicate, rows in sums.items()
            if any(rows.values())
        }
        return SparkFacts(self._workspace, self._workspace.embedded.facts(tables))

    def _looked_up(self, tables: Mapping[Predicate, Ids]) -> dict[Predicate, dict[Row, int]]:
        """The counts of the base for some facts."""
        if self._base is None:
            return {}
        wanted: dict[Predicate, Mapping[int, Ids] | None] = {}
        for predicate, rows in tables.items():
            if predicate in self._base.counts:
                wanted[predicate] = {0: rows[:, 0]} if rows.shape[1] else None
        return dict(_numbers(self._base.fetch(wanted), list(wanted))) if wanted else {}


def _numbers(
    fetched: Any, predicates: Collection[Predicate]
) -> Iterator[tuple[Predicate, dict[Row, int]]]:
    """Rows whose last column is a count."""
    for predicate in predicates:
        rows = fetched.rows(predicate)
        if len(rows):
            numbers = rows[:, -1].astype(np.int32).tolist()
            yield predicate, dict(zip(map(tuple, rows[:, :-1].tolist()), numbers, strict=True))


@dataclass(frozen=True)
class Negated:
    """Counts to be taken away."""

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for partition, kind, key, rows in chunks_of(batches):
            table = rows.copy()
            table[:, -1] = -rows[:, -1]
            out.add(partition, kind, key, table)
        yield from out.take()


@dataclass(frozen=True)
class Positive:
    """Facts whose counts add up to more than 0; counts have a column more than facts."""

    keys: frozenset[Key]

    def __call__(self, batches: Batches) -> Batches:
        me, out, found = task.this_partition(), Gathering(), []
        tables = task.all_of(batches)
        for key in self.keys & tables.keys():
            counts = tables.get((*key[:3], key[3] + 1))
            if counts is None:
                continue
            counts = task.summed(counts)
            derived = counts[counts[:, -1].astype(np.int32) > 0][:, :-1]
            rows = task.intersection_of(tables[key], derived)
            if len(rows):
                out.add(me, DERIVED, key, rows)
                found.append([list(key), len(rows)])
        yield from out.take()
        yield report_of(me, json.dumps({"partition": me, "counts": found}).encode())
