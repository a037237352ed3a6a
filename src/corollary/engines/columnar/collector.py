"""Collects derived facts: keys by head predicate, made into sets at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.compile import Pattern, constant_id
from corollary.core.dictionary import Ids
from corollary.core.tables import scatter
from corollary.engines.columnar import sets
from corollary.engines.columnar.bindings import MAX_INSTANCES, Table
from corollary.engines.columnar.facts import ColumnarFacts, Space
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Relation, Run, as_set, merge_runs
from corollary.engines.columnar.tuning import tuning
from corollary.errors import OperationFailed
from corollary.lang.stratify import Predicate

_BUDGETED_FACTS = 1 << 16  # above, the memory budget is checked
_HALF = np.uint64(32)


class Projection(NamedTuple):
    """The subjects or the objects of the pairs of a run.

    They become a set only on demand: a union with other sets marks them directly from the pairs,
    which reads and writes half as much.
    """

    run: Run
    subjects: bool

    def known(self) -> Run | None:
        """Return the set, if it has been computed."""
        return self.run.known_subjects if self.subjects else self.run.known_objects

    def compute(self) -> Run:
        """Compute the set; the run caches it."""
        return self.run.subjects if self.subjects else self.run.objects

    def largest(self) -> int:
        """Return the largest id; the run must not be empty."""
        return int(self.run.keys[-1] >> _HALF) if self.subjects else sets.largest(self.run.keys)


class HeadCollector:
    """Collects the heads of rule instances."""

    def __init__(
        self, space: Space, *, counted: bool = False, known: ColumnarFacts | None = None
    ) -> None:
        """Create a collector; `known` facts count towards the fact limit with the derived ones."""
        self.space = space
        self.counted = counted
        self.instances = 0
        # Rows are an upper bound of new facts; beyond `_row_limit` rows the facts are counted.
        self.known = known if space.budget.facts is not None and not counted else None
        self._rows = 0
        self._row_limit = self._room() if self.known is not None else 0
        self._arity: dict[Predicate, int] = {}
        self._runs: dict[Predicate, list[Run]] = {}
        self._unsorted: dict[Predicate, list[Keys | Ids]] = {}
        self._weights: dict[Predicate, list[npt.NDArray[np.int64]]] = {}
        self._diagonal: dict[Predicate, list[Ids]] = {}  # x of facts P(x, x)
        self._projections: dict[Predicate, list[Projection]] = {}

    def add_table(self, head: Pattern, table: Table) -> None:
        """Add the heads of a table of bindings."""
        self.instances += table.instances()
        columns = [
            table.columns[a] if a >= 0 else np.full(table.rows, constant_id(a), np.uint32)
            for a in head.arguments
        ]
        weights = table.weights
        if self.counted and weights is None:
            weights = np.ones(table.rows, np.int64)
        elif self.counted and weights is not None and weights.max(initial=0) >= MAX_INSTANCES:
            raise OperationFailed(
                "E409",
                f"a fact of {head.predicate.relation} has more than {MAX_INSTANCES:,} rule"
                " instances, which cannot be counted",
                "use an algorithm that does not count, such as dred or bf",
            )
        if not head.wide:
            self._add(head.predicate, columns, table.rows, weights)
            return
        for narrow, part, rows in scatter(head.predicate, columns, self.space.dictionary):
            self._add(narrow, part, len(rows), weights[rows] if weights is not None else None)

    def add_run(self, predicate: Predicate, arity: int, run: Run, instances: int) -> None:
        """Add heads that are already a set."""
        self.instances += instances
        if len(run):
            self._arity[predicate] = arity
            self._runs.setdefault(predicate, []).append(run)
            self._count(len(run))

    def add_pairs(self, head: Pattern, pair: tuple[int, ...], run: Run) -> None:
        """Add pairs, transposed pairs, or their subjects or objects as heads."""
        if len(head.arguments) == 2:
            pairs = run if head.arguments == pair else run.transposed
            self.add_run(head.predicate, 2, pairs, len(run))
            return
        self.instances += len(run)
        if len(run):
            self._arity[head.predicate] = 1
            projection = Projection(run, subjects=head.arguments == pair[:1])
            self._projections.setdefault(head.predicate, []).append(projection)
            self._count(len(run))

    def _room(self) -> int:
        """Return the number of facts that the limit allows besides the known ones."""
        limit = self.space.budget.facts
        assert limit is not None, "only collectors with a limit count"
        assert self.known is not None, "only collectors with a limit count"
        return limit - len(self.known)

    def _count(self, rows: int) -> None:
        """Count collected rows; fail if their facts exceed the limit."""
        if self.known is None:
            return
        self._rows += rows
        if self._rows > self._row_limit:
            facts = self.facts()
            self.space.budget.check_fact_limit(len(self.known) + len(facts.difference(self.known)))
            # Counting sorts all rows; the next count waits until the rows have doubled.
            self._runs = {p: list(r.runs) for p, r in facts.relations.items()}
            self._unsorted, self._diagonal, self._projections = {}, {}, {}
            self._rows = len(facts)
            self._row_limit = max(self._room(), 2 * self._rows, self._rows + _BUDGETED_FACTS)

    def _add(
        self,
        predicate: Predicate,
        columns: list[Ids],
        rows: int,
        weights: npt.NDArray[np.int64] | None,
    ) -> None:
        if not rows:
            return
        self._arity[predicate] = len(columns)
        self._collect(predicate, columns, rows, weights)
        self._count(rows)

    def _collect(
        self,
        predicate: Predicate,
        columns: list[Ids],
        rows: int,
        weights: npt.NDArray[np.int64] | None,
    ) -> None:
        if len(columns) == 2 and columns[0] is columns[1] and not self.counted:
            # P(x, x): only x needs sorting, by marks.
            diagonal = self._diagonal.setdefault(predicate, [])
            diagonal.append(columns[0])
            if sum(map(len, diagonal)) > tuning.unsorted_keys_limit:
                self._diagonal[predicate] = [unite([], diagonal, 1).keys.astype(np.uint32)]
            return
        unsorted = self._unsorted.setdefault(predicate, [])
        # Unary ids stay 32 bits wide: they are mostly marked, not sorted.
        single = len(columns) == 1
        unsorted.append(columns[0] if single else self.space.packing.pack(columns, rows))
        if self.counted:
            assert weights is not None, "counted rows have weights"
            self._weights.setdefault(predicate, []).append(weights)
        elif sum(map(len, unsorted)) > tuning.unsorted_keys_limit:
            self.space.budget.reserve(3 * 8 * tuning.unsorted_keys_limit, "sorting derived facts")
            keys = as_set(np.concatenate(unsorted).astype(np.uint64, copy=False))
            self._runs.setdefault(predicate, []).append(Run(keys))
            unsorted.clear()

    def include(self, other: HeadCollector) -> None:
        """Add the rows of another collector, without counts."""
        self.instances += other.instances
        self._arity |= other._arity
        for predicate, runs in other._runs.items():
            self._runs.setdefault(predicate, []).extend(runs)
        for predicate, unsorted in other._unsorted.items():
            self._unsorted.setdefault(predicate, []).extend(unsorted)
        for predicate, ids in other._diagonal.items():
            self._diagonal.setdefault(predicate, []).extend(ids)
        for predicate, projections in other._projections.items():
            self._projections.setdefault(predicate, []).extend(projections)
        self._count(other._rows)

    def facts(self, known: ColumnarFacts | None = None) -> ColumnarFacts:
        """Return the collected facts without the known ones."""
        relations = {}
        for predicate in self._arity:
            mine = known.relations.get(predicate) if known is not None else None
            relations[predicate] = self._relation(predicate, mine)
        return ColumnarFacts(self.space, relations)

    def _relation(self, predicate: Predicate, known: Relation | None) -> Relation:
        arity = self._arity[predicate]
        runs = self._runs.get(predicate, [])
        unsorted = self._unsorted.get(predicate, [])
        projections = self._projections.get(predicate, [])
        if predicate in self._diagonal:
            ids = unite([], self._diagonal[predicate], 1).keys
            runs = [*runs, Run(ids << _HALF | ids)]
        size = (
            sum(map(len, runs)) + 2 * sum(map(len, unsorted)) + sum(len(h.run) for h in projections)
        )
        if size > _BUDGETED_FACTS and (unsorted or len(runs) + len(projections) > 1):
            self.space.budget.reserve(8 * size, f"uniting {size:,} derived facts")
        if known is not None and known.tombstones:
            united = unite(runs, unsorted, arity, projections)
            return Relation.of_run(arity, united.restricted_to(known.missing(united.keys)))
        without = known.runs if known is not None else ()
        return Relation.of_run(arity, unite(runs, unsorted, arity, projections, without))

    def counts(self, facts: ColumnarFacts) -> Mapping[Predicate, npt.NDArray[np.int64]]:
        """Count the instances of each fact, in the order of `facts.rows`."""
        result = {}
        for predicate, weights in self._weights.items():
            keys = np.concatenate(self._unsorted[predicate])
            distinct = facts.relations[predicate].keys()
            sums = np.zeros(len(distinct), np.int64)
            np.add.at(sums, np.searchsorted(distinct, keys), np.concatenate(weights))
            if self._arity[predicate] > 2:
                columns = self.space.packing.unpack(distinct, self._arity[predicate])
                sums = sums[np.lexsort(columns[::-1])]
            result[predicate] = sums
        return result


def unite(
    runs: Sequence[Run],
    unsorted: Sequence[Keys | Ids],
    arity: int,
    projections: Sequence[Projection] = (),
    without: Sequence[Run] = (),
) -> Run:
    """Unite sets, unsorted keys and projections, minus the sets in `without`.

    A single set is passed on with its indexes.
    """
    if len(runs) + len(projections) == 1 and not unsorted:
        return _subtract(runs[0] if runs else projections[0].compute(), without)
    if arity == 1:
        known = [
            computed for projection in projections if (computed := projection.known()) is not None
        ]
        others = [projection for projection in projections if projection.known() is None]
        parts: list[Keys | Ids] = [*(run.keys for run in (*runs, *known)), *unsorted]
        ends = [int(run.keys[-1]) for run in (*runs, *known)] + [int(ids.max()) for ids in unsorted]
        largest = max([*ends, *(projection.largest() for projection in others)], default=0)
        if largest < tuning.head_bitmap_sparsity_limit * (
            sum(map(len, parts)) + sum(len(projection.run) for projection in others)
        ):
            parts += [projection.run.keys for projection in others if not projection.subjects]
            subjects = [projection.run.keys for projection in others if projection.subjects]
            size = sum(map(len, parts)) + sum(map(len, subjects))
            subtracted = [
                run.keys for run in without if len(run) < tuning.known_bitmap_ratio * size
            ]
            united = Run(sets.numbers(parts, largest, subjects=subjects, without=subtracted))
            return _subtract(
                united, [run for run in without if len(run) >= tuning.known_bitmap_ratio * size]
            )
    runs = [*runs, *(projection.compute() for projection in projections)]
    if unsorted:
        runs.append(Run(as_set(np.concatenate(unsorted).astype(np.uint64, copy=False))))
    while len(runs) > 1:  # the smallest two first
        runs.sort(key=len, reverse=True)
        right, left = runs.pop(), runs.pop()
        runs.append(merge_runs(left, right))
    return _subtract(runs[0], without)


def _subtract(run: Run, without: Sequence[Run]) -> Run:
    """Subtract the keys of other runs; returns the run itself if nothing changes."""
    for other in without:
        run = run.restricted_to(sets.select(run.keys, other.keys, False))
    return run
