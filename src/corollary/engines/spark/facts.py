"""Sets of facts in Spark: one table for each narrow predicate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

import numpy as np

from corollary.core.compile import TRIPLES, TYPES, covers
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.spark.tables import Table, Workspace
from corollary.lang.stratify import Predicate


class SparkFacts:
    """An immutable set of facts. Predicates without facts have no table."""

    def __init__(
        self, tables: Mapping[Predicate, Table], dictionary: Dictionary, workspace: Workspace
    ) -> None:
        self._tables = {p: table for p, table in tables.items() if table.count}
        self._dictionary = dictionary
        self._workspace = workspace
        self._wide: dict[Predicate, Table | None] = {}

    def __len__(self) -> int:
        return sum(table.count for table in self._tables.values())

    def predicates(self) -> Collection[Predicate]:
        """The narrow predicates that have facts."""
        return self._tables.keys()

    def rows(self, predicate: Predicate) -> Ids:
        """The facts of a narrow predicate as an array with one row a fact, in sorted order."""
        table = self._tables.get(predicate)
        return np.zeros((0, 0), np.uint32) if table is None else table.rows()

    def table(self, predicate: Predicate) -> Table | None:
        """The facts of a narrow or wide predicate, None if there are none.

        A wide predicate has a column more: the property before the object, or the class.
        """
        if predicate not in (TRIPLES, TYPES):
            return self._tables.get(predicate)
        if predicate not in self._wide:
            parts = [
                self._widened(narrow, table, predicate)
                for narrow, table in self._tables.items()
                if covers(predicate, narrow)
            ]
            self._wide[predicate] = _plus(parts) if parts else None
        return self._wide[predicate]

    def union(self, other: SparkFacts) -> SparkFacts:
        return self._with({**other._tables, **self._tables, **self._both(other, Table.union)})

    def difference(self, other: SparkFacts) -> SparkFacts:
        return self._with({**self._tables, **self._both(other, Table.difference)})

    def intersection(self, other: SparkFacts) -> SparkFacts:
        return self._with(self._both(other, Table.intersection))

    def only(self, predicates: Collection[Predicate]) -> SparkFacts:
        """The facts of these predicates; wide ones stand for all that they cover."""
        named = frozenset(predicates)
        wide = named & {TRIPLES, TYPES}
        return self._with(
            {
                predicate: table
                for predicate, table in self._tables.items()
                if predicate in named or any(covers(w, predicate) for w in wide)
            }
        )

    def without(self, predicates: Collection[Predicate]) -> SparkFacts:
        """The facts of all other predicates."""
        left_out = self.only(predicates)._tables
        return self._with({p: table for p, table in self._tables.items() if p not in left_out})

    def renamed(self, predicate: Predicate, new: Predicate) -> SparkFacts:
        """The facts of one predicate as facts of another one."""
        table = self._tables.get(predicate)
        return self._with({} if table is None else {new: table})

    def less(self, part: SparkFacts) -> SparkFacts:
        """The difference to a subset: no job; to be read in one plan only."""
        return self._with({**self._tables, **self._both(part, Table.less)})

    def plus(self, other: SparkFacts) -> SparkFacts:
        """The union with a disjoint set: no job; to be read in one plan only."""
        return self._with({**other._tables, **self._tables, **self._both(other, Table.plus)})

    def _with(self, tables: Mapping[Predicate, Table]) -> SparkFacts:
        return SparkFacts(tables, self._dictionary, self._workspace)

    def _both(
        self, other: SparkFacts, operation: Callable[[Table, Table], Table]
    ) -> dict[Predicate, Table]:
        return {
            predicate: operation(table, other._tables[predicate])
            for predicate, table in self._tables.items()
            if predicate in other._tables
        }

    def _widened(self, narrow: Predicate, table: Table, wide: Predicate) -> Table:
        """The table with its property or class as a column, so that it becomes part of `wide`."""
        assert narrow.property is not None, "a narrow triple predicate has a property"
        added: dict[int, int] = {}  # place → id
        if wide == TRIPLES:
            added[1] = self._dictionary.id(narrow.property)
        if narrow.member_of is not None:
            added[2 if wide == TRIPLES else 1] = self._dictionary.id(narrow.member_of)
        arity = table.arity + len(added)
        if table.local is not None:
            rows = np.empty((table.count, arity), np.uint32)
            given = iter(table.local.T)
            for place in range(arity):
                rows[:, place] = added[place] if place in added else next(given)
            return Table(self._workspace, arity, table.count, local=rows)
        names = iter(table.frame.columns)
        frame = table.frame.selectExpr(
            *(
                f"{added[place]}L AS a{place}" if place in added else f"{next(names)} AS a{place}"
                for place in range(arity)
            )
        )
        return Table(self._workspace, arity, table.count, remote=frame)


def _plus(parts: Sequence[Table]) -> Table:
    """The union of tables that have no row in common."""
    small = [part.local for part in parts if part.local is not None]
    if len(small) == len(parts):
        return Table.of(np.concatenate(small), parts[0].workspace)
    return reduce(Table.plus, parts)
