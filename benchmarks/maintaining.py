"""Shared by the benchmarks of maintenance: a maintained materialization and timed updates."""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.report import Row
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options
from corollary.algorithms.registry import Kind
from corollary.algorithms.seminaive import materialize
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

    def digest(self) -> str:
        """The hash of the current facts."""
        return digest(self.maintainer.facts)

    def scratch_digest(self) -> str:
        """The hash of the facts that a materialization from scratch derives."""
        explicit = self.maintainer.explicit
        return digest(materialize(self.maintainer.program, explicit, self.engine).facts)

    def _timed(self, changes: Changes[ColumnarFacts]) -> tuple[float, Changes[ColumnarFacts]]:
        started = time.perf_counter()
        done = self.maintainer.update(changes)
        return time.perf_counter() - started, done


def digest(facts: ColumnarFacts) -> str:
    """A hash of facts: equal for equal facts if the same ids stand for the same terms.

    Counts would not show an update that does nothing, or that loses one fact and keeps another.
    """
    found = hashlib.sha256()
    for predicate in sorted(facts.predicates(), key=repr):
        rows = np.ascontiguousarray(facts.rows(predicate), dtype=np.uint32)
        if len(rows):
            found.update(f"{predicate!r} {rows.shape}".encode())
            found.update(_sorted(rows).tobytes())
    return found.hexdigest()


def _sorted(rows: Ids) -> Ids:
    if rows.shape[1] == 2:  # one sort of 64-bit keys, which takes a tenth of the time
        keys = np.sort((rows[:, 0].astype(np.uint64) << np.uint64(32)) | rows[:, 1])
        return np.stack([keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)], axis=1).astype(
            np.uint32
        )
    return rows[np.lexsort(rows.T[::-1])] if rows.shape[1] else rows


# What updates a stratum with modules, by the class of the algorithm.
MODULAR = {
    "DirectDiff": "diff of the module alone",
    "Rebuild": "closed again",
    "ModularDRed": "Algorithm 3",
    "ModularBackwardForward": "modular B/F",
}


@contextmanager
def recorded_algorithms() -> Iterator[set[str]]:
    """What updates the strata with modules within the block."""
    chosen: set[str] = set()
    choose = Kind.algorithm_of

    def recorded(kind: Kind, *arguments: Any, **options: Any) -> Any:
        algorithm = choose(kind, *arguments, **options)
        chosen.add(MODULAR.get(type(algorithm).__name__, ""))
        return algorithm

    with patch.object(Kind, "algorithm_of", recorded):
        yield chosen
    chosen.discard("")


class Agreement:
    """Whether the runs of a case end with the same facts: the first run decides, others agree."""

    def __init__(self) -> None:
        self._hashes: dict[object, object] = {}

    def holds(self, case: object, hashes: object) -> bool:
        """Compare hashes with those of the first run of the same case.

        >>> agreement = Agreement()
        >>> agreement.holds("a", "1f"), agreement.holds("a", "1f"), agreement.holds("a", "2e")
        (True, True, False)
        """
        return self._hashes.setdefault(case, hashes) == hashes


def sample(rng: np.random.Generator, tables: Tables, number: int) -> dict[Predicate, Ids]:
    """A random sample of facts."""
    return _at(tables, rng.choice(sum(map(len, tables.values())), number, replace=False))


def prefix(tables: Tables, number: int) -> dict[Predicate, Ids]:
    """A random sample of facts that contains all smaller ones."""
    order = np.random.default_rng(1).permutation(sum(map(len, tables.values())))
    return _at(tables, order[:number])


def _at(tables: Tables, places: np.ndarray) -> dict[Predicate, Ids]:
    """The facts at places of all tables, one after the other."""
    places = np.sort(places)
    predicates = list(tables)
    sizes = np.array([len(tables[p]) for p in predicates])
    ends = np.cumsum(sizes)
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
