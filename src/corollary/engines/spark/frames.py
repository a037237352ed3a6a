"""Facts between DataFrames of rows (`relation`, `arg0`, `arg1`, …) and chunks."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.engines.spark.base import Workspace, merged
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import SCHEMA
from corollary.engines.spark.task import Combine, Home, Rows, rows_of
from corollary.lang.syntax import TRIPLE

__all__ = ["DataFrame", "SparkSession", "read", "write"]


def read(workspace: Workspace, frame: DataFrame, triples: str) -> SparkFacts:
    """The facts of a DataFrame; one job, and one more if it has other relations than triples."""
    columns = sorted((c for c in frame.columns if c.startswith("arg")), key=lambda c: int(c[3:]))
    frame = frame.select("relation", *columns)
    others = frame.where(frame.relation != triples).select("relation").distinct().collect()
    numbers = {row[0]: workspace.number(row[0]) for row in others}
    home = Home(numbers, triples, workspace.type_id, workspace.partitions)
    chunks = frame.mapInArrow(home, SCHEMA)
    base = merged(workspace, chunks, Combine("union", workspace.make))
    return SparkFacts(workspace, workspace.embedded.facts({}), base).settled()


def write(workspace: Workspace, facts: SparkFacts, triples: str, width: int) -> DataFrame:
    """Facts as rows, without duplicates; nothing is computed before it is read."""
    arguments = [3 if key[0] == 0 else key[3] for key in _keys(workspace, facts)]
    # After the keys: a relation that only rules name gets its number with its key.
    names = {n: triples if name == TRIPLE else name for n, name in workspace.names.items()}
    width = max(width, *arguments) if arguments else width
    schema = ", ".join(["relation string", *(f"arg{at} long" for at in range(width))])
    parts = []
    if facts.base is not None:
        chunks = facts.base.chunks(removed=workspace.packed(facts.removed))
        parts.append(chunks.mapInArrow(Rows(names, width), schema))
    batches = [
        batch
        for key, rows in workspace.packed(facts.small).items()
        for batch in rows_of(key, rows, names, width)
    ]
    if batches or not parts:
        fields = [("relation", pa.string()), *((f"arg{at}", pa.int64()) for at in range(width))]
        table = pa.Table.from_batches(batches, pa.schema(fields))
        parts.append(workspace.session.createDataFrame(table))
    return reduce(DataFrame.union, parts)


def _keys(workspace: Workspace, facts: SparkFacts) -> list[tuple[int, int, int, int]]:
    keys = [*workspace.packed(facts.small)]
    if facts.base is not None:
        keys += facts.base.keys()
    return keys
