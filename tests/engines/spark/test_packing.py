"""Packing at sizes that 16 or 32 bits cannot number: many partitions, large payloads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from corollary.core.dictionary import Dictionary
from corollary.core.ids import row_groups
from corollary.engines.spark import blocks
from corollary.engines.spark.answers import PartitionTexts
from corollary.engines.spark.encode import _number, resolved
from corollary.engines.spark.packing import (
    DERIVED,
    NONE,
    ChunkBuffer,
    iter_tables,
    partition_of,
)
from corollary.engines.spark.plan import Plan, Source
from corollary.engines.spark.rounds import Route
from corollary.engines.spark.task import HashPartitioned

KEY = (1, NONE, NONE, 2)
MANY = 70_000  # partitions, more than 16 bits can number


def routed(batches: Iterator[pa.RecordBatch]) -> list[tuple[int, list[int]]]:
    return [
        (partition, row) for partition, _, _, rows in iter_tables(batches) for row in rows.tolist()
    ]


@pytest.mark.parametrize("partitions", [1, 3, 1 << 16, MANY, 1 << 20])
def test_rows_go_to_the_partition_of_their_id(partitions: int) -> None:
    ids = np.arange(20_000, dtype=np.uint32) * 7
    rows = np.column_stack([ids, ids + 1])
    out = ChunkBuffer()
    out.send(DERIVED, KEY, rows, 0, partitions)
    found = routed(out.drain())
    assert sorted(row for _, row in found) == rows.tolist()
    for partition, row in found:
        assert partition == partition_of(np.array(row[:1], np.uint32), partitions)[0]
    if partitions == MANY:
        assert max(partition for partition, _ in found) >= 1 << 16


def test_tasks_route_to_many_partitions() -> None:
    ids = np.arange(5_000, dtype=np.uint32)
    batch = pa.record_batch(
        {
            "relation": pa.array(["edge"] * len(ids)),
            "arg0": pa.array(ids.astype(np.int64)),
            "arg1": pa.array(ids.astype(np.int64)),
        }
    )
    chunks = list(HashPartitioned({"edge": 1}, 0, MANY)(iter([batch])))
    plan = Plan(0)
    plan.place(Source("f", KEY), 1)
    for batches in (iter(chunks), Route(plan, "f", DERIVED, MANY)(iter(chunks))):
        found = routed(batches)
        assert len(found) == len(ids)
        assert all(partition_of(np.array(r[:1], np.uint32), MANY)[0] == p for p, r in found)
    dictionary = Dictionary()
    dictionary.encode_texts(pa.array([f'"{n}"' for n in ids]))
    texts = pa.record_batch({"id": pa.array(ids.astype(np.int64)), "term": dictionary.texts(ids)})
    for chunk in PartitionTexts(MANY)(iter([texts])):
        own = blocks.deserialize(chunk.column(4)[0].as_buffer()).column("id").to_numpy()
        assert {*partition_of(own, MANY)} == {chunk.column(0)[0].as_py()}


@pytest.mark.parametrize("most", [3, (1 << 16) - 1, 1 << 16, 1 << 31])
def test_splits_by_labels_of_any_size(most: int) -> None:
    random = np.random.default_rng(most)
    labels = random.choice(np.array([0, 1, most // 2, most], np.int64), 2000)
    found = list(row_groups(labels))
    assert [label for label, _ in found] == sorted({*labels.tolist()})
    for label, places in found:
        assert places.tolist() == np.flatnonzero(labels == label).tolist()
    assert not list(row_groups(labels[:0]))


def test_blocks_are_cut_by_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_ROWS", 3)
    monkeypatch.setattr(blocks, "MOST_BYTES", 10)
    texts = ["a" * 6, "b" * 6, "c" * 20, *"defgh"]
    array = pa.array(texts, pa.large_string())
    parts = [array[part].to_pylist() for part in blocks.cut(array)]
    assert parts == [["a" * 6], ["b" * 6], ["c" * 20], ["d", "e", "f"], ["g", "h"]]
    assert not list(blocks.cut(array[:0]))


def test_a_payload_too_large_for_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Huge:
        size = 1 << 31

    monkeypatch.setattr(pa, "py_buffer", lambda _: Huge)
    with pytest.raises(ValueError, match="less than 2 GiB"):
        blocks.block(0, blocks.TERMS, 0, 1, b"")


def test_numbers_do_not_depend_on_the_order_of_blocks() -> None:
    """A part may have several blocks in a bucket, and blocks arrive in any order."""

    def terms(part: int, first: int, texts: list[str]) -> pa.RecordBatch:
        local = pa.array(np.arange(first, first + len(texts), dtype=np.uint32))
        term = pa.array(texts, pa.large_string())
        return blocks.block(
            part, blocks.TERMS, 0, len(texts), blocks.serialize({"local": local, "term": term})
        )

    known = blocks.serialize({"id": pa.array([77]), "term": pa.array(["b"], pa.large_string())})
    given = [
        terms(1, 0, ["a", "b"]),
        terms(1, 2, ["c"]),
        terms(0, 0, ["d", "a"]),
        blocks.block(-1, blocks.KNOWN, 0, 1, known),
    ]
    answers = set()
    for order in (given, given[::-1], [given[1], given[3], given[0], given[2]]):
        ids: dict[tuple[int, int], int] = {}
        for part, kind, bucket, _, payload in blocks.rows(_number(iter(order))):
            if kind == blocks.CODES:
                table = blocks.deserialize(payload)
                codes = resolved(table, bucket, {0: 100}).tolist()
                local = table.column("local").to_pylist()
                ids |= {(part, own): code for own, code in zip(local, codes, strict=True)}
        answers.add(tuple(sorted(ids.items())))
    assert answers == {(((0, 0), 100), ((0, 1), 101), ((1, 0), 101), ((1, 1), 77), ((1, 2), 102))}
