"""Where derived facts go: keys by head predicate, made into sets at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.compile import Pattern, constant_id
from corollary.core.dictionary import Ids
from corollary.core.tables import scatter
from corollary.engines.columnar import sets
from corollary.engines.columnar.facts import ColumnarFacts, Space
from corollary.engines.columnar.join import MOST, Table
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Relation, Run, as_set, merged
from corollary.engines.columnar.tuning import tuning
from corollary.errors import OperationFailed
from corollary.lang.stratify import Predicate

_LARGE = 1 << 16  # facts from which on the budget is asked
_HALF = np.uint64(32)


class Half(NamedTuple):
    """The subjects, or else the objects, of the pairs of a run.

    They are a set of their own only if asked for: to be united with others, they are marked from
    the pairs at once, which reads and writes half as much.
    """

    run: Run
    subjects: bool

    def known(self) -> Run | None:
        """The set, if there is one."""
        return self.run.known_subjects if self.subjects else self.run.known_objects

    def made(self) -> Run:
        """The set, which the run keeps."""
        return self.run.subjects if self.subjects else self.run.objects

    def largest(self) -> int:
        """The largest of them; of runs that are not empty."""
        return int(self.run.keys[-1] >> _HALF) if self.subjects else sets.largest(self.run.keys)


class Sink:
    """Collects heads of rule instances."""

    def __init__(
        self, space: Space, *, counted: bool = False, known: ColumnarFacts | None = None
    ) -> None:
        """`known` are the facts that derived ones are added to, for the limit of facts."""
        self.space = space
        self.counted = counted
        self.instances = 0
        # Collected rows are at least as many as new facts. Beyond `_enough` rows they are counted.
        self.known = known if space.budget.facts is not None and not counted else None
        self._rows = 0
        self._enough = self._room() if self.known is not None else 0
        self._arity: dict[Predicate, int] = {}
        self._runs: dict[Predicate, list[Run]] = {}
        self._loose: dict[Predicate, list[Keys | Ids]] = {}
        self._weights: dict[Predicate, list[npt.NDArray[np.int64]]] = {}
        self._diagonal: dict[Predicate, list[Ids]] = {}  # x of facts P(x, x)
        self._halves: dict[Predicate, list[Half]] = {}

    def add_table(self, head: Pattern, table: Table) -> None:
        """The heads of a table of bindings."""
        self.instances += table.instances()
        columns = [
            table.columns[a] if a >= 0 else np.full(table.rows, constant_id(a), np.uint32)
            for a in head.arguments
        ]
        weights = table.weights
        if self.counted and weights is None:
            weights = np.ones(table.rows, np.int64)
        elif self.counted and weights is not None and weights.max(initial=0) >= MOST:
            raise OperationFailed(
                "E409",
                f"a fact of {head.predicate.relation} has more than {MOST:,} rule instances,"
                " which cannot be counted",
                "use an algorithm that does not count, such as dred or bf",
            )
        if not head.wide:
            self._add(head.predicate, columns, table.rows, weights)
            return
        for narrow, part, rows in scatter(head.predicate, columns, self.space.dictionary):
            self._add(narrow, part, len(rows), weights[rows] if weights is not None else None)

    def add_run(self, predicate: Predicate, arity: int, run: Run, instances: int) -> None:
        """Heads that are a set already."""
        self.instances += instances
        if len(run):
            self._arity[predicate] = arity
            self._runs.setdefault(predicate, []).append(run)
            self._count(len(run))

    def add_pairs(self, head: Pattern, pair: tuple[int, ...], run: Run) -> None:
        """Heads that are pairs, as they are or exchanged, or their subjects or objects."""
        if len(head.arguments) == 2:
            found = run if head.arguments == pair else run.swapped
            self.add_run(head.predicate, 2, found, len(run))
            return
        self.instances += len(run)
        if len(run):
            self._arity[head.predicate] = 1
            half = Half(run, subjects=head.arguments == pair[:1])
            self._halves.setdefault(head.predicate, []).append(half)
            self._count(len(run))

    def _room(self) -> int:
        """How many facts there may be beside the known ones."""
        limit = self.space.budget.facts
        assert limit is not None, "only sinks with a limit count"
        assert self.known is not None, "only sinks with a limit count"
        return limit - len(self.known)

    def _count(self, rows: int) -> None:
        """Note that rows were collected; fail if their facts go beyond the limit."""
        if self.known is None:
            return
        self._rows += rows
        if self._rows > self._enough:
            found = self.facts()
            self.space.budget.refuse_more(len(self.known) + len(found.difference(self.known)))
            # Counting sorts all rows, so that it waits for as many more.
            self._runs = {p: list(r.runs) for p, r in found.relations.items()}
            self._loose, self._diagonal, self._halves = {}, {}, {}
            self._rows = len(found)
            self._enough = max(self._room(), 2 * self._rows, self._rows + _LARGE)

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
            # Marks of x are all that there is to sort.
            diagonal = self._diagonal.setdefault(predicate, [])
            diagonal.append(columns[0])
            if sum(map(len, diagonal)) > tuning.unsorted_keys_limit:
                self._diagonal[predicate] = [unite([], diagonal, 1).keys.astype(np.uint32)]
            return
        loose = self._loose.setdefault(predicate, [])
        # Ids of members stay as they are: they are mostly marked, not sorted.
        single = len(columns) == 1
        loose.append(columns[0] if single else self.space.packing.pack(columns, rows))
        if self.counted:
            assert weights is not None, "counted rows have weights"
            self._weights.setdefault(predicate, []).append(weights)
        elif sum(map(len, loose)) > tuning.unsorted_keys_limit:
            self.space.budget.reserve(3 * 8 * tuning.unsorted_keys_limit, "sorting derived facts")
            keys = as_set(np.concatenate(loose).astype(np.uint64, copy=False))
            self._runs.setdefault(predicate, []).append(Run(keys))
            loose.clear()

    def include(self, other: Sink) -> None:
        """What another sink has collected, without counts."""
        self.instances += other.instances
        self._arity |= other._arity
        for predicate, runs in other._runs.items():
            self._runs.setdefault(predicate, []).extend(runs)
        for predicate, loose in other._loose.items():
            self._loose.setdefault(predicate, []).extend(loose)
        for predicate, ids in other._diagonal.items():
            self._diagonal.setdefault(predicate, []).extend(ids)
        for predicate, halves in other._halves.items():
            self._halves.setdefault(predicate, []).extend(halves)
        self._count(other._rows)

    def facts(self, known: ColumnarFacts | None = None) -> ColumnarFacts:
        """The collected facts as a set, without those that are known."""
        relations = {}
        for predicate in self._arity:
            mine = known.relations.get(predicate) if known is not None else None
            relations[predicate] = self._relation(predicate, mine)
        return ColumnarFacts(self.space, relations)

    def _relation(self, predicate: Predicate, known: Relation | None) -> Relation:
        arity = self._arity[predicate]
        runs = self._runs.get(predicate, [])
        loose = self._loose.get(predicate, [])
        halves = self._halves.get(predicate, [])
        if predicate in self._diagonal:
            ids = unite([], self._diagonal[predicate], 1).keys
            runs = [*runs, Run(ids << _HALF | ids)]
        size = sum(map(len, runs)) + 2 * sum(map(len, loose)) + sum(len(h.run) for h in halves)
        if size > _LARGE and (loose or len(runs) + len(halves) > 1):
            self.space.budget.reserve(8 * size, f"uniting {size:,} derived facts")
        if known is not None and known.dead:
            found = unite(runs, loose, arity, halves)
            return Relation.of_run(arity, found.with_left(known.missing(found.keys)))
        without = known.runs if known is not None else ()
        return Relation.of_run(arity, unite(runs, loose, arity, halves, without))

    def counts(self, facts: ColumnarFacts) -> Mapping[Predicate, npt.NDArray[np.int64]]:
        """The number of instances of each fact, in the order of `facts.rows`."""
        result = {}
        for predicate, weights in self._weights.items():
            keys = np.concatenate(self._loose[predicate])
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
    loose: Sequence[Keys | Ids],
    arity: int,
    halves: Sequence[Half] = (),
    without: Sequence[Run] = (),
) -> Run:
    """The union of sets, of keys in any order, and of subjects and objects, without other sets.

    A single set is passed on with its indexes.
    """
    if len(runs) + len(halves) == 1 and not loose:
        return _left(runs[0] if runs else halves[0].made(), without)
    if arity == 1:
        known = [made for half in halves if (made := half.known()) is not None]
        others = [half for half in halves if half.known() is None]
        parts: list[Keys | Ids] = [*(run.keys for run in (*runs, *known)), *loose]
        ends = [int(run.keys[-1]) for run in (*runs, *known)] + [int(ids.max()) for ids in loose]
        largest = max([*ends, *(half.largest() for half in others)], default=0)
        if largest < tuning.head_bitmap_sparsity_limit * (
            sum(map(len, parts)) + sum(len(half.run) for half in others)
        ):
            parts += [half.run.keys for half in others if not half.subjects]
            subjects = [half.run.keys for half in others if half.subjects]
            size = sum(map(len, parts)) + sum(map(len, subjects))
            gone = [run.keys for run in without if len(run) < tuning.known_bitmap_ratio * size]
            found = Run(sets.numbers(parts, largest, subjects=subjects, without=gone))
            return _left(
                found, [run for run in without if len(run) >= tuning.known_bitmap_ratio * size]
            )
    runs = [*runs, *(half.made() for half in halves)]
    if loose:
        runs.append(Run(as_set(np.concatenate(loose).astype(np.uint64, copy=False))))
    while len(runs) > 1:  # the smallest two first
        runs.sort(key=len, reverse=True)
        right, left = runs.pop(), runs.pop()
        runs.append(merged(left, right))
    return _left(runs[0], without)


def _left(run: Run, without: Sequence[Run]) -> Run:
    """What is left of a run without the keys of others; itself if that is all."""
    for other in without:
        run = run.with_left(sets.select(run.keys, other.keys, False))
    return run
