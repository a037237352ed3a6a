"""Encode: assign dense, permanent ids to terms, and replace terms by ids in facts.

Three steps, none of which sorts all terms or collects them in one place:

1. *number*: blocks of terms are shuffled to buckets by 64-bit hashes. A bucket joins its terms with
   the dictionary, by hash and then by text, and numbers the new ones.
2. *range*: the driver assigns each bucket the range of ids that follows the previous bucket's.
3. *translate*: each part receives the ids of its terms, and replaces its local numbers by them.

Invariant: the numbers of a bucket are deterministic, in whatever order its blocks arrive, so a lost
executor only costs a recomputation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from corollary.core.dictionary import Dictionary
from corollary.core.ids import row_groups
from corollary.engines.spark import rows as fact_rows
from corollary.engines.spark.blocks import (
    ARROW,
    CODES,
    FACTS,
    KNOWN,
    NEW,
    SCHEMA,
    TERMS,
    Numbers,
    block,
    cut,
    deserialize,
    relation_of,
    rows,
    serialize,
)
from corollary.engines.spark.parse import Hashes
from corollary.engines.spark.persisted import PersistedFrames
from corollary.engines.spark.shuffle import repartition_by_id

TERM_SCHEMA = "id long, term string, hash long"
_LISTED = 1_000  # hashes that a query lists; more are joined


@dataclass(frozen=True)
class Numbered:
    """Numbered terms: `frame` holds new terms by bucket, and codes by part."""

    frame: DataFrame
    first: int  # the id of the first new term
    starts: dict[int, int]  # by bucket: the id of its first new term
    sizes: dict[int, int]  # by bucket: the number of its new terms
    own: Numbers  # the ids of the terms of the part that the driver asked for
    texts: pa.LargeStringArray | None  # the new terms by id, if they are few

    @classmethod
    def of(cls, frame: DataFrame, found: Iterable[pa.RecordBatch], first: int) -> Numbered:
        """Assign ranges of ids to buckets; `found` has blocks of a part's codes and of new terms.

        Blocks of new terms may lack their payload.
        """
        new: dict[int, list[tuple[int, Any]]] = {}
        codes: list[tuple[int, pa.Table]] = []
        for _, kind, bucket, count, payload in rows(iter(found)):
            if kind == CODES:
                codes.append((bucket, deserialize(payload)))
            else:
                new.setdefault(bucket, []).append((count, payload))
        starts, sizes, at = {}, {}, first
        texts: list[pa.Array] | None = [pa.array([], pa.large_string())]
        for bucket, blocks in sorted(new.items()):
            starts[bucket], sizes[bucket] = at, sum(count for count, _ in blocks)
            at += sizes[bucket]
            if texts is not None and all(payload is not None for _, payload in blocks):
                tables = [deserialize(payload) for _, payload in blocks]
                tables.sort(key=lambda table: table.column("number")[0].as_py())
                texts += [chunk for table in tables for chunk in table.column("term").chunks]
            else:
                texts = None
        own = _lookup(
            [(t.column("local").to_numpy(), resolved(t, bucket, starts)) for bucket, t in codes]
        )
        return cls(
            frame, first, starts, sizes, own, None if texts is None else pa.concat_arrays(texts)
        )

    @property
    def count(self) -> int:
        """The number of new terms."""
        return sum(self.sizes.values())

    @property
    def next_id(self) -> int:
        """The first unused id."""
        return self.first + self.count

    def terms(self, hashes: Hashes) -> DataFrame:
        """Return the new terms: id, term, hash."""
        starts = self.starts

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, _, bucket, count, payload in rows(batches):
                table = deserialize(payload).combine_chunks()
                ids = starts[bucket] + table.column("number").to_numpy().astype(np.int64)
                texts = table.column("term").chunk(0) if count else table.column("term")
                yield pa.record_batch(
                    {"id": pa.array(ids), "term": texts.cast(pa.string()), "hash": hashes(texts)}
                )

        return self.frame.where(f.col("kind") == NEW).mapInArrow(task, TERM_SCHEMA)


def number(
    parsed: DataFrame,
    buckets: int,
    first: int,
    known: DataFrame | None,
    frames: PersistedFrames,
    *,
    part: int,
    few: bool,
) -> Numbered:
    """Assign ids to the terms of parsed blocks, eagerly; `known` has blocks of terms with ids.

    The driver receives the ids of the terms of `part` and, if they are `few`, the new terms.
    """
    terms = parsed.where(f.col("kind") == TERMS)
    if known is not None:
        terms = terms.union(known)
    together = repartition_by_id(terms, buckets, terms["bucket"])
    frame = frames.persist(together.mapInArrow(_number, SCHEMA))
    is_new = f.col("kind") == NEW
    chosen = frame.where(is_new | ((f.col("kind") == CODES) & (f.col("part") == part)))
    if not few:
        payload = f.when(~is_new, f.col("payload"))
        chosen = chosen.select(*ARROW.names[:-1], payload.alias("payload"))
    return Numbered.of(frame, chosen.toArrow().to_batches(), first)


def number_here(
    session: SparkSession,
    parsed: Sequence[pa.RecordBatch],
    buckets: int,
    first: int,
    known: Sequence[pa.RecordBatch],
    *,
    part: int,
) -> tuple[Numbered, list[pa.RecordBatch]]:
    """Assign ids on the driver, as `number` does in tasks; also return the blocks of the frame."""
    terms = [one for one in parsed if one.column("kind")[0].as_py() == TERMS]
    found = [*_number(iter([*terms, *known]))]
    chosen = [
        one
        for one in found
        if one.column("kind")[0].as_py() == NEW or one.column("part")[0].as_py() == part
    ]
    frame = session.createDataFrame(pa.Table.from_batches(found, ARROW))
    return Numbered.of(frame, chosen, first), found


def translate(parsed: DataFrame, numbered: Numbered, parts: int, width: int) -> DataFrame:
    """Translate the facts of parsed blocks to ids, with duplicates: relation, arg0, arg1, …"""
    codes = numbered.frame.where(f.col("kind") == CODES)
    facts = parsed.where(f.col("kind") == FACTS)
    task_of = f.pmod(f.col("part"), f.lit(parts)).cast("int")
    together = repartition_by_id(codes.union(facts), parts, task_of)
    return together.mapInArrow(Translate(numbered.starts, width), fact_rows.schema(width))


@dataclass(frozen=True)
class Translate:
    """Translate the facts of blocks to ids, by the codes of their parts."""

    starts: dict[int, int]
    width: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids: dict[int, list[tuple[Numbers, Numbers]]] = {}
        waiting: dict[int, list[tuple[int, pa.Table]]] = {}
        for part, kind, bucket, count, payload in rows(batches):
            if kind == FACTS:
                waiting.setdefault(part, []).append((count, deserialize(payload)))
            elif kind == CODES:
                table = deserialize(payload)
                pair = table.column("local").to_numpy(), resolved(table, bucket, self.starts)
                ids.setdefault(part, []).append(pair)
        for part, blocks in waiting.items():
            lookup = _lookup(ids.get(part, []))
            for count, table in blocks:
                columns = [lookup[column.to_numpy()] for column in table.columns]
                yield fact_rows.batch(relation_of(table), columns, count, self.width)


def translate_here(
    parsed: Sequence[pa.RecordBatch],
    coded: Sequence[pa.RecordBatch],
    numbered: Numbered,
    width: int,
) -> pa.Table:
    """Translate on the driver, as `translate` does in tasks."""
    task = Translate(numbered.starts, width)
    return pa.Table.from_batches(task(iter([*coded, *parsed])), fact_rows.arrow_schema(width))


def resolved(table: pa.Table, bucket: int, starts: dict[int, int]) -> Numbers:
    """Convert codes to ids: a negative code counts from the first new id of its bucket."""
    found: Numbers = table.column("code").to_numpy()
    return np.where(found < 0, starts.get(bucket, 0) - 1 - found, found)


def _lookup(pairs: list[tuple[Numbers, Numbers]]) -> Numbers:
    """Map the local numbers of a part to ids."""
    places = np.concatenate([np.empty(0, np.uint32), *(pair[0] for pair in pairs)])
    lookup = np.empty(len(places), np.int64)
    for own, ids in pairs:
        lookup[own] = ids
    return lookup


def known_terms(terms: DataFrame, parsed: DataFrame, buckets: int, *, few: bool) -> DataFrame:
    """Semi-join the terms table with the parsed terms by hash.

    With `few` parsed terms, their hashes are broadcast to the tasks that read the terms table.
    """
    wanted = parsed.where(f.col("kind") == TERMS).mapInArrow(_hashes, "hash long").distinct()
    if few:
        wanted = f.broadcast(wanted)
    found = terms.join(wanted, "hash", "left_semi")
    return _in_buckets(found, buckets).mapInArrow(_known, SCHEMA)


def known_here(
    terms: DataFrame, parsed: Sequence[pa.RecordBatch], buckets: int
) -> list[pa.RecordBatch]:
    """Look up the parsed terms of the driver in the terms table, as `known_terms` does: a job."""
    of_terms = [one for one in parsed if one.column("kind")[0].as_py() == TERMS]
    parts = [batch.column(0).to_numpy() for batch in _hashes(iter(of_terms))]
    wanted = np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
    if len(wanted) <= _LISTED:
        found = terms.where(f"hash IN ({', '.join(map(str, wanted.tolist()))})")
    else:
        table = terms.sparkSession.createDataFrame(pa.table({"hash": wanted}))
        found = terms.join(f.broadcast(table), "hash", "left_semi")
    return [*_known(iter(_in_buckets(found, buckets).toArrow().to_batches()))]


def known_texts(known: Iterable[pa.RecordBatch]) -> dict[int, str]:
    """Return the texts of known terms by id."""
    tables = [deserialize(payload) for *_, payload in rows(iter(known))]
    return {
        number: text
        for table in tables
        for number, text in zip(*(c.to_pylist() for c in table.columns), strict=True)
    }


def _in_buckets(terms: DataFrame, buckets: int) -> DataFrame:
    bucket = f.pmod(f.col("hash"), f.lit(buckets)).cast("int")
    return terms.select("id", "term", bucket.alias("bucket"))


def _hashes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for *_, payload in rows(batches):
        yield pa.record_batch({"hash": deserialize(payload).column("hash").combine_chunks()})


def _known(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for bucket, places in row_groups(batch.column("bucket").to_numpy()):
            chosen = batch.take(pa.array(places))
            payload = serialize({"id": chosen.column("id"), "term": chosen.column("term")})
            yield block(-1, KNOWN, bucket, len(chosen), payload)


def _number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number the blocks of one or more buckets."""
    found: dict[int, list[tuple[int, int, pa.Table]]] = {}
    for part, kind, bucket, _, payload in rows(batches):
        table = deserialize(payload)
        first = -1 if kind == KNOWN else table.column("local")[0].as_py()
        found.setdefault(bucket, []).append((part, first, table))
    for bucket in sorted(found):
        yield from _number_bucket(bucket, found.pop(bucket))


def _number_bucket(
    bucket: int, blocks: list[tuple[int, int, pa.Table]]
) -> Iterator[pa.RecordBatch]:
    dictionary = Dictionary()
    known = np.empty(0, np.int64)
    # Known terms first: they do not come from a part.
    for part, first, table in sorted(blocks, key=lambda row: (row[1] >= 0, *row[:2])):
        ids = dictionary.encode_texts(table.column("term"))
        if first < 0:
            known = np.concatenate([known, table.column("id").to_numpy()])
            continue
        numbers = ids.astype(np.int64)
        codes = np.where(numbers >= len(known), len(known) - 1 - numbers, 0)
        old = numbers < len(known)
        codes[old] = known[numbers[old]]
        local = table.column("local").combine_chunks()
        yield block(
            part, CODES, bucket, len(ids), serialize({"local": local, "code": pa.array(codes)})
        )
    new = dictionary.texts_from(len(known))
    for part_of_bucket in cut(new):
        texts = new[part_of_bucket]
        numbers = np.arange(part_of_bucket.start, part_of_bucket.stop)
        payload = serialize({"number": pa.array(numbers), "term": texts})
        yield block(-1, NEW, bucket, len(texts), payload)
