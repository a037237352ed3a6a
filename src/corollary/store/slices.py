"""The rows of a version in slices of bounded size, for stores larger than memory.

A slice has all rows of some relations, or all triples of some properties: rows of the same label
(`columns`) stay together. Files are sorted by relation and property, so the statistics of their
row groups show which few of them a slice has to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corollary.store import parquet
from corollary.store.delta import translate_read_errors
from corollary.store.layout import TRIPLES
from corollary.store.rows import NO_TERM
from corollary.store.snapshot import Snapshot

ROWS = 1 << 22  # per slice: about 400 MB while it is processed


class _Slice(NamedTuple):
    """A range of relations, or a range of properties of one relation."""

    first: str
    last: str
    low: int | None = None
    high: int | None = None

    def contains(self, rows: pa.Table) -> pa.Array:
        """Mark the rows in the slice."""
        relation = rows["relation"]
        named = pc.and_(pc.greater_equal(relation, self.first), pc.less_equal(relation, self.last))
        if self.low is None:
            return named
        label = pc.fill_null(rows["arg1"], NO_TERM)
        inside = pc.and_(pc.greater_equal(label, self.low), pc.less_equal(label, self.high))
        return pc.and_(named, inside)

    def may_overlap(self, group: pq.RowGroupMetaData) -> bool:
        """Whether the statistics of a row group admit rows of the slice."""
        columns = {group.column(n).path_in_schema: n for n in range(group.num_columns)}
        relation = group.column(columns["relation"]).statistics
        if relation is None or not relation.has_min_max:
            return True
        if relation.max < self.first or relation.min > self.last:
            return False
        label = group.column(columns["arg1"]).statistics
        if self.low is None or relation.min != relation.max:
            return True
        if label is None or not label.has_min_max:
            return True
        if self.low == NO_TERM:  # statistics ignore rows without a second argument
            return True
        return bool(label.max >= self.low and label.min <= self.high)


def slices(snapshot: Snapshot, *, rows: int | None = None) -> Iterator[pa.Table]:
    """The rows of a version, tombstones included, in slices of about `rows` rows."""
    rows = ROWS if rows is None else rows
    files = snapshot.fact_data
    if sum(file.rows for file in files) <= rows:
        yield parquet.read(snapshot.store.facts, files, snapshot.schema)
        return
    for part in _partition(_count_rows(snapshot), rows):
        yield _read(snapshot, part)


def _count_rows(snapshot: Snapshot) -> Counter[tuple[str, int]]:
    """The number of rows of each relation and second argument."""
    counts: Counter[tuple[str, int]] = Counter()
    for file in snapshot.fact_data:
        path = snapshot.store.facts.folder / file.path
        parquet.check(path, file)
        with (
            translate_read_errors(path),
            parquet.opened(path, read_dictionary=["relation"]) as source,
        ):
            for group in range(source.num_row_groups):
                part = source.read_row_group(group, columns=["relation", "arg1"])
                for chunk in part.to_batches():
                    relation = chunk.column("relation")
                    labels = pc.fill_null(chunk.column("arg1"), NO_TERM).to_numpy()
                    names = relation.dictionary.to_pylist()
                    codes = relation.indices.to_numpy(zero_copy_only=False).astype(np.int64)
                    keys, sizes = np.unique((codes << 33) + labels + 1, return_counts=True)
                    for key, size in zip(keys.tolist(), sizes.tolist(), strict=True):
                        counts[names[key >> 33], (key & (2**33 - 1)) - 1] += size
    return counts


def _partition(counts: Counter[tuple[str, int]], rows: int) -> Iterator[_Slice]:
    """Group small relations, and split triples by ranges of properties."""
    totals: Counter[str] = Counter()
    for (relation, _), size in counts.items():
        totals[relation] += size
    waiting: list[str] = []
    for relation in sorted(totals):
        if waiting and sum(totals[name] for name in waiting) + totals[relation] > rows:
            yield _Slice(waiting[0], waiting[-1])
            waiting = []
        if totals[relation] <= rows or relation != TRIPLES:
            waiting.append(relation)  # a plain relation is one array and stays whole
            continue
        labels = sorted(label for name, label in counts if name == relation)
        for low, high in _ranges(labels, [counts[relation, label] for label in labels], rows):
            yield _Slice(relation, relation, low, high)
    if waiting:
        yield _Slice(waiting[0], waiting[-1])


def _ranges(labels: Sequence[int], sizes: Sequence[int], rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of labels with at most `rows` rows, or of one label with more."""
    start, total = 0, 0
    for number, size in enumerate(sizes):
        if number > start and total + size > rows:
            yield labels[start], labels[number - 1]
            start, total = number, 0
        total += size
    yield labels[start], labels[-1]


def _read(snapshot: Snapshot, part: _Slice) -> pa.Table:
    parts = [snapshot.schema.empty_table()]
    for file in snapshot.fact_data:
        path = snapshot.store.facts.folder / file.path
        with translate_read_errors(path), parquet.opened(path) as source:
            metadata = source.metadata
            groups = [
                n for n in range(metadata.num_row_groups) if part.may_overlap(metadata.row_group(n))
            ]
            for group in groups:
                rows = source.read_row_group(group)
                parts.append(parquet.conform(rows.filter(part.contains(rows)), snapshot.schema))
    return pa.concat_tables(parts)
