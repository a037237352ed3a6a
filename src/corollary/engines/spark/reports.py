"""Reports of tasks, and the statistics of a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TaskReport = Mapping[str, Any]  # the JSON document that a task adds to its chunks


@dataclass(frozen=True)
class RoundReport:
    """Statistics of one round."""

    number: int
    phase: str  # "exchange", "driver" if the driver finished, or the name of a module's job
    rows: int  # facts in the partitions, copies included
    new: int  # facts derived
    exchanged: int  # copies of facts sent to other partitions
    instances: int
    seconds: float  # elapsed on the driver
    busy: float  # total seconds of all tasks
    skew: float  # facts of the largest partition, as a multiple of the mean

    @classmethod
    def of(
        cls, number: int, phase: str, reports: Sequence[TaskReport], seconds: float
    ) -> RoundReport:
        """Sum the reports of the tasks of a job."""
        rows = [r["in"] for r in reports] or [0]
        sums = {
            what: sum(r.get(what, 0) for r in reports)
            for what in ("derived", "sent", "instances", "seconds")
        }
        return cls(
            number,
            phase,
            sum(rows),
            sums["derived"],
            sums["sent"],
            sums["instances"],
            seconds,
            sums["seconds"],
            max(rows) * len(rows) / max(1, sum(rows)),
        )
