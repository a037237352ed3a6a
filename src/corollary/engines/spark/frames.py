"""Facts between DataFrames of rows (`relation`, `arg0`, `arg1`, …) and chunks."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.engines.spark.base import Base, Workspace, counts_of, merged_with_reports
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import SCHEMA
from corollary.engines.spark.task import Combine, Home, Rows, all_of, rows_of
from corollary.lang.syntax import TRIPLE

__all__ = ["DataFrame", "SparkSession", "read", "read_distinct", "read_few", "write"]


def read(workspace: Workspace, frame: DataFrame, triples: str) -> SparkFacts:
    """The facts of a DataFrame; one job, and one more if it has relations that nobody has named."""
    frame = frame.select("relation", *_arguments(frame))
    known = [name for name in workspace.names.values() if name != TRIPLE]
    while True:
        home = Home(
            _numbers(workspace, triples, known), triples, workspace.type_id, workspace.partitions
        )
        chunks = frame.mapInArrow(home, SCHEMA)
        base, reports = merged_with_reports(workspace, chunks, Combine("union", workspace.make))
        unknown = {name for report in reports for name in report.get("unknown", ())}
        if not unknown:
            return SparkFacts(workspace, workspace.embedded.facts({}), base).settled()
        known += sorted(unknown)


def read_few(
    workspace: Workspace, frame: DataFrame, triples: str, relations: Collection[str]
) -> Any:
    """The facts of a DataFrame of few rows, on the driver."""
    home = Home(_numbers(workspace, triples, relations), triples, workspace.type_id, 1)
    batches = frame.select("relation", *_arguments(frame)).toArrow().to_batches()
    return workspace.unpacked(all_of(home(iter(batches))))


def read_distinct(
    workspace: Workspace, frame: DataFrame, triples: str, relations: Collection[str]
) -> SparkFacts:
    """The facts of a DataFrame without duplicates, of known relations: one job, and no exchange."""
    numbers = _numbers(workspace, triples, relations)
    home = Home(numbers, triples, workspace.type_id, workspace.partitions, counted=True)
    chunks = frame.select("relation", *_arguments(frame)).mapInArrow(home, SCHEMA)
    kept, reports = workspace.settled(chunks)
    base = Base.of(workspace, [kept], *counts_of(workspace, reports))
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


def _arguments(frame: DataFrame) -> list[str]:
    return sorted((c for c in frame.columns if c.startswith("arg")), key=lambda c: int(c[3:]))


def _numbers(workspace: Workspace, triples: str, relations: Collection[str]) -> dict[str, int]:
    return {name: workspace.number(name) for name in relations if name != triples}


def _keys(workspace: Workspace, facts: SparkFacts) -> list[tuple[int, int, int, int]]:
    keys = [*workspace.packed(facts.small)]
    if facts.base is not None:
        keys += facts.base.keys()
    return keys
