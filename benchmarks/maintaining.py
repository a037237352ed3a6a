"""Shared by the benchmarks of maintenance: a maintained materialization and timed updates."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.report import Row
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Rule

Tables = Mapping[Predicate, Ids]

# Phases as the columns of Table 2 of Motik et al. 2015 name them.
PHASES = {
    "DR2": "overdeletion",
    "DR4": "rederivation",
    "DR5": "insertion",
    "Bwd": "backward",
    "Sat": "saturation",
    "Del prop": "deletion propagation",
    "rules": "rule removal",
    "anew": "materialization",
}


class Maintained:
    """A program and facts, maintained by one algorithm on the columnar engine."""

    def __init__(
        self,
        program: Program,
        tables: Tables,
        algorithm: str,
        *,
        coarse: bool = False,
        modules: bool = True,
        dictionary: Dictionary | None = None,
        threads: int = 1,
    ) -> None:
        known = dictionary if dictionary is not None else Dictionary()
        self.engine = ColumnarEngine(known, threads=threads)
        self.empty: ColumnarFacts = self.engine.facts({})
        started = time.perf_counter()
        self.maintainer = Maintainer(
            program,
            self.engine.facts(tables),
            self.engine,
            Options(algorithm=algorithm, coarse=coarse, modules=modules),
        )
        self.seconds = time.perf_counter() - started
        gc.collect()
        gc.freeze()  # exempts the existing objects from garbage collection

    def delete(self, tables: Tables) -> tuple[float, Changes[ColumnarFacts]]:
        """Seconds, and the changes."""
        return self._timed(Changes(self.empty, self.engine.facts(tables)))

    def insert(self, tables: Tables) -> tuple[float, Changes[ColumnarFacts]]:
        """Seconds, and the changes."""
        return self._timed(Changes(self.engine.facts(tables), self.empty))

    def change(self, inserted: Tables, deleted: Tables) -> tuple[float, Changes[ColumnarFacts]]:
        """Seconds, and the changes."""
        return self._timed(Changes(self.engine.facts(inserted), self.engine.facts(deleted)))

    def change_rules(
        self, added: Sequence[Rule], removed: Sequence[Rule]
    ) -> tuple[float, Changes[ColumnarFacts]]:
        """Seconds, and the changes."""
        return self._timed(Changes(self.empty, self.empty, tuple(added), tuple(removed)))

    def _timed(self, changes: Changes[ColumnarFacts]) -> tuple[float, Changes[ColumnarFacts]]:
        started = time.perf_counter()
        done = self.maintainer.update(changes)
        return time.perf_counter() - started, done


def sample(rng: np.random.Generator, tables: Tables, number: int) -> dict[Predicate, Ids]:
    """A random sample of facts."""
    predicates = list(tables)
    sizes = np.array([len(tables[p]) for p in predicates])
    ends = np.cumsum(sizes)
    places = np.sort(rng.choice(ends[-1], number, replace=False))
    owners = np.searchsorted(ends, places, side="right")
    return {
        predicates[owner]: tables[predicates[owner]][
            places[owners == owner] - (ends[owner] - sizes[owner])
        ]
        for owner in np.unique(owners).tolist()
    }


def counted(changes: Changes[Any]) -> Row:
    """Derivations of an update in the columns of the paper, and the reason for the algorithm."""
    found = changes.statistics
    assert found is not None, "an update has statistics"
    row: Row = {
        "overdeleted": sum(found.considered.get(name, 0) for name in ("overdeleted", "unsure")),
        "checked": found.considered.get("checked", 0),
    }
    row |= {title: found.derivations.get(phase, 0) for title, phase in PHASES.items()}
    return row | {"derivations": sum(found.derivations.values()), "reason": found.reason}
