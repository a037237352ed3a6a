"""Send the driver copies of a task's small results along with its report.

The driver collects the reports of every checkpointed job anyway. So tasks add copies of small
tables to them, and the driver needs no further job to read these. A task sends its derived facts,
the tables with the fewest rows first, and its chunks for the driver, up to its share of the facts
that the driver keeps. All tasks together therefore send at most that many.

Invariant: of each table, a task sends all rows or none. So the driver has all rows of a table if
it received as many as the tasks report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from corollary.core.dictionary import Ids
from corollary.engines.spark.packing import (
    COPIED,
    DERIVED,
    REPORT,
    ChunkBuffer,
    Key,
    iter_copies,
    iter_tables,
)
from corollary.engines.spark.reports import TaskReport
from corollary.engines.spark.task import Batches, OverArrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE_COST = 3  # facts that the description of a table weighs

Tables = dict[Key, Ids]


class Checkpoint(NamedTuple):
    """A checkpointed frame, the reports of its tasks, and the tables copied to the driver."""

    frame: DataFrame
    reports: list[TaskReport]
    derived: Tables  # derived facts
    for_driver: Tables  # chunks addressed to the driver

    @classmethod
    def of(cls, frame: DataFrame, batches: Iterable[pa.RecordBatch]) -> Checkpoint:
        """Decode the rows that the driver collects of a frame."""
        reports: list[TaskReport] = []
        parts: tuple[dict[Key, list[Ids]], ...] = ({}, {})
        for batch in batches:
            kinds = batch.column(1).to_numpy(zero_copy_only=False)
            data = batch.column(4)
            reports += [json.loads(data[int(at)].as_py()) for at in np.flatnonzero(kinds == REPORT)]
            for partition, _, key, rows in iter_copies(batch):
                parts[partition < 0].setdefault(key, []).append(rows)
        derived, for_driver = (
            {key: np.concatenate(rows) for key, rows in tables.items()} for tables in parts
        )
        return cls(frame, reports, derived, for_driver)


@dataclass(frozen=True)
class WithCopies:
    """Apply a task function, and emit copies of its small results after its chunks."""

    function: OverArrow
    limit: int  # facts that a task copies

    def __call__(self, batches: Batches) -> Batches:
        results = SmallTables(self.limit)
        for batch in self.function(batches):
            for partition, kind, key, rows in iter_tables([batch]):
                if kind == DERIVED or partition < 0:
                    results.add((partition < 0, kind, key), rows)
            yield batch
        out = ChunkBuffer()
        for (for_driver, kind, key), parts in results.smallest().items():
            for rows in parts:
                out.add(-1 if for_driver else 0, kind + COPIED, key, rows)
        yield from out.drain()


Name = tuple[bool, int, Key]


class SmallTables:
    """The small ones of the tables that are added in parts, up to a total number of rows.

    Tables are dropped, the largest first, whenever there are too many rows. So a table that grows
    later may stay in the place of one that was dropped before.

    >>> tables = SmallTables(10)
    >>> small, large = ((False, DERIVED, (0, number, 0, 1)) for number in range(2))
    >>> for rows in (4, 3):
    ...     tables.add(large, np.zeros((rows, 1), np.uint32))
    >>> tables.add(small, np.zeros((2, 1), np.uint32))
    >>> [key for _, _, key in tables.smallest()]
    [(0, 0, 0, 1)]
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: dict[Name, list[Ids]] = {}
        self._costs: dict[Name, int] = {}  # of dropped tables too
        self._total = 0

    def add(self, name: Name, rows: Ids) -> None:
        """Add rows of a table."""
        before = self._costs.get(name, 0)
        cost = self._costs[name] = (before or _TABLE_COST) + len(rows)
        if before and name not in self._parts:
            return  # dropped
        if cost > self._limit:
            self._drop(name, before)
            return
        self._parts.setdefault(name, []).append(rows.copy())  # rows may be a view of a large chunk
        self._total += cost - before
        if self._total > 2 * self._limit:
            self.smallest()

    def _drop(self, name: Name, cost: int) -> None:
        if self._parts.pop(name, None) is not None:
            self._total -= cost

    def smallest(self) -> dict[Name, list[Ids]]:
        """Return the tables with the fewest rows, and drop the others."""
        total = 0
        for name in sorted(self._parts, key=lambda name: self._costs[name]):
            total += self._costs[name]
            if total > self._limit:
                self._drop(name, self._costs[name])
        return self._parts
