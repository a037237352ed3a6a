"""`Built`: the report of a build or an update on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from corollary.knowledge_base.report import Report
from corollary.knowledge_base.spark.stages import Stage, Stages

if TYPE_CHECKING:
    from corollary.knowledge_base.spark.load import Loaded
    from corollary.store import Statistics


@dataclass(frozen=True, eq=False)
class Built(Report):
    """A committed version, and the stages of its build or update."""

    version: int
    stages: Sequence[Stage] = ()

    def to_json(self) -> dict[str, Any]:
        """Convert the report to the JSON that `--json` prints."""
        return super().to_json() | {"stages": [stage.to_json() for stage in self.stages]}

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


def built(version: int, statistics: Statistics, stages: Stages, loaded: Loaded) -> Built:
    """Report a version with the statistics of its commit."""
    report = Built.of(version, statistics, stages.seconds, loaded.skipped, loaded.samples)
    return replace(report, stages=stages.done)
