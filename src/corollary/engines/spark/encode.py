"""Encode: terms get dense ids that are theirs for good, and facts become numbers.

Three steps, none of which sorts all terms, or brings them to one place:

1. *number*: the blocks of terms come together by buckets of their 64-bit hashes. A bucket knows
   which of its terms the dictionary has already (they are joined in by hash, and compared as
   texts); the others it counts.
2. *range*: the driver gives every bucket the ids after those of the bucket before.
3. *translate*: each part gets the ids of its terms, and replaces its numbers by them.

Invariant: what a bucket counts is the same each time that it is computed, whatever order its blocks
arrive in, so that a lost executor costs a recomputation and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from corollary.core.dictionary import Dictionary
from corollary.engines.spark.blocks import (
    CODES,
    FACTS,
    KNOWN,
    NEW,
    SCHEMA,
    TERMS,
    Numbers,
    block,
    packed,
    relation_of,
    rows,
    unpacked,
)
from corollary.engines.spark.parse import Hashes

TERM_SCHEMA = "id long, term string, hash long"
_BLOCK = 1 << 20  # terms in a block


@dataclass(frozen=True)
class Numbered:
    """Terms with their numbers: `frame` holds new terms by bucket, and codes by part."""

    frame: DataFrame
    first: int  # the id of the first new term
    starts: dict[int, int]  # of each bucket, the id of its first new term
    sizes: dict[int, int]  # of each bucket, how many new terms it has

    @property
    def count(self) -> int:
        """How many terms are new."""
        return sum(self.sizes.values())

    def terms(self, hashes: Hashes) -> DataFrame:
        """The new terms: id, term, hash."""
        starts = self.starts

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, _, bucket, count, payload in rows(batches):
                table = unpacked(payload).combine_chunks()
                ids = starts[bucket] + table.column("number").to_numpy().astype(np.int64)
                texts = table.column("term").chunk(0) if count else table.column("term")
                yield pa.record_batch(
                    {"id": pa.array(ids), "term": texts.cast(pa.string()), "hash": hashes(texts)}
                )

        return self.frame.where(f.col("kind") == NEW).mapInArrow(task, TERM_SCHEMA)


def number(parsed: DataFrame, buckets: int, first: int, known: DataFrame | None = None) -> Numbered:
    """Give the terms of parsed blocks ids; `known` has the blocks of terms that have one.

    The numbers are computed here, and kept.
    """
    terms = parsed.where(f.col("kind") == TERMS)
    if known is not None:
        terms = terms.union(known)
    frame = terms.repartitionById(buckets, "bucket").mapInArrow(_number, SCHEMA).persist()
    counted = frame.where(f.col("kind") == NEW).groupBy("bucket").agg(f.sum("count")).collect()
    starts, sizes, at = {}, {}, first
    for bucket, count in sorted(map(tuple, counted)):
        starts[bucket], sizes[bucket] = at, count
        at += count
    return Numbered(frame, first, starts, sizes)


def translate(parsed: DataFrame, numbered: Numbered, parts: int, width: int) -> DataFrame:
    """The facts of parsed blocks in ids, duplicates included: relation, arg0, arg1, …"""
    starts = numbered.starts
    codes = numbered.frame.where(f.col("kind") == CODES)
    facts = parsed.where(f.col("kind") == FACTS)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids: dict[int, list[tuple[Numbers, Numbers]]] = {}
        waiting: dict[int, list[tuple[int, pa.Table]]] = {}
        for part, kind, bucket, count, payload in rows(batches):
            table = unpacked(payload)
            if kind == FACTS:
                waiting.setdefault(part, []).append((count, table))
                continue
            ids.setdefault(part, []).append(
                (table.column("local").to_numpy(), resolved(table, bucket, starts))
            )
        for part, blocks in waiting.items():
            lookup = _lookup(ids.get(part, []))
            for count, table in blocks:
                yield _translated(table, count, lookup, width)

    task_of = f.pmod(f.col("part"), f.lit(parts)).cast("int")
    together = codes.union(facts).repartitionById(parts, task_of)
    return together.mapInArrow(task, facts_schema(width))


def codes_of(numbered: Numbered, part: int) -> Numbers:
    """The ids of the terms of one part, brought to the driver."""
    chosen = (f.col("kind") == CODES) & (f.col("part") == part)
    found = numbered.frame.where(chosen).select("bucket", "payload").collect()
    pairs = []
    for bucket, payload in found:
        table = unpacked(payload)
        pairs.append((table.column("local").to_numpy(), resolved(table, bucket, numbered.starts)))
    return _lookup(pairs)


def resolved(table: pa.Table, bucket: int, starts: dict[int, int]) -> Numbers:
    """Codes as ids: a negative one counts from the first new id of its bucket."""
    found: Numbers = table.column("code").to_numpy()
    return np.where(found < 0, starts.get(bucket, 0) - 1 - found, found)


def facts_schema(width: int) -> str:
    """The columns of encoded facts."""
    return ", ".join(["relation string", *(f"arg{place} long" for place in range(width))])


def _lookup(pairs: list[tuple[Numbers, Numbers]]) -> Numbers:
    """The id of each of a part's own numbers."""
    places = np.concatenate([np.empty(0, np.uint32), *(pair[0] for pair in pairs)])
    lookup = np.empty(len(places), np.int64)
    for own, ids in pairs:
        lookup[own] = ids
    return lookup


def _translated(table: pa.Table, count: int, lookup: Numbers, width: int) -> pa.RecordBatch:
    name = relation_of(table)
    relation = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(count, np.int32)), pa.array([name])
    ).cast(pa.string())
    columns = [pa.array(lookup[column.to_numpy()]) for column in table.columns]
    columns += [pa.nulls(count, pa.int64())] * (width - len(columns))
    return pa.record_batch(
        [relation, *columns], names=["relation", *(f"arg{place}" for place in range(width))]
    )


def known_terms(terms: DataFrame, parsed: DataFrame, buckets: int, *, few: bool) -> DataFrame:
    """Of the terms table, those that may be among the parsed ones: their hash is.

    With `few` parsed terms, their hashes are sent to where the terms table is read.
    """
    wanted = parsed.where(f.col("kind") == TERMS).mapInArrow(_hashes, "hash long").distinct()
    if few:
        wanted = f.broadcast(wanted)
    found = terms.join(wanted, "hash", "left_semi")
    bucket = f.pmod(f.col("hash"), f.lit(buckets)).cast("int")
    return found.select("id", "term", bucket.alias("bucket")).mapInArrow(_known, SCHEMA)


def _hashes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for *_, payload in rows(batches):
        yield pa.record_batch({"hash": unpacked(payload).column("hash").combine_chunks()})


def _known(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        bucket = batch.column("bucket").to_numpy()
        for number_ in np.unique(bucket).tolist():
            chosen = batch.filter(pa.array(bucket == number_))
            payload = packed({"id": chosen.column("id"), "term": chosen.column("term")})
            yield block(-1, KNOWN, number_, len(chosen), payload)


def _number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The blocks of one or more buckets."""
    found: dict[int, list[tuple[int, int, pa.Buffer]]] = {}
    for part, kind, bucket, _, payload in rows(batches):
        found.setdefault(bucket, []).append((0 if kind == KNOWN else 1, part, payload))
    for bucket in sorted(found):
        yield from _number_bucket(bucket, found.pop(bucket))


def _number_bucket(
    bucket: int, blocks: list[tuple[int, int, pa.Buffer]]
) -> Iterator[pa.RecordBatch]:
    dictionary = Dictionary()
    known = np.empty(0, np.int64)
    for is_term, part, payload in sorted(blocks, key=lambda row: row[:2]):  # known terms first
        table = unpacked(payload)
        ids = dictionary.encode_texts(table.column("term"))
        if not is_term:
            known = np.concatenate([known, table.column("id").to_numpy()])
            continue
        numbers = ids.astype(np.int64)
        codes = np.where(numbers >= len(known), len(known) - 1 - numbers, 0)
        old = numbers < len(known)
        codes[old] = known[numbers[old]]
        local = table.column("local").combine_chunks()
        yield block(
            part, CODES, bucket, len(ids), packed({"local": local, "code": pa.array(codes)})
        )
    new = dictionary.texts_from(len(known))
    for start in range(0, len(new), _BLOCK):
        texts = new.slice(start, _BLOCK)
        numbers = np.arange(start, start + len(texts))
        payload = packed({"number": pa.array(numbers), "term": texts})
        yield block(-1, NEW, bucket, len(texts), payload)
