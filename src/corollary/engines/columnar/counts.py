"""The number of rule instances per fact: sorted runs of keys with counts, summed on read.

A change adds a run and shares the others; runs of similar size are merged, so its cost is
proportional to its size, as in `relation`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.compile import covers
from corollary.core.engine import Derived
from corollary.engines.columnar.facts import ColumnarFacts, Space
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import Relation
from corollary.engines.columnar.tuning import tuning
from corollary.lang.stratify import Predicate

Numbers = npt.NDArray[np.int64]


class CountedRun(NamedTuple):
    """Sorted keys and their counts, which may be negative: runs are summed."""

    keys: Keys
    counts: Numbers


class ColumnarCounts:
    """Counts of facts; implements `core.engine.Counts`."""

    def __init__(
        self,
        space: Space,
        runs: Mapping[Predicate, tuple[CountedRun, ...]] | None = None,
        arities: Mapping[Predicate, int] | None = None,
    ) -> None:
        self.space = space
        self._runs = runs or {}
        self._arities = arities or {}

    def plus(self, derived: Derived[ColumnarFacts]) -> ColumnarCounts:
        """Add the instances of a counted `derive`."""
        return self._changed(derived, 1)

    def minus(self, derived: Derived[ColumnarFacts]) -> ColumnarCounts:
        """Subtract the instances of a counted `derive`."""
        return self._changed(derived, -1)

    def _changed(self, derived: Derived[ColumnarFacts], sign: int) -> ColumnarCounts:
        assert derived.counts is not None, "counted"
        if not derived.counts:
            return self
        runs, arities = dict(self._runs), dict(self._arities)
        for predicate, counts in derived.counts.items():
            relation = derived.facts.relations[predicate]
            keys = relation.keys()
            ordered = np.empty(len(keys), np.int64)
            ordered[_row_order(keys, relation.arity, self.space)] = sign * counts
            runs[predicate] = _consolidate((*runs.get(predicate, ()), CountedRun(keys, ordered)))
            arities[predicate] = relation.arity
        return ColumnarCounts(self.space, runs, arities)

    def without(self, predicates: Collection[Predicate]) -> ColumnarCounts:
        """Set the counts of these predicates to 0."""
        runs = {
            p: counted
            for p, counted in self._runs.items()
            if not any(covers(w, p) for w in predicates)
        }
        return ColumnarCounts(self.space, runs, self._arities)

    def positive(self, facts: ColumnarFacts) -> ColumnarFacts:
        """The facts that are derived at least once."""
        derived = {}
        for predicate, relation in facts.relations.items():
            keys = relation.keys()
            derived[predicate] = Relation.of(relation.arity, keys[self._sums(predicate, keys) > 0])
        return ColumnarFacts(self.space, derived)

    def of(self, facts: ColumnarFacts) -> Mapping[Predicate, Numbers]:
        """The count of each of the facts, in the order of `facts.rows(predicate)`."""
        counts = {}
        for predicate in facts.predicates():
            relation = facts.relations[predicate]
            keys = relation.keys()
            order = _row_order(keys, relation.arity, self.space)
            counts[predicate] = self._sums(predicate, keys)[order]
        return counts

    def facts(self) -> ColumnarFacts:
        """All facts whose count is not 0."""
        relations = {}
        for predicate, runs in self._runs.items():
            while len(runs) > 1:
                runs = (*runs[:-2], _merge(runs[-2], runs[-1]))
            [run] = runs
            relations[predicate] = Relation.of(self._arities[predicate], run.keys[run.counts != 0])
        return ColumnarFacts(self.space, relations)

    def _sums(self, predicate: Predicate, keys: Keys) -> Numbers:
        sums = np.zeros(len(keys), np.int64)
        for run in self._runs.get(predicate, ()):
            if len(run.keys):
                places = np.minimum(np.searchsorted(run.keys, keys), len(run.keys) - 1)
                sums += np.where(run.keys[places] == keys, run.counts[places], 0)
        return sums


def _row_order(keys: Keys, arity: int, space: Space) -> Numbers | slice:
    """The permutation that sorts the keys by their rows."""
    if arity <= 2:
        return slice(None)
    return np.lexsort(space.packing.unpack(keys, arity)[::-1])


def _consolidate(runs: tuple[CountedRun, ...]) -> tuple[CountedRun, ...]:
    while len(runs) > 1 and len(runs[-2].keys) < tuning.counter_run_merge_ratio * len(
        runs[-1].keys
    ):
        runs = (*runs[:-2], _merge(runs[-2], runs[-1]))
    return runs


def _merge(one: CountedRun, two: CountedRun) -> CountedRun:
    keys = np.concatenate([one.keys, two.keys])
    counts = np.concatenate([one.counts, two.counts])
    order = np.argsort(keys, kind="stable")  # merges two sorted parts in one pass
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    sums = np.add.reduceat(counts, starts)
    nonzero = sums != 0
    return CountedRun(keys[starts][nonzero], sums[nonzero])
