"""Frames of the store's tables: how rows of facts and terms are put together, counted and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from corollary.engines.spark.tuning import tuning

__all__ = ["DataFrame", "SparkSession"]

TERM_COLUMNS = "id long, term string, hash long"


def arguments(width: int) -> list[str]:
    """The names of the columns of arguments."""
    return [f"arg{place}" for place in range(width)]


def fact_columns(width: int) -> str:
    """The columns of the facts table."""
    places = [f"{name} long" for name in arguments(width)]
    return ", ".join(
        ["relation string", *places, "explicit boolean, deleted boolean, version long"]
    )


def is_frame(value: object) -> bool:
    """Whether this is a DataFrame of Spark."""
    return isinstance(value, DataFrame)


def fact_rows(
    facts: DataFrame, width: int, *, explicit: bool | None, version: int, deleted: bool = False
) -> DataFrame:
    """Facts as rows of the facts table; they have a column `explicit` if it is not given."""
    known = {*facts.columns}
    places = [
        (f.col(name) if name in known else f.lit(None)).cast("long").alias(name)
        for name in arguments(width)
    ]
    flag = f.col("explicit") if explicit is None else f.lit(explicit)
    return facts.select(
        "relation",
        *places,
        flag.alias("explicit"),
        f.lit(deleted).alias("deleted"),
        f.lit(version).cast("long").alias("version"),
    )


def change_rows(facts: DataFrame, width: int, change: str, version: int, commit: str) -> DataFrame:
    """Facts with a column `explicit` as rows of the changes table."""
    known = {*facts.columns}
    places = [
        (f.col(name) if name in known else f.lit(None)).cast("long").alias(name)
        for name in arguments(width)
    ]
    return facts.select(
        f.lit(version).cast("long").alias("version"),
        f.lit(commit).alias("commit"),
        f.lit(change).alias("change"),
        "relation",
        *places,
        "explicit",
    )


def current_facts(rows: DataFrame, width: int) -> DataFrame:
    """Of the rows of each fact the one with the highest version, less the deleted ones.

    Where one version has most of the rows and all others are later, as after a build and some
    updates, the later rows are sent to where the many are, which stay where they are.
    """
    keys = ["relation", *arguments(width)]
    sizes = {row[0]: row[1] for row in rows.groupBy("version").count().collect()}
    most = max(sizes, key=lambda version: sizes[version], default=0)
    later = sum(sizes.values()) - sizes.get(most, 0)
    # One number, which Spark can keep in a hash table: it would sort all rows for a struct.
    said = f.col("explicit").cast("long") * 2 + f.col("deleted").cast("long")
    last = f.max(f.col("version") * 4 + said).alias("last")
    chosen = [*keys, "(last & 2) != 0 AS explicit", "(last & 1) != 0 AS deleted"]
    if not later:
        alive = rows
    elif later <= tuning.broadcast_later_rows_limit and min(sizes) == most:
        new = rows.where(f.col("version") > most).groupBy(*keys).agg(last).selectExpr(*chosen)
        same = [f.col(f"old.{key}").eqNullSafe(f.col(f"new.{key}")) for key in keys]
        old = rows.where(f.col("version") == most).alias("old")
        kept = old.join(f.broadcast(new).alias("new"), reduce(and_, same), "left_anti")
        alive = kept.select(*keys, "explicit", "deleted").union(new)
    else:
        alive = rows.groupBy(*keys).agg(last).selectExpr(*chosen)
    return alive.where("NOT deleted").select(*keys, "explicit")


def counts(rows: DataFrame) -> dict[str, tuple[int, int]]:
    """Explicit facts and all facts of each relation."""
    found: dict[str, tuple[int, int]] = {}
    for relation, explicit, count in rows.groupBy("relation", "explicit").count().collect():
        own, total = found.get(relation, (0, 0))
        found[relation] = (own + count * explicit, total + count)
    return found


def texts_of(terms: DataFrame, ids: Sequence[int]) -> list[str]:
    """The texts of some terms, in the order of the ids."""
    if not ids:
        return []
    if len(ids) <= 20:  # a call of Java for each
        chosen = terms.where(f.col("id").isin([int(i) for i in ids]))
    else:
        wanted = pa.table({"id": pa.array(np.asarray(ids, np.int64))})
        chosen = terms.join(f.broadcast(terms.sparkSession.createDataFrame(wanted)), "id")
    columns = chosen.select("id", "term").toArrow().to_pydict()
    found = dict(zip(columns["id"], columns["term"], strict=True))
    return [found[int(i)] for i in ids]


def ids_of(terms: DataFrame, texts: Sequence[str], hashes: Sequence[int]) -> dict[str, int]:
    """The ids of those of the texts that the terms table has."""
    chosen = terms.where(f.col("hash").isin(list(hashes)) & f.col("term").isin(list(texts)))
    return dict(map(tuple, chosen.select("term", "id").collect()))


def written_out(
    facts: DataFrame,
    terms: DataFrame,
    width: int,
    names: Mapping[str, str],
    written: Callable[[pa.Array], pa.Array] | None,
) -> DataFrame:
    """Facts with texts in the places of ids; columns are renamed, and `explicit` is kept.

    `written` turns the texts of terms into others.
    """
    texts = terms.select("id", "term")
    if written is not None:
        function = written

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield pa.record_batch({"id": batch["id"], "term": function(batch["term"])})

        texts = texts.mapInArrow(task, "id long, term string")
    for name in arguments(width):
        if name in names:
            own = texts.select(f.col("id").alias(name), f.col("term").alias(f"{name}_text"))
            facts = facts.join(own, name, "left")
    columns: list[Any] = []
    for old, new in names.items():
        columns.append(f.col(f"{old}_text" if old.startswith("arg") else old).alias(new))
    return facts.select(*columns, "explicit")


def sizes(files: Sequence[Path]) -> list[int]:
    """The sizes of files."""
    return [file.stat().st_size for file in files]
