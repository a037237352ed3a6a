"""How many rule instances derive each fact, kept on the driver.

This is the minimal version: a counted `derive` brings its counts to the driver, where they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
import numpy.typing as npt

from corollary.core.compile import covers
from corollary.core.dictionary import Ids
from corollary.core.engine import Derived
from corollary.engines.spark.facts import SparkFacts
from corollary.lang.stratify import Predicate

Numbers = npt.NDArray[np.int64]
Row = tuple[int, ...]


class SparkCounts:
    """Counts of facts; implements `core.engine.Counts`."""

    def __init__(
        self,
        make: Callable[[Mapping[Predicate, Ids]], SparkFacts],
        counts: Mapping[Predicate, Mapping[Row, int]] | None = None,
    ) -> None:
        self._make = make
        self._counts = counts or {}

    def plus(self, derived: Derived[SparkFacts]) -> SparkCounts:
        """With the instances of a counted `derive` added."""
        return self._changed(derived, 1)

    def minus(self, derived: Derived[SparkFacts]) -> SparkCounts:
        """With the instances of a counted `derive` taken away."""
        return self._changed(derived, -1)

    def _changed(self, derived: Derived[SparkFacts], sign: int) -> SparkCounts:
        assert derived.counts is not None, "counted"
        changed = dict(self._counts)
        for predicate, counts in derived.counts.items():
            sums = dict(changed.get(predicate, {}))
            rows = derived.facts.rows(predicate).tolist()
            for row, count in zip(map(tuple, rows), counts.tolist(), strict=True):
                sums[row] = sums.get(row, 0) + sign * count
            changed[predicate] = {row: count for row, count in sums.items() if count}
        return SparkCounts(self._make, changed)

    def without(self, predicates: Collection[Predicate]) -> SparkCounts:
        """With the counts of these predicates set to 0."""
        kept = {
            p: rows
            for p, rows in self._counts.items()
            if not any(covers(wide, p) for wide in predicates)
        }
        return SparkCounts(self._make, kept)

    def positive(self, facts: SparkFacts) -> SparkFacts:
        """Those of the facts that are derived at least once."""
        counts = self.of(facts)
        return self._make({p: facts.rows(p)[counts[p] > 0] for p in facts.predicates()})

    def of(self, facts: SparkFacts) -> Mapping[Predicate, Numbers]:
        """The count of each of the facts, in the order of `facts.rows(predicate)`."""
        found = {}
        for predicate in facts.predicates():
            sums = self._counts.get(predicate, {})
            rows = map(tuple, facts.rows(predicate).tolist())
            found[predicate] = np.array([sums.get(row, 0) for row in rows], np.int64)
        return found

    def facts(self) -> SparkFacts:
        """All facts whose count is not 0."""
        return self._make(
            {
                predicate: np.array(sorted(counts), np.uint32).reshape(len(counts), -1)
                for predicate, counts in self._counts.items()
                if counts
            }
        )
