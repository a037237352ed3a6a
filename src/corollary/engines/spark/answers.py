"""What only the texts of terms can tell, answered where these are: in tasks.

Filters ask which terms they hold for, and `sameValue` asks for the values of literals. Rounds
gather such questions. Few of them the driver answers. Many go to the partitions of the terms table
by id, are answered there, and the answers join the next round: no job of its own, and nothing that
grows with the data comes to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corollary.core.compile import CompiledExpression
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.expressions import holds
from corollary.core.ids import contains, in_order
from corollary.core.literals import NO_VALUE, Literals, value_texts
from corollary.core.term_store import spans_of_array
from corollary.engines.spark.blocks import packed, unpacked
from corollary.engines.spark.packing import (
    ARROW,
    FRESH,
    NONE,
    STATE,
    TEXTS,
    Gathering,
    Key,
    chunks_of,
    partition_of,
)
from corollary.engines.spark.plan import EVERYWHERE, Plan, Source
from corollary.engines.spark.task import Batches, distinct

_BLOCK = 1 << 18  # terms in a block
_VALUES: Key = (0, NONE, NONE, 2)  # terms, and the numbers of their values
_ABOUT_LITERALS = frozenset({"isLiteral", "hasDatatype"})  # false for all other terms


@dataclass(frozen=True)
class Asked:
    """A question: for which terms a condition holds, the values of literals, or what terms are."""

    answers: Source
    condition: CompiledExpression | None = None  # over the variable 0
    told: bool = False  # tasks are told the terms, and the answer is that they were

    def rows(self, rows: Ids, dictionary: Dictionary) -> Ids:
        """The terms for which the condition holds; terms with the numbers of their values."""
        rows = distinct(rows)
        if self.of_values:
            values = Literals.of(dictionary).values(rows[:, 0], dictionary)
            known = values != NO_VALUE
            return np.column_stack([rows[known, 0], _in_32_bits(values[known])])
        if self.condition is None:
            return rows
        return rows[holds(self.condition, {0: rows[:, 0]}, len(rows), dictionary)]

    @property
    def of_values(self) -> bool:
        """Whether the question is which value a literal has."""
        return self.condition is None and not self.told

    @property
    def of_literals(self) -> bool:
        """Whether terms that are no literals have no answer."""
        condition = self.condition
        return self.of_values or (isinstance(condition, tuple) and condition[0] in _ABOUT_LITERALS)


def _in_32_bits(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Ids:
    """The numbers of `Literals.values`, of which strings have the ids of their terms.

    Others are counted down from above: odd numbers of values, and those of strings with escapes,
    which begin at 2⁴⁰.
    """
    top = (1 << 32) - 2
    plain = values // 2 - 1
    count = (values & ((1 << 40) - 1)) // 2
    other = np.where(values < 1 << 40, top - 2 * count, top - 1 - 2 * count)
    return np.where(values % 2 == 0, plain, other).astype(np.uint32)


@dataclass(frozen=True)
class Texts:
    """Rows of the terms table (id, term) as blocks for the partitions of their ids."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        for ids, texts in _blocks(batches):
            yield from self.blocks(ids, texts)

    def blocks(self, ids: Ids, texts: pa.Array) -> Batches:
        """Terms as blocks."""
        where = partition_of(ids, self.partitions)
        for partition in np.unique(where).tolist():
            places = np.flatnonzero(where == partition)
            yield _block(partition, ids[places], texts.take(pa.array(places)))


@dataclass(frozen=True)
class ByValue:
    """Literals that have a value, as blocks for the partitions of their values."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        for ids, texts in _blocks(batches):
            places, keys = value_texts(texts)
            where = spans_of_array(keys).hashes() % np.uint32(self.partitions)
            for partition in np.unique(where).tolist():
                chosen = np.flatnonzero(where == partition)
                yield _block(partition, ids[places[chosen]], keys.take(pa.array(chosen)))


@dataclass(frozen=True)
class Number:
    """Numbers for values: the least id of a literal that has it, whoever asks, and whenever."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        ids, texts = _texts(batches)
        value = Dictionary().encode_texts(texts)
        least = np.full(int(value.max(initial=0)) + 1, NONE, np.uint32)
        np.minimum.at(least, value, ids)
        out = Gathering()
        pairs = np.column_stack([ids, least[value]]) if len(ids) else np.zeros((0, 2), np.uint32)
        out.send(STATE, _VALUES, pairs, 0, self.partitions)
        yield from out.take()


@dataclass(frozen=True)
class Question:
    """Questions that rounds have gathered, for the partitions of the terms that they are about."""

    partitions: int
    keys: frozenset[Key]  # of those that tasks answer

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for _, _, key, rows in chunks_of(batches):
            if key in self.keys:
                out.send(FRESH, key, in_order(rows[:, 0])[:, None], 0, self.partitions)
        yield from out.take()


@dataclass(frozen=True)
class Answer:
    """Answers to questions, for the partitions where the plan reads them."""

    asked: Mapping[Key, Asked]
    plan: Plan
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        held = list(batches)
        ids, texts = _texts(held)
        order = np.argsort(ids)
        ids, texts = ids[order], texts.take(pa.array(order))
        dictionary = Dictionary()
        dictionary.encode_texts(texts)  # the place of a term is its number here
        questions: dict[Key, list[Ids]] = {}
        values: list[Ids] = [np.zeros((0, 2), np.uint32)]
        for _, kind, key, rows in chunks_of(held):
            if kind == STATE:
                values.append(rows)
            else:
                questions.setdefault(key, []).append(rows)
        out = Gathering()
        for key, parts in questions.items():
            asked = self.asked[key]
            wanted = in_order(np.concatenate(parts)[:, 0])
            if asked.condition is not None:
                known = wanted[contains(ids, wanted)]
                places = np.searchsorted(ids, known).astype(np.uint32)
                found = ids[asked.rows(places[:, None], dictionary)]
            else:
                table = np.concatenate(values)
                found = table[contains(wanted, table[:, 0])]
            for number in self.plan.numbers(asked.answers):
                place = self.plan.placed[number].place
                key = (number, NONE, NONE, found.shape[1])
                where = None if place == EVERYWHERE else place
                out.send(FRESH, key, found, where, self.partitions)
        yield from out.take()


def _block(partition: int, ids: Ids, texts: pa.Array) -> pa.RecordBatch:
    data = packed({"id": pa.array(ids), "term": texts}).to_pybytes()
    return pa.RecordBatch.from_pydict(
        {
            "partition": [partition],
            "kind": [TEXTS],
            "rows": [len(ids)],
            "index": [b""],
            "data": [data],
        },
        ARROW,
    )


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Ids, pa.Array]]:
    """Rows (id, term), many together."""
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


def _texts(batches: Iterable[pa.RecordBatch]) -> tuple[Ids, pa.Array]:
    """The terms of all blocks."""
    ids: list[Ids] = [np.zeros(0, np.uint32)]
    texts = [pa.array([], pa.large_string())]
    for batch in batches:
        kinds = batch.column(1).to_pylist()
        for at in (at for at, kind in enumerate(kinds) if kind == TEXTS):
            table = unpacked(batch.column(4)[at].as_buffer())
            ids.append(table.column("id").to_numpy())
            texts += table.column("term").chunks
    return np.concatenate(ids), pa.concat_arrays(texts)
