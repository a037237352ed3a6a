"""Compute values in tasks, and number the new terms among them.

Rounds collect rows of terms over which an expression is to be computed. The driver computes few of
them. For many, tasks do what loading does with the terms of documents (`encode`):

1. *texts*: rows are shuffled by their terms, each row to one part, and a part requests the texts of
   its terms from the partitions of the terms table.
2. *compute*: a part computes the values. Those that are not among its inputs are shuffled to
   buckets by a hash of their texts.
3. *number*: a bucket finds its terms in the terms table, which is partitioned in the same way, and
   numbers the others.
4. *range*: the driver gives each bucket the range of ids that follows the previous bucket's.
5. *translate*: each part receives the ids of its values, and its rows enter the next round.

Steps 1 to 3 are one job; step 5 belongs to the job of the next round. The driver receives a number
for each bucket.

Invariant: the numbers of a bucket are deterministic, in whatever order its blocks arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.calls import computed
from corollary.core.dictionary import MAX_TERMS, Dictionary, Ids
from corollary.core.expressions import holds
from corollary.core.hashing import NO_ID
from corollary.core.ids import in_order, row_groups
from corollary.core.partial import PartialDictionary
from corollary.core.term_store import TermStore, spans_of_array
from corollary.engines.spark import task
from corollary.engines.spark.answers import TermQuery, text_block, texts_of
from corollary.engines.spark.blocks import cut, deserialize, serialize
from corollary.engines.spark.packing import (
    CODES,
    FRESH,
    NEW,
    NONE,
    RESULT,
    STATE,
    TERMS,
    TEXTS,
    ChunkBuffer,
    Key,
    Table,
    blocks_of,
    iter_tables,
    report_batch,
    special_batch,
)
from corollary.engines.spark.plan import Plan
from corollary.engines.spark.reports import TaskReport
from corollary.engines.spark.task import Batches, TableTask, distinct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from corollary.engines.spark.base import SparkRun
    from corollary.engines.spark.terms import TermTable

NEW_TERMS = "id long, term string"
_REQUESTS: Key = (0, NONE, NONE, 2)  # terms, and the parts that request their texts
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio

_Numbers = npt.NDArray[np.int64]
Queries = Mapping[Key, TermQuery]


def values_by_tasks(
    run: SparkRun, plan: Plan, queries: Queries, questions: DataFrame, terms: TermTable
) -> DataFrame:
    """Answer queries about rows of terms; the dictionary gets the new terms.

    Values take one job; filters none, because they are answered in the job of the next round.
    """
    partitions = run.partitions
    rows = run.shuffle(run.map_chunks(questions, RouteRows(partitions, frozenset(queries))))
    requests = run.map_chunks(rows, RequestTexts(partitions))
    texts = run.shuffle(run.union([requests, terms.texts(literals=False)]))
    inputs = run.shuffle(run.map_chunks(texts, SendTexts()))
    values = run.map_chunks(inputs, ComputeValues(queries, partitions))
    if not any(query.computes for query in queries.values()):  # filters make no terms
        return run.map_chunks(values, ValueResults(queries, plan, partitions, {}))
    together = run.shuffle(run.union([values, terms.by_hash]))
    run.describe("compute values")
    numbered = run.checkpoint(together, NumberValues())
    starts, count = ranges(numbered.reports, len(run.dictionary))
    if count:
        assert isinstance(run.dictionary, PartialDictionary), "it is extensible"
        new = run.map_rows(run.select_kinds(numbered.frame, NEW), NewTerms(starts), NEW_TERMS)
        run.dictionary.extend(count, new)
    coded = run.shuffle(run.select_kinds(numbered.frame, STATE, RESULT, CODES))
    return run.map_chunks(coded, ValueResults(queries, plan, partitions, starts))


def ranges(reports: Sequence[TaskReport], first: int) -> tuple[dict[int, int], int]:
    """Return the first id of each bucket, and the number of all new terms.

    >>> ranges([{"partition": 1, "new": 3}, {"partition": 0, "new": 2}], 10)
    ({0: 10, 1: 12}, 5)
    """
    starts, at = {}, first
    for report in sorted(reports, key=lambda report: report["partition"]):
        starts[report["partition"]] = at
        at += report["new"]
    return starts, at - first


@dataclass(frozen=True)
class RouteRows(TableTask):
    """Route distinct rows of terms to the parts that compute their values."""

    partitions: int
    keys: frozenset[Key]

    def add(self, table: Table, out: ChunkBuffer) -> None:
        if table.key not in self.keys:
            return
        rows = distinct(table.rows)
        # By all columns: one of them may have few different terms.
        mixed = np.zeros(len(rows), np.uint64)
        for column in rows.T:
            mixed = (mixed ^ column) * _ODD
            mixed ^= mixed >> np.uint64(32)
        for part, places in row_groups((mixed % np.uint64(self.partitions)).astype(np.int64)):
            out.add(part, FRESH, table.key, rows[places])


@dataclass(frozen=True)
class RequestTexts:
    """Request the texts of the terms of a part."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        part = task.this_partition()
        out = ChunkBuffer()
        wanted = np.zeros(0, np.uint32)
        for key, rows in _rows_by_key(batches, FRESH).items():
            out.add(part, STATE, key, rows)
            wanted = in_order(np.concatenate([wanted, rows.ravel()]))
        requests = np.column_stack([wanted, np.full(len(wanted), part, np.uint32)])
        out.send(FRESH, _REQUESTS, requests, 0, self.partitions)
        yield from out.drain()


@dataclass(frozen=True)
class SendTexts:
    """Send texts to the parts that request them; rows stay in their parts."""

    def __call__(self, batches: Batches) -> Batches:
        inputs = list(batches)
        out = ChunkBuffer()
        requests = [np.zeros((0, 2), np.uint32)]
        for partition, kind, key, rows in iter_tables(inputs):
            if kind == STATE:
                out.add(partition, STATE, key, rows)
            else:
                requests.append(rows)
        yield from out.drain()
        wanted = np.concatenate(requests)
        if not len(wanted):
            return
        ids, texts = texts_of(inputs)
        order = np.argsort(ids)
        for part, places in row_groups(wanted[:, 1].astype(np.int64)):
            chosen = wanted[places, 0]
            found = texts.take(pa.array(order[np.searchsorted(ids[order], chosen)]))
            for piece in cut(found):
                yield text_block(part, chosen[piece], found[piece])


@dataclass(frozen=True)
class ComputeValues:
    """Compute the values of the rows of a part.

    Rows whose values are among the terms of the part are complete (kind RESULT), and so are those
    that a filter accepts. The other values have numbers of the part, and go to their buckets.
    """

    queries: Queries
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        part = task.this_partition()
        inputs = list(batches)
        ids, texts = texts_of(inputs)
        order = np.argsort(ids)
        ids, dictionary = ids[order], Dictionary()
        dictionary.encode_texts(texts.take(pa.array(order)))  # a place in `ids` is an id here
        out = ChunkBuffer()
        for key, rows in _rows_by_key(inputs, STATE).items():
            query = self.queries[key]
            assert query.condition is not None, "a query about rows has an expression"
            places = np.searchsorted(ids, rows).astype(np.uint32)
            columns = {n: np.ascontiguousarray(column) for n, column in enumerate(places.T)}
            if not query.computes:
                mask = holds(query.condition, columns, len(rows), dictionary)
                out.add(part, RESULT, key, rows[mask])
                continue
            values, valid = computed(query.condition, columns, len(rows), dictionary)
            old = valid & (values < len(ids))
            wide = (*key[:3], key[3] + 1)
            out.add(part, RESULT, wide, np.column_stack([rows[old], ids[values[old]]]))
            new = valid & ~old
            numbers = values[new] - np.uint32(len(ids))
            out.add(part, STATE, wide, np.column_stack([rows[new], numbers]))
            yield from out.drain()
        yield from out.drain()
        yield from self._candidates(part, dictionary.texts_from(len(ids)))

    def _candidates(self, part: int, texts: pa.LargeStringArray) -> Iterator[pa.RecordBatch]:
        """Blocks of the values that are new to a part, for their buckets."""
        buckets = spans_of_array(texts).hashes() % np.uint32(self.partitions)
        for bucket, places in row_groups(buckets):
            chosen = texts.take(pa.array(places))
            for piece in cut(chosen):
                columns = {"local": pa.array(places[piece]), "term": chosen[piece]}
                columns["part"] = pa.array(np.full(len(places[piece]), part))
                data = serialize(columns).to_pybytes()
                yield special_batch(bucket, TERMS, len(places[piece]), data)


@dataclass(frozen=True)
class NumberValues:
    """Number the values of a bucket: by the terms table, or else from 0 on, as negative codes."""

    def __call__(self, batches: Batches) -> Batches:
        bucket = task.this_partition()
        inputs = list(batches)
        out = ChunkBuffer()
        for partition, kind, key, rows in iter_tables(inputs):
            out.add(partition, kind, key, rows)
        yield from out.drain()
        store = TermStore()
        parts: list[tuple[int, pa.Table, Ids]] = []
        blocks = [deserialize(data) for data in blocks_of(inputs, TERMS)]
        blocks.sort(key=lambda table: (table["part"][0].as_py(), table["local"][0].as_py()))
        for table in blocks:
            texts = table["term"].combine_chunks()
            ids = store.encode(spans_of_array(texts), limit=MAX_TERMS)
            parts.append((table["part"][0].as_py(), table, ids))
        codes = np.zeros(len(store), np.int64)
        is_new = np.ones(len(store), bool)
        known = blocks_of(inputs, TEXTS) if len(store) else ()
        for table in map(deserialize, known):
            found = store.encode(spans_of_array(table["term"].combine_chunks()), limit=0)
            here = found != NO_ID
            codes[found[here]] = table["id"].to_numpy()[here]
            is_new[found[here]] = False
        count = int(np.count_nonzero(is_new))
        codes[is_new] = -1 - np.arange(count)
        for part, table, ids in parts:
            columns = {"local": table["local"].combine_chunks(), "code": pa.array(codes[ids])}
            columns["bucket"] = pa.array(np.full(len(ids), bucket))
            yield special_batch(part, CODES, len(ids), serialize(columns).to_pybytes())
        texts = store.array().filter(pa.array(is_new))
        for piece in cut(texts):
            numbers = np.arange(piece.start, piece.stop)
            columns = {"number": pa.array(numbers), "term": texts[piece]}
            yield special_batch(bucket, NEW, len(numbers), serialize(columns).to_pybytes())
        yield report_batch(bucket, {"partition": bucket, "new": count})


@dataclass(frozen=True)
class ValueResults:
    """Translate the values of a part to ids; route its rows to where the plan reads them."""

    queries: Queries
    plan: Plan
    partitions: int
    starts: Mapping[int, int]

    def __call__(self, batches: Batches) -> Batches:
        inputs = list(batches)
        coded = [
            (table["local"].to_numpy(), self._ids(table))
            for table in map(deserialize, blocks_of(inputs, CODES))
        ]
        lookup = np.zeros(sum(len(local) for local, _ in coded), np.uint32)
        for local, ids in coded:
            lookup[local] = ids
        answers = {query.answers.key[:3]: query.answers for query in self.queries.values()}
        out = ChunkBuffer()
        for _, kind, key, rows in iter_tables(inputs):
            if kind == STATE:
                rows = np.column_stack([rows[:, :-1], lookup[rows[:, -1]]])
            source = answers[key[:3]]
            for number in self.plan.placements_of(source):
                self.plan.send(out, FRESH, number, rows, self.partitions)
        yield from out.drain()

    def _ids(self, table: pa.Table) -> Ids:
        codes: _Numbers = table["code"].to_numpy()
        first = self.starts[table["bucket"][0].as_py()]
        return np.where(codes < 0, first - 1 - codes, codes).astype(np.uint32)


@dataclass(frozen=True)
class NewTerms:
    """Return the new terms of buckets with their ids."""

    starts: Mapping[int, int]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for at in range(batch.num_rows):
                table = deserialize(batch.column(4)[at].as_buffer())
                ids = self.starts[batch.column(0)[at].as_py()] + table["number"].to_numpy()
                texts = table["term"].combine_chunks().cast(pa.string())
                yield pa.record_batch({"id": pa.array(ids.astype(np.int64)), "term": texts})


def _rows_by_key(batches: Iterable[pa.RecordBatch], kind: int) -> dict[Key, Ids]:
    """The distinct rows of one kind, by key."""
    found: dict[Key, list[Ids]] = {}
    for table in iter_tables(batches):
        if table.kind == kind:
            found.setdefault(table.key, []).append(table.rows)
    return {key: distinct(np.concatenate(parts)) for key, parts in sorted(found.items())}
