"""`EngineOptions`: how a `SparkEngine` divides the work between the driver and tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corollary.engines.spark.jobs import JobLabels
from corollary.engines.spark.persisted import PersistedFrames
from corollary.engines.spark.tuning import tuning
from corollary.lang.stratify import Predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from corollary.engines.spark.reports import RoundReport


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options of one engine; sizes default to the thresholds of `tuning`."""

    # Sets of up to this many facts stay on the driver.
    small: int = field(default_factory=lambda: tuning.driver_facts_limit)
    # The number of partitions of larger sets; by default chosen from the number of facts.
    partitions: int | None = None
    # The driver finishes a recursion when at most this many facts are left to shuffle.
    finish: int | None = None
    # Relations of up to this many facts are replicated to all partitions.
    tiny: int = field(default_factory=lambda: tuning.broadcast_facts_limit)
    # Up to this many edges of a linear recursion are replicated, or connected by one task.
    edges: int = field(default_factory=lambda: tuning.task_edges_limit)
    # Predicates that are replicated even if rules derive them, such as those of a schema.
    replicated: Collection[Predicate] = ()
    # The table (id, term) of a partial dictionary, for filters over many terms.
    terms: DataFrame | None = None
    on_report: Callable[[RoundReport], None] | None = None
    frames: PersistedFrames = field(default_factory=PersistedFrames)
    labels: JobLabels = field(default_factory=JobLabels)
    # Where the session runs, and its settings, if the engine starts it.
    master: str = "local[*]"
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def finish_limit(self) -> int:
        """The number of facts left to shuffle at which the driver finishes a recursion."""
        if self.finish is not None:
            return self.finish
        return min(self.small, tuning.driver_finish_facts_limit)
