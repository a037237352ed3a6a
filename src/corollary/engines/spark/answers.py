"""Answer queries about the texts of terms in tasks, by a join with the terms table.

Filters query the terms that they accept, and `sameValue` queries the values of literals. Rounds
collect these queries. The driver answers small sets of them. Large sets are shuffled by id to the
partitions of the terms table and answered there, and the results enter the next round. This takes
no job of its own, and nothing that grows with the data reaches the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corollary.core.calls import computed
from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.expressions import holds
from corollary.core.ids import contains, in_order, row_groups
from corollary.core.literals import NO_VALUE, Literals, value_texts
from corollary.core.term_store import spans_of_array
from corollary.engines.spark.blocks import deserialize, serialize
from corollary.engines.spark.packing import (
    FRESH,
    NONE,
    STATE,
    TEXTS,
    ChunkBuffer,
    Key,
    Table,
    blocks_of,
    iter_tables,
    partition_of,
    special_batch,
)
from corollary.engines.spark.plan import Plan, Source
from corollary.engines.spark.task import Batches, TableTask, distinct

_BLOCK = 1 << 18  # terms in a block
MOST_COMPUTED = 20_000_000  # rows of a round whose values the driver computes
VALUES: Key = (0, NONE, NONE, 2)  # terms and the numbers of their values
_ABOUT_LITERALS = frozenset({"isLiteral", "hasDatatype"})  # false for all other terms


@dataclass(frozen=True)
class TermQuery:
    """A query for the terms that satisfy a condition, the values of literals, or texts of terms."""

    answers: Source
    condition: CompiledExpression | None = None  # over the variable 0
    broadcast: bool = False  # the terms are broadcast to tasks; the result confirms each of them
    computes: bool = False  # rows of terms get the value of the condition as their last column
    of_rows: bool = False  # the condition is over rows of terms, which the driver examines

    def rows(self, rows: Ids, dictionary: Dictionary) -> Ids:
        """Select the terms for which the condition holds, or add value numbers or values to them.

        Values that are new terms get ids from the dictionary.
        """
        rows = distinct(rows)
        if self.of_rows:
            assert self.condition is not None, "a query about rows has an expression"
            columns = {at: rows[:, at] for at in range(rows.shape[1])}
            if not self.computes:
                return rows[holds(self.condition, columns, len(rows), dictionary)]
            ids, valid = computed(self.condition, columns, len(rows), dictionary)
            return np.column_stack([rows[valid], ids[valid]])
        if self.of_values:
            values = Literals.of(dictionary).values(rows[:, 0], dictionary)
            known = values != NO_VALUE
            return np.column_stack([rows[known, 0], _in_32_bits(values[known])])
        if self.condition is None:
            return rows
        return rows[holds(self.condition, {0: rows[:, 0]}, len(rows), dictionary)]

    @property
    def by_driver(self) -> bool:
        """Whether only the driver answers the query."""
        return self.broadcast or self.of_rows

    @property
    def of_values(self) -> bool:
        """Whether the query asks for the values of literals."""
        return self.condition is None and not self.broadcast

    @property
    def of_literals(self) -> bool:
        """Whether only literals can have a result."""
        condition = self.condition
        return self.of_values or (isinstance(condition, tuple) and condition[0] in _ABOUT_LITERALS)


def _in_32_bits(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Ids:
    """Map the numbers of `Literals.values` to 32 bits; strings have the ids of their terms.

    Other numbers count down from the maximum: odd numbers of values, and those of strings with
    escapes, which begin at 2⁴⁰.
    """
    top = (1 << 32) - 2
    plain = values // 2 - 1
    count = (values & ((1 << 40) - 1)) // 2
    other = np.where(values < 1 << 40, top - 2 * count, top - 1 - 2 * count)
    return np.where(values % 2 == 0, plain, other).astype(np.uint32)


@dataclass(frozen=True)
class PartitionTexts:
    """Partition rows of the terms table (id, term) by id, as blocks."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        for ids, texts in _blocks(batches):
            for partition, places in row_groups(partition_of(ids, self.partitions)):
                yield text_block(partition, ids[places], texts.take(pa.array(places)))


@dataclass(frozen=True)
class PartitionByHash:
    """Partition rows of the terms table (id, term) by a hash of the term, as blocks."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        for ids, texts in _blocks(batches):
            buckets = spans_of_array(texts).hashes() % np.uint32(self.partitions)
            for bucket, places in row_groups(buckets):
                yield text_block(bucket, ids[places], texts.take(pa.array(places)))


@dataclass(frozen=True)
class PartitionByValue:
    """Partition the literals that have a value by that value, as blocks."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        for ids, texts in _blocks(batches):
            places, keys = value_texts(texts)
            hashes = spans_of_array(keys).hashes() % np.uint32(self.partitions)
            for partition, chosen in row_groups(hashes):
                yield text_block(partition, ids[places[chosen]], keys.take(pa.array(chosen)))


@dataclass(frozen=True)
class NumberValues:
    """Number values: the least id of a literal with the value, the same in every query."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        ids, texts = texts_of(batches)
        value = Dictionary().encode_texts(texts)
        least = np.full(int(value.max(initial=0)) + 1, NONE, np.uint32)
        np.minimum.at(least, value, ids)
        out = ChunkBuffer()
        pairs = np.column_stack([ids, least[value]]) if len(ids) else np.zeros((0, 2), np.uint32)
        out.send(STATE, VALUES, pairs, 0, self.partitions)
        yield from out.drain()


@dataclass(frozen=True)
class RouteQueries(TableTask):
    """Route the queries of a round to the partitions of their terms."""

    partitions: int
    keys: frozenset[Key]  # of the queries that tasks answer

    def add(self, table: Table, out: ChunkBuffer) -> None:
        if table.key in self.keys:
            ids = in_order(table.rows[:, 0])
            out.send(FRESH, table.key, ids[:, None], 0, self.partitions)


@dataclass(frozen=True)
class TermResult:
    """Answer queries, and route the results to the partitions where the plan reads them."""

    queries: Mapping[Key, TermQuery]
    plan: Plan
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        inputs = list(batches)
        ids, texts = texts_of(inputs)
        order = np.argsort(ids)
        ids, texts = ids[order], texts.take(pa.array(order))
        dictionary = Dictionary()
        dictionary.encode_texts(texts)  # the position of a term is its id in this dictionary
        questions: dict[Key, list[Ids]] = {}
        values: list[Ids] = [np.zeros((0, 2), np.uint32)]
        for _, kind, key, rows in iter_tables(inputs):
            if kind == STATE:
                values.append(rows)
            else:
                questions.setdefault(key, []).append(rows)
        out = ChunkBuffer()
        for key, parts in questions.items():
            query = self.queries[key]
            wanted = in_order(np.concatenate(parts)[:, 0])
            if query.condition is not None:
                known = wanted[contains(ids, wanted)]
                places = np.searchsorted(ids, known).astype(np.uint32)
                found = ids[query.rows(places[:, None], dictionary)]
            else:
                table = np.concatenate(values)
                found = table[contains(wanted, table[:, 0])]
            for number in self.plan.placements_of(query.answers):
                self.plan.send(out, FRESH, number, found, self.partitions)
        yield from out.drain()


def text_block(partition: int, ids: Ids, texts: pa.Array) -> pa.RecordBatch:
    """Create a block of terms for a partition."""
    data = serialize({"id": pa.array(ids), "term": texts}).to_pybytes()
    return special_batch(partition, TEXTS, len(ids), data)


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Ids, pa.Array]]:
    """Yield the rows (id, term) of many batches together."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _BLOCK:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> tuple[Ids, pa.Array]:
    table = pa.Table.from_batches(batches)
    texts = table.column(1).cast(pa.large_string()).combine_chunks()
    return table.column(0).to_numpy().astype(np.uint32), texts


def texts_of(batches: Iterable[pa.RecordBatch]) -> tuple[Ids, pa.Array]:
    """Concatenate the terms of all blocks."""
    ids: list[Ids] = [np.zeros(0, np.uint32)]
    texts = [pa.array([], pa.large_string())]
    for table in map(deserialize, blocks_of(batches, TEXTS)):
        ids.append(table.column("id").to_numpy())
        texts += table.column("term").chunks
    return np.concatenate(ids), pa.concat_arrays(texts)
