"""Views of chunks, as tasks make them: some relations of them, under other names, less some facts.

Not beside `Base`, which uses them: a task that needs no more than this does not load PySpark's SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from corollary.engines.spark.packing import Gathering, Key, Packed, chunks_of
from corollary.engines.spark.task import Batches, difference_of


@dataclass(frozen=True)
class Select:
    """Facts of some relations, less those that were removed, as chunks of another kind."""

    kind: int
    chosen: frozenset[Key]
    removed: Packed
    renamed: Mapping[Key, Key] | None = None

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for partition, _, key, rows in chunks_of(batches):
            if key in self.chosen:
                gone = self.removed.get(key)
                left = rows if gone is None else difference_of(rows, gone)
                name = key if self.renamed is None else self.renamed[key]
                out.add(partition, self.kind, name, left)
        yield from out.take()


@dataclass(frozen=True)
class Shortened:
    """Tables without their last column."""

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for partition, kind, key, rows in chunks_of(batches):
            out.add(partition, kind, (*key[:3], key[3] - 1), rows[:, :-1])
        yield from out.take()
