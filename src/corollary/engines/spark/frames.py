"""Convert facts between DataFrames of rows (`relation`, `arg0`, `arg1`, …) and chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.engines.spark.base import Base, SparkRun
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import Key
from corollary.engines.spark.plan import TRIPLE_NUMBER
from corollary.engines.spark.rows import arrow_schema, fact_columns, schema
from corollary.engines.spark.task import (
    Combine,
    HashPartitioned,
    ToRows,
    fact_batch,
    merge_chunks,
)
from corollary.lang.syntax import TRIPLE

__all__ = ["DataFrame", "SparkSession", "read", "read_distinct", "read_few", "write"]


def read(run: SparkRun, frame: DataFrame) -> SparkFacts:
    """Read the facts of a DataFrame: one job, and a second one if it has unknown relations."""
    known = [name for name in run.names if name != TRIPLE]
    while True:
        chunks = run.shuffle(to_chunks(run, frame, known))
        found = run.checkpoint(chunks, Combine("union", run.make_engine))
        unknown = {name for report in found.reports for name in report.get("unknown", ())}
        if not unknown:
            return SparkFacts.of(Base.reported(run, found)).collect_if_small()
        known += sorted(unknown)


def read_few(run: SparkRun, frame: DataFrame, relations: Collection[str]) -> Any:
    """Read the facts of a small DataFrame on the driver."""
    return read_rows(run, frame.select(fact_columns(frame.columns)).toArrow(), relations)


def read_rows(run: SparkRun, rows: pa.Table, relations: Collection[str]) -> Any:
    """Read the facts of rows on the driver."""
    home = HashPartitioned(run.numbers(relations), run.type_id, 1)
    return run.facts_of(merge_chunks(home(iter(rows.to_batches()))))


def read_distinct(run: SparkRun, frame: DataFrame, relations: Collection[str]) -> SparkFacts:
    """Read the facts of a DataFrame of distinct rows, of known relations: one job, no shuffle."""
    rows = frame.select(fact_columns(frame.columns))
    found = run.checkpoint(rows, _hash_partitioned(run, relations))
    return SparkFacts.of(Base.reported(run, found)).collect_if_small()


def to_chunks(run: SparkRun, frame: DataFrame, relations: Collection[str]) -> DataFrame:
    """Convert rows of these relations, and triples, to chunks by target partition."""
    rows = frame.select(fact_columns(frame.columns))
    return run.map_chunks(rows, _hash_partitioned(run, relations))


def _hash_partitioned(run: SparkRun, relations: Collection[str]) -> HashPartitioned:
    return HashPartitioned(run.numbers(relations), run.type_id, run.partitions)


def write(run: SparkRun, facts: SparkFacts, width: int) -> DataFrame:
    """Convert facts to distinct rows, lazily."""
    width = _width(facts.counts_by_key(), width)
    # After the keys: a relation that occurs only in rules is numbered with its key.
    names = {number: name for name, number in run.numbers(run.names[1:]).items()}
    parts = []
    if facts.base is not None:
        chunks = facts.base.chunks(removed=run.tables_of(facts.removed))
        parts.append(chunks.mapInArrow(ToRows(names, width), schema(width)))
    if len(facts.small):
        parts.append(run.session.createDataFrame(table(run, facts.small, width)))
    elif not parts:
        parts.append(run.session.createDataFrame([], schema(width)))
    return run.union(parts)


def table(run: SparkRun, facts: Any, width: int) -> pa.Table:
    """Convert driver facts to rows."""
    tables = run.tables_of(facts)
    width = _width(tables, width)
    names = {number: name for name, number in run.numbers(run.names[1:]).items()}
    batches = [fact_batch(key, rows, names, width) for key, rows in tables.items()]
    return pa.Table.from_batches(batches, arrow_schema(width))


def _width(keys: Iterable[Key], width: int) -> int:
    return max([width, *(3 if key[0] == TRIPLE_NUMBER else key[3] for key in keys)])
