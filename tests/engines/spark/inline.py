"""The Spark engine without Spark: chunks in lists, tasks as calls, for thousands of small cases.

The plans, the rounds and what tasks do are the real ones; what Spark does between them (shuffles,
Arrow streams, checkpoints) is tested with Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark import task
from corollary.engines.spark.base import SparkRun
from corollary.engines.spark.copies import Checkpoint
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.packing import ARROW, COPIED, REPORT, ChunkBuffer

Frame = list[list[pa.RecordBatch]]  # partitions


def _rows(frame: Frame, keep: Any) -> Frame:
    return [
        [
            batch.slice(at, 1)
            for batch in part
            for at in range(batch.num_rows)
            if keep(batch.column(0)[at].as_py(), batch.column(1)[at].as_py())
        ]
        for part in frame
    ]


class InlineRun(SparkRun):
    """Chunks in lists."""

    def chunks(self, buffer: ChunkBuffer) -> Any:
        batches = list(buffer.drain())
        return [batches] if batches else None

    def empty(self) -> Any:
        return []

    def shuffle(self, frame: Any) -> Any:
        rows = [batch for part in _rows(frame, lambda *_: True) for batch in part]
        return [
            [row for row in rows if row.column(0)[0].as_py() == number]
            for number in range(self.partitions)
        ]

    def map_chunks(self, frame: Any, function: Any) -> Any:
        out = []
        for number, part in enumerate(frame):
            real = task.this_partition
            task.this_partition = partial(int, number)
            try:
                out.append([batch.cast(ARROW) for batch in function(iter(part))])
            finally:
                task.this_partition = real
        return out

    def compute(self, frame: Any) -> Any:
        for_driver = _rows(frame, lambda partition, kind: kind == REPORT or kind >= COPIED)
        return Checkpoint.of(frame, (batch for part in for_driver for batch in part))

    def select_kinds(self, frame: Any, *kinds: int) -> Any:
        return _rows(frame, lambda partition, kind: partition >= 0 and kind in kinds)

    def select_for_driver(self, frame: Any) -> Any:
        return _rows(frame, lambda partition, kind: partition < 0 and kind < COPIED)

    def union(self, frames: Sequence[Any]) -> Any:
        return [part for frame in frames for part in frame]

    def collect(self, frame: Any) -> Any:
        return task.merge_chunks(batch for part in frame for batch in part)

    def collect_by_partition(self, frame: Any) -> Any:
        return task.merge_by_partition(batch for part in frame for batch in part)


def inline(
    dictionary: Dictionary, *, small: int = 3, partitions: int = 3, **options: Any
) -> Engine[Any]:
    """A Spark engine without Spark."""
    engine = SparkEngine(dictionary, ColumnarEngine, small=small, partitions=partitions, **options)
    run = engine.run
    engine.run = InlineRun(run._start, dictionary, ColumnarEngine, run.options)
    return engine
