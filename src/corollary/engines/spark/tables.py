"""The rows of one predicate in Spark, and where plans end.

A table is *small*, its rows on the driver, or *large*, a checkpointed DataFrame. Small tables enter
plans as local relations: Spark then knows their sizes, broadcasts them, and a set operation between
two of them needs no job at all. Either way a table has no lineage: a plan that grew by a join each
round would soon take longer to optimize than to run.

Invariant: the rows of a table are distinct, and their number is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.core.dictionary import Ids

UNIT = "unit"  # a fact without arguments is a row with 0 in this column


def columns(arity: int) -> list[str]:
    """The names of a table's columns."""
    return [f"a{number}" for number in range(arity)] or [UNIT]


@dataclass
class Workspace:
    """The session, started when first needed, and the most rows that the driver keeps."""

    start: Callable[[], SparkSession]
    small: int

    @cached_property
    def session(self) -> SparkSession:
        return self.start()

    @cached_property
    def one_row(self) -> DataFrame:
        """The single row of no bindings."""
        return self.frame(np.zeros((1, 0), np.uint32), columns(0))

    def frame(self, rows: Ids, names: list[str]) -> DataFrame:
        """Rows as a DataFrame of longs."""
        values = rows.astype(np.int64) if rows.shape[1] else np.zeros((len(rows), 1), np.int64)
        arrays = [pa.array(values[:, number]) for number in range(len(names))]
        return self.session.createDataFrame(pa.Table.from_arrays(arrays, names))

    def settle(self, frame: DataFrame) -> tuple[DataFrame, pa.Table | None]:
        """Compute a frame once and cut its lineage; with its rows if they are few.

        The checkpoint is local, in the memory and on the disks of the executors: it costs no
        copies, and a lost executor means that the operation has to be repeated from the start.
        """
        # Not eager: the job that looks for few rows computes all of them, and they are kept.
        checkpoint = frame.localCheckpoint(eager=False)
        found = checkpoint.limit(self.small + 1).toArrow()
        return checkpoint, found if len(found) <= self.small else None


@dataclass
class Table:
    """Distinct rows: `local` and in lexicographic order if they are few, else a frame."""

    workspace: Workspace
    arity: int
    count: int
    local: Ids | None = None
    remote: DataFrame | None = field(default=None, repr=False)

    @classmethod
    def of(cls, rows: Ids, workspace: Workspace) -> Table:
        """A table of rows on the driver, duplicates allowed."""
        rows = distinct(rows)
        arity = rows.shape[1]
        if len(rows) <= workspace.small:
            return cls(workspace, arity, len(rows), local=rows)
        frame = workspace.frame(rows, columns(arity))
        return cls(workspace, arity, len(rows), remote=frame)

    @classmethod
    def settled(cls, frame: DataFrame, arity: int, workspace: Workspace) -> Table:
        """A table of a frame without duplicates."""
        checkpoint, found = workspace.settle(frame)
        if found is not None:
            return cls.of(from_arrow(found, arity), workspace)
        return cls(workspace, arity, checkpoint.count(), remote=checkpoint)

    @cached_property
    def frame(self) -> DataFrame:
        if self.remote is not None:
            return self.remote
        assert self.local is not None, "a table is local or remote"
        return self.workspace.frame(self.local, columns(self.arity))

    def rows(self) -> Ids:
        """All rows on the driver, in lexicographic order."""
        if self.local is not None:
            return self.local
        return distinct(from_arrow(self.frame.toArrow(), self.arity))

    # a ∪ b
    def union(self, other: Table) -> Table:
        if self.local is not None and other.local is not None:
            return Table.of(np.concatenate([self.local, other.local]), self.workspace)
        new = other.frame.join(self.frame, columns(self.arity), "left_anti")
        return Table.settled(self.frame.union(new), self.arity, self.workspace)

    # a \ b
    def difference(self, other: Table) -> Table:
        return self._semi_join(other, "left_anti")

    # a ∩ b
    def intersection(self, other: Table) -> Table:
        return self._semi_join(other, "left_semi")

    # a \ b where b ⊆ a: the count is known, so that nothing is computed before it is read
    def less(self, part: Table) -> Table:
        if self.local is not None and part.local is not None:
            return self.difference(part)
        rest = self.frame.join(part.frame, columns(self.arity), "left_anti")
        return Table(self.workspace, self.arity, self.count - part.count, remote=rest)

    # a ∪ b where a ∩ b = ∅: likewise
    def plus(self, other: Table) -> Table:
        if self.local is not None and other.local is not None:
            return self.union(other)
        both = self.frame.union(other.frame)
        return Table(self.workspace, self.arity, self.count + other.count, remote=both)

    def _semi_join(self, other: Table, how: str) -> Table:
        if self.local is not None and other.local is not None:
            mask = _contained(self.local, other.local)
            rows = self.local[mask if how == "left_semi" else ~mask]
            return Table(self.workspace, self.arity, len(rows), local=rows)
        kept = self.frame.join(other.frame, columns(self.arity), how)
        return Table.settled(kept, self.arity, self.workspace)


def distinct(rows: Ids) -> Ids:
    """The rows without duplicates, in lexicographic order."""
    return np.unique(rows, axis=0) if rows.shape[1] else rows[:1]


def from_arrow(table: pa.Table, arity: int) -> Ids:
    """The first columns of an Arrow table as ids."""
    out = np.empty((table.num_rows, arity), np.uint32)
    for number in range(arity):
        out[:, number] = table.column(number).to_numpy()
    return out


def _contained(rows: Ids, others: Ids) -> npt.NDArray[np.bool_]:
    """Which of the rows are among the others."""
    if not rows.shape[1]:
        return np.full(len(rows), len(others) > 0)
    _, number = np.unique(np.concatenate([rows, others]), axis=0, return_inverse=True)
    number = number.reshape(-1)
    return np.isin(number[: len(rows)], number[len(rows) :])
