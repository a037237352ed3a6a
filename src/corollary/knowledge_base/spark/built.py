"""`Built`: what a build or an update on Spark did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corollary.knowledge_base.spark.stages import Stage
from corollary.rdf.triples import Skipped


@dataclass(frozen=True, eq=False)
class Built:
    """A version that was committed."""

    version: int
    explicit: int
    facts: int  # explicit ones included
    inserted: int
    deleted: int
    rounds: int
    derivations: Mapping[str, int]
    algorithm: str
    reason: str
    stages: Sequence[Stage]
    seconds: Mapping[str, float]
    skipped: int = 0
    samples: tuple[Skipped, ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "version": self.version,
            "explicit": self.explicit,
            "facts": self.facts,
            "inserted": self.inserted,
            "deleted": self.deleted,
            "rounds": self.rounds,
            "derivations": dict(self.derivations),
            "seconds": {name: round(spent, 6) for name, spent in self.seconds.items()},
            "algorithm": self.algorithm,
            "reason": self.reason,
            "engine": "spark",
            "complete": True,
            "stages": [stage.to_json() for stage in self.stages],
            "skipped": self.skipped,
            "samples": [sample._asdict() for sample in self.samples],
        }

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        lines = [f"  {stage}" for stage in self.stages]
        return "\n".join(
            [
                f"version {self.version}: {self.explicit:,} explicit facts, {self.facts:,} in all"
                f" (+{self.inserted:,} -{self.deleted:,}), {self.rounds} rounds, {total:.1f} s",
                *lines,
            ]
        )
