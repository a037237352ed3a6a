"""Assemble and read the rows of the store's tables of facts and terms as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from corollary.core.partial import CreatedTerms
from corollary.engines.spark.rows import arguments, schema
from corollary.engines.spark.tuning import tuning

__all__ = ["DataFrame", "SparkSession"]

_LISTED = 10_000  # ids that a query lists; more are joined, which takes another job
TERM_COLUMNS = "id long, term string, hash long"


def fact_columns(width: int) -> str:
    """Return the schema of the facts table."""
    return f"{schema(width)}, explicit boolean, deleted boolean, version long"


def is_frame(value: object) -> bool:
    """Whether a value is a DataFrame of Spark."""
    return isinstance(value, DataFrame)


def fact_rows(
    facts: DataFrame, width: int, *, explicit: bool | None, version: int, deleted: bool = False
) -> DataFrame:
    """Convert facts to rows of the facts table; if `explicit` is None, they have that column."""
    flag = f.col("explicit") if explicit is None else f.lit(explicit)
    return facts.select(
        "relation",
        *_places(facts, width),
        flag.alias("explicit"),
        f.lit(deleted).alias("deleted"),
        f.lit(version).cast("long").alias("version"),
    )


def change_rows(facts: DataFrame, width: int, change: str, version: int, commit: str) -> DataFrame:
    """Convert facts with a column `explicit` to rows of the changes table."""
    return facts.select(
        f.lit(version).cast("long").alias("version"),
        f.lit(commit).alias("commit"),
        f.lit(change).alias("change"),
        "relation",
        *_places(facts, width),
        "explicit",
    )


def _places(facts: DataFrame, width: int) -> list[Column]:
    """Select the columns of all arguments; missing columns are null."""
    known = {*facts.columns}
    return [
        (f.col(name) if name in known else f.lit(None)).cast("long").alias(name)
        for name in arguments(width)
    ]


def current_facts(rows: DataFrame, width: int) -> DataFrame:
    """Select the row of each fact with the highest version, unless it marks a deletion.

    If one version has most of the rows and all others are later, as after a build and some updates,
    the later rows are broadcast to the tasks of the many, which are not shuffled.
    """
    keys = ["relation", *arguments(width)]
    sizes = {row[0]: row[1] for row in rows.groupBy("version").count().collect()}
    most = max(sizes, key=lambda version: sizes[version], default=0)
    later = sum(sizes.values()) - sizes.get(most, 0)
    # A single number allows a hash aggregation; for a struct, Spark would sort all rows.
    flags = f.col("explicit").cast("long") * 2 + f.col("deleted").cast("long")
    last = f.max(f.col("version") * 4 + flags).alias("last")
    chosen = [*keys, "(last & 2) != 0 AS explicit", "(last & 1) != 0 AS deleted"]
    if not later:
        current = rows
    elif later <= tuning.broadcast_later_rows_limit and min(sizes) == most:
        new = rows.where(f.col("version") > most).groupBy(*keys).agg(last).selectExpr(*chosen)
        same = [f.col(f"old.{key}").eqNullSafe(f.col(f"new.{key}")) for key in keys]
        old = rows.where(f.col("version") == most).alias("old")
        unchanged = old.join(f.broadcast(new).alias("new"), reduce(and_, same), "left_anti")
        current = unchanged.select(*keys, "explicit", "deleted").union(new)
    else:
        current = rows.groupBy(*keys).agg(last).selectExpr(*chosen)
    return current.where("NOT deleted").select(*keys, "explicit")


def labelled(frame: DataFrame, name: str, label: str, columns: Mapping[str, str]) -> DataFrame:
    """Select columns under new names, after a column that has the same value in every row."""
    chosen = [  # names may hold dots and blanks
        frame["`" + old.replace("`", "``") + "`"].alias(new) for new, old in columns.items()
    ]
    return frame.select(f.lit(label).alias(name), *chosen)


def of_relation(facts: DataFrame, relation: str) -> DataFrame:
    """Select the facts of one relation."""
    return facts.where(f.col("relation") == relation)


def texts_of(terms: DataFrame, ids: Sequence[int]) -> list[str]:
    """Look up the texts of terms, in the order of the ids."""
    if not ids:
        return []
    if len(ids) <= _LISTED:
        chosen = terms.where(f"id IN ({', '.join(str(int(i)) for i in ids)})")
    else:
        wanted = pa.table({"id": pa.array(np.asarray(ids, np.int64))})
        chosen = terms.join(f.broadcast(terms.sparkSession.createDataFrame(wanted)), "id")
    columns = chosen.select("id", "term").toArrow().to_pydict()
    found = dict(zip(columns["id"], columns["term"], strict=True))
    return [found[int(i)] for i in ids]


def ids_of(terms: DataFrame, texts: Sequence[str], hashes: Sequence[int]) -> dict[str, int]:
    """Look up the ids of the texts that are in the terms table."""
    chosen = terms.where(f.col("hash").isin(list(hashes)) & f.col("term").isin(list(texts)))
    return dict(map(tuple, chosen.select("term", "id").collect()))


def with_new_terms(
    terms: DataFrame, new: Sequence[tuple[int, str]], created: Sequence[CreatedTerms] = ()
) -> DataFrame:
    """Return ids and texts of a terms table, and of the terms that rules have created.

    The driver has some of these; `created` are tables of those that tasks have numbered.
    """
    terms = reduce(DataFrame.union, [part.table for part in created], terms.select("id", "term"))
    if not new:
        return terms
    ids, texts = zip(*new, strict=True)
    made = pa.table({"id": pa.array(ids, pa.int64()), "term": pa.array(texts, pa.string())})
    return terms.union(terms.sparkSession.createDataFrame(made))


def with_texts(
    facts: DataFrame,
    terms: DataFrame,
    width: int,
    names: Mapping[str, str],
    written: Callable[[pa.Array], pa.Array] | None,
) -> DataFrame:
    """Replace ids of facts by texts; columns are renamed, and `explicit` is kept.

    `written` converts the texts of terms.
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
