"""Facts of a store's tables as facts of the engine, predicate by predicate when first needed.

Only how many facts each predicate has is found out beforehand. The chunks of a predicate are a
frame that nothing has computed: whoever asks for the facts of a few predicates reads those parts of
the files, which are sorted by them, and Spark keeps what it has read. Small predicates share a
frame, so that there are few of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from corollary.engines.spark.base import Base, Part, Workspace
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.frames import read
from corollary.engines.spark.packing import NONE, SCHEMA, Key
from corollary.engines.spark.plan import TRIPLE_NUMBER
from corollary.engines.spark.task import Combine, Home

ALONE = 64  # predicates that have a frame of their own: the largest ones


def read_on_demand(
    workspace: Workspace, rows: DataFrame, triples: str, *, alone: int = ALONE
) -> SparkFacts:
    """The facts of a DataFrame without duplicates: `relation`, `arg0`, `arg1`, …

    One job counts them. So few that the driver keeps them are read at once.
    """
    columns = sorted((c for c in rows.columns if c.startswith("arg")), key=lambda c: int(c[3:]))
    rows = rows.select("relation", *columns)
    counts = _census(workspace, rows, columns, triples)
    total = sum(counts.values())
    if total <= workspace.small:
        return read(workspace, rows, triples)
    workspace.suit(total)
    ordered = sorted(counts, key=lambda key: -counts[key])
    large = [key for key in ordered[:alone] if counts[key] > workspace.small // 4]
    groups = [[key] for key in large]
    if len(ordered) > len(large):
        groups.append(ordered[len(large) :])
    names = workspace.predicates(counts.keys())
    parts: list[Part] = []
    for group in groups:
        base = Base.of(
            workspace,
            [_chunks(workspace, rows, group, triples)],
            {names[key]: counts[key] for key in group},
            {names[key]: key[3] for key in group},
        )
        parts += base.parts
    return SparkFacts(workspace, workspace.embedded.facts({}), Base(workspace, tuple(parts)))


def _census(
    workspace: Workspace, rows: DataFrame, columns: Sequence[str], triples: str
) -> Mapping[Key, int]:
    """How many facts of each predicate there are."""
    is_triple = f.col("relation") == triples
    is_type = is_triple & (f.col("arg1") == workspace.type_id)
    width = sum((f.col(name).isNotNull().cast("int") for name in columns), f.lit(0))
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
        if relation != triples:
            key = (workspace.number(relation), NONE, NONE, int(width_))
        elif class_ is None:
            key = (TRIPLE_NUMBER, int(property_), NONE, 2)
        else:
            key = (TRIPLE_NUMBER, int(property_), int(class_), 1)
        counts[key] = int(count)
    return counts


def _chunks(workspace: Workspace, rows: DataFrame, keys: Sequence[Key], triples: str) -> DataFrame:
    """The facts of some predicates, at home; nothing is computed before it is read."""
    relations = {workspace.names[key[0]]: key[0] for key in keys if key[0] != TRIPLE_NUMBER}
    chosen = rows.where(_condition(workspace, keys, triples, list(relations)))
    home = Home(relations, triples, workspace.type_id, workspace.partitions)
    exchanged = workspace.exchanged(chosen.mapInArrow(home, SCHEMA))
    return workspace.over(exchanged, Combine("union", workspace.make)).persist()


def _condition(
    workspace: Workspace, keys: Sequence[Key], triples: str, relations: Sequence[str]
) -> Column:
    """Which rows are facts of these predicates; what files are sorted by comes first."""
    properties = [key[1] for key in keys if key[0] == TRIPLE_NUMBER and key[2] == NONE]
    classes = [key[2] for key in keys if key[0] == TRIPLE_NUMBER and key[2] != NONE]
    parts = []
    is_triple = f.col("relation") == triples
    if properties:
        parts.append(is_triple & f.col("arg1").isin(properties))
    if classes:
        parts.append(is_triple & (f.col("arg1") == workspace.type_id) & f.col("arg2").isin(classes))
    if relations:
        parts.append(f.col("relation").isin(list(relations)))
    found = parts[0]
    for part in parts[1:]:
        found = found | part
    return found
