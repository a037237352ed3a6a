"""Reports of the stages of the pipeline: rows, bytes, seconds, rounds, skew."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corollary.engines.spark.jobs import JobLabels

OnProgress = Callable[[str], None]  # one line for every stage and round


@dataclass
class Stage:
    """The report of one stage; `skew` is the size of the largest task relative to the mean."""

    name: str
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    rounds: int = 0
    skew: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """Convert the report to the JSON that `--json` prints."""
        rounded = {"seconds": round(self.seconds, 3), "skew": round(self.skew, 2)}
        return asdict(self) | rounded

    def __str__(self) -> str:
        rate = f", {self.rows / self.seconds:,.0f} rows/s" if self.rows and self.seconds else ""
        rounds = f", {self.rounds} rounds" if self.rounds else ""
        size = f", {self.bytes / 2**20:,.1f} MiB" if self.bytes else ""
        skew = f", skew {self.skew:.1f}" if self.skew >= 1.5 else ""
        return f"{self.name}: {self.rows:,} rows, {self.seconds:.2f} s{rate}{size}{rounds}{skew}"


@dataclass
class Stages:
    """The finished stages; `on_progress` is called at the end of each.

    `labels` describe the jobs of a stage in Spark's UI.
    """

    labels: JobLabels
    on_progress: OnProgress | None = None
    done: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time and report a stage."""
        one = Stage(name)
        started = time.perf_counter()
        with self.labels.stage(name):
            yield one
        one.seconds = time.perf_counter() - started
        self.done.append(one)
        self.tell(str(one))

    def tell(self, text: str) -> None:
        """Report progress."""
        if self.on_progress is not None:
            self.on_progress(text)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage."""
        return {stage.name: stage.seconds for stage in self.done}


def skew(sizes: Sequence[float]) -> float:
    """Return the maximum relative to the mean.

    >>> skew([1, 1, 4])
    2.0
    """
    total = sum(sizes)
    return max(sizes) * len(sizes) / total if total else 1.0
