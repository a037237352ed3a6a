"""Read facts from a store's tables lazily, predicate by predicate.

Only the number of facts of each predicate is computed in advance. The chunks of a predicate are a
lazy frame: a query of a few predicates reads only their ranges of the files, which are sorted by
predicate, and Spark persists the rows that were read. Small predicates share a frame, which limits
the number of frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from corollary.engines.spark.base import Base, Part, SparkRun
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.frames import read, to_chunks
from corollary.engines.spark.packing import NONE, Key
from corollary.engines.spark.plan import TRIPLE_NUMBER
from corollary.engines.spark.rows import fact_columns
from corollary.engines.spark.task import Combine
from corollary.lang.syntax import TRIPLES_NAME

ALONE = 64  # predicates with a frame of their own: the largest ones


def read_on_demand(run: SparkRun, rows: DataFrame, *, alone: int = ALONE) -> SparkFacts:
    """Read the facts of a DataFrame of distinct rows: `relation`, `arg0`, `arg1`, …

    One job counts them. Sets that fit on the driver are read eagerly.
    """
    rows = rows.select(fact_columns(rows.columns))
    counts = _census(run, rows)
    total = sum(counts.values())
    if total <= run.small:
        return read(run, rows)
    run.choose_partitions(total)
    ordered = sorted(counts, key=lambda key: -counts[key])
    large = [key for key in ordered[:alone] if counts[key] > run.small // 4]
    groups = [[key] for key in large]
    if len(ordered) > len(large):
        groups.append(ordered[len(large) :])
    run.predicates(counts.keys())  # looks up all terms in one batch
    parts: list[Part] = []
    for group in groups:
        frame = _chunks(run, rows, group)
        parts += Base.of(run, frame, {key: counts[key] for key in group}).parts
    return SparkFacts.of(Base(run, tuple(parts)))


def _census(run: SparkRun, rows: DataFrame) -> Mapping[Key, int]:
    """Count the facts of each predicate."""
    is_triple = f.col("relation") == TRIPLES_NAME
    is_type = is_triple & (f.col("arg1") == run.type_id)
    width = sum((f.col(name).isNotNull().cast("int") for name in rows.columns[1:]), f.lit(0))
    found = (
        rows.groupBy(
            "relation",
            f.when(is_triple, f.col("arg1")).alias("property"),
            f.when(is_type, f.col("arg2")).alias("class"),
            f.when(~is_triple, width).alias("width"),
        )
        .count()
        .collect()
    )
    counts: dict[Key, int] = {}
    for relation, property_, class_, width_, count in found:
        if relation != TRIPLES_NAME:
            key = (run.number(relation), NONE, NONE, int(width_))
        elif class_ is None:
            key = (TRIPLE_NUMBER, int(property_), NONE, 2)
        else:
            key = (TRIPLE_NUMBER, int(property_), int(class_), 1)
        counts[key] = int(count)
    return counts


def _chunks(run: SparkRun, rows: DataFrame, keys: Sequence[Key]) -> DataFrame:
    """Create a lazy frame of the facts of some predicates, hash-partitioned."""
    relations = [run.names[key[0]] for key in keys if key[0] != TRIPLE_NUMBER]
    chosen = rows.where(_condition(run, keys, relations))
    chunks = run.shuffle(to_chunks(run, chosen, relations))
    return run.frames.persist(run.map_chunks(chunks, Combine("union", run.make_engine)))


def _condition(run: SparkRun, keys: Sequence[Key], relations: Sequence[str]) -> Column:
    """Build a filter for the facts of these predicates, with the sort keys of files first."""
    properties = [key[1] for key in keys if key[0] == TRIPLE_NUMBER and key[2] == NONE]
    classes = [key[2] for key in keys if key[0] == TRIPLE_NUMBER and key[2] != NONE]
    parts = []
    is_triple = f.col("relation") == TRIPLES_NAME
    if properties:
        parts.append(is_triple & f.col("arg1").isin(properties))
    if classes:
        parts.append(is_triple & (f.col("arg1") == run.type_id) & f.col("arg2").isin(classes))
    if relations:
        parts.append(f.col("relation").isin(list(relations)))
    return reduce(or_, parts)
