"""`Report`: the outcome of a run, build or update, in process or on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from corollary.rdf.triples import Skipped

if TYPE_CHECKING:
    from corollary.store import Statistics


@dataclass(frozen=True, eq=False)
class Report:
    """The outcome of a materialization or an update.

    >>> report = Report(None, 1, 3, 3, 0, 2, {"nonrecursive": 2}, "semi-naive", "", {"read": 0.1})
    >>> report.to_json()["facts"]
    3
    """

    version: int | None  # None without a store
    explicit: int
    facts: int  # explicit ones included
    inserted: int
    deleted: int
    rounds: int
    derivations: Mapping[str, int]
    algorithm: str
    reason: str
    seconds: Mapping[str, float]
    engine: str = "columnar"
    skipped: int = 0  # malformed RDF statements
    samples: tuple[Skipped, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        version: int,
        statistics: Statistics,
        seconds: Mapping[str, float],
        skipped: int = 0,
        samples: tuple[Skipped, ...] = (),
    ) -> Self:
        """Create the report of a version from the statistics of its commit."""
        return cls(
            version,
            statistics.visible.explicit,
            statistics.visible.facts,
            statistics.inserted,
            statistics.deleted,
            statistics.rounds,
            statistics.derivations,
            statistics.algorithm,
            statistics.reason,
            seconds,
            statistics.engine,
            skipped,
            samples,
        )

    def to_json(self) -> dict[str, Any]:
        """Convert to the JSON that `--json` prints."""
        return vars(self) | {
            "derivations": dict(self.derivations),
            "seconds": {phase: round(spent, 6) for phase, spent in self.seconds.items()},
            "complete": True,
            "samples": [sample._asdict() for sample in self.samples],
        }
