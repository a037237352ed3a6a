"""The Spark engine without Spark: chunks in lists, tasks as calls, for thousands of small cases.

The plans, the rounds and what tasks do are the real ones; what Spark does between them (shuffles,
Arrow streams, checkpoints) is tested with Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from corollary.core.ids import in_order
from corollary.core.partial import PartialDictionary
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark import task
from corollary.engines.spark.answers import (
    VALUES,
    NumberValues,
    PartitionByHash,
    PartitionByValue,
    PartitionTexts,
)
from corollary.engines.spark.base import SparkRun
from corollary.engines.spark.copies import Checkpoint
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.packing import ARROW, COPIED, REPORT, STATE, ChunkBuffer
from corollary.engines.spark.task import Fetch

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

    def map_rows(self, frame: Any, function: Any, schema: str) -> Any:
        return [list(function(iter(part))) for part in frame]

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


class InlineTerms:
    """The terms that an engine without Spark has numbered, as a terms table that begins empty."""

    def __init__(self) -> None:
        self.dictionary = PartialDictionary({}, 0, self.fetch, self.look_up, extensible=True)
        self.run: Any = None

    def table(self) -> dict[int, str]:
        rows = dict(self.dictionary.new_terms)
        for part in self.dictionary.created:
            found = [batch for batches in part.table for batch in batches]
            own = {row["id"]: row["term"] for batch in found for row in batch.to_pylist()}
            assert sorted(own) == list(range(part.first, part.first + part.size))
            rows |= own
        assert len({*rows.values()}) == len(rows), "every term has one id"
        return rows

    def fetch(self, ids: list[int]) -> list[str]:
        rows = self.table()
        return [rows[number] for number in ids]

    def look_up(self, texts: list[str]) -> list[int | None]:
        numbers = {text: number for number, text in self.table().items()}
        return [numbers.get(text) for text in texts]

    def texts(self, *, literals: bool) -> Frame:
        return self._blocks(PartitionTexts(self.run.partitions), literals)

    @property
    def by_hash(self) -> Frame:
        return self._blocks(PartitionByHash(self.run.partitions), False)

    @property
    def values(self) -> Frame:
        run = self.run
        keys = self._blocks(PartitionByValue(run.partitions), True)
        found: Frame = run.map_chunks(run.shuffle(keys), NumberValues(run.partitions))
        return found

    def values_of(self, ids: Any) -> Any:
        fetch = Fetch(STATE, {VALUES: {0: in_order(ids)}})
        found = self.run.collect(self.run.map_chunks(self.values, fetch))
        return found.get(VALUES, np.zeros((0, 2), np.uint32))

    def same_values(self, ids: Any) -> None:
        return None

    def _blocks(self, work: Any, literals: bool) -> Frame:
        rows = [(n, text) for n, text in self.table().items() if not literals or text[0] == '"']
        ids, texts = [n for n, _ in rows], [text for _, text in rows]
        columns = [pa.array(ids, pa.int64()), pa.array(texts, pa.string())]
        batch = pa.record_batch(columns, names=["id", "term"])
        return [[block.cast(ARROW) for block in work(iter([batch]))]]


def inline_values(**options: Any) -> Engine[Any]:
    """A Spark engine without Spark whose tasks compute all values and answer all queries."""
    terms = InlineTerms()
    engine: Any = inline(terms.dictionary, **options)
    engine.run.terms, terms.run = terms, engine.run
    return engine  # type: ignore[no-any-return]


def inline(
    dictionary: Dictionary, *, small: int = 3, partitions: int = 3, **options: Any
) -> Engine[Any]:
    """A Spark engine without Spark."""
    engine = SparkEngine(dictionary, ColumnarEngine, small=small, partitions=partitions, **options)
    run = engine.run
    engine.run = InlineRun(run._start, dictionary, ColumnarEngine, run.options)
    return engine
