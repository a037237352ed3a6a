"""Graphs on Spark: closures and components in tasks, compared with textbook joins of DataFrames.

All cases run in one session, each from a Parquet file of numbered edges to an exact count.

- The transitive closure of Debian's dependencies, with a known number of pairs. Semi-naive
  evaluation joins the new pairs with the edges, removes the known ones, and counts, one job per
  round.
- A symmetric and transitive relation over 1 M random edges between 4 M nodes, whose components are
  small, so all pairs can be written. Semi-naive evaluation of both rules.
- The components of 1 M random edges between 1 M nodes. Four of five nodes are in one component,
  whose 6 · 10¹¹ pairs cannot be written; the result is the least node of each node's component. The
  textbook algorithm propagates least labels along the edges until none changes.

The textbook algorithm is stopped at a time limit; its time is then a lower bound.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dag import LINEAR
from benchmarks.graphs import GRAPHS, read
from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from corollary.core.connected import components, count_pairs
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate

CONNECTED = """
    edge(?x, ?y) :- edge(?y, ?x) .
    edge(?x, ?z) :- edge(?x, ?y), edge(?y, ?z) .
"""
_WARM = 20.0  # seconds for which the textbook runs before it is measured


class TooLong(Exception):
    """The textbook algorithm exceeded the time limit."""


def run(options: Options) -> Iterator[Row]:
    """Each case; random graphs have the given number of edges."""
    file, pairs = GRAPHS["Debian bookworm"]
    if (options.data / file).exists():
        path = str(options.data / file)
        yield from _rows(options, debian, file=path, expected=pairs)
    else:
        yield {"case": "closure of Debian", "skipped": f"no {file} in {options.data}"}
    for scale in options.scales:
        yield from _rows(options, pairs_of_components, edges=scale)
        yield from _rows(options, least_nodes, edges=scale)


def _rows(options: Options, case: Callable[..., Row], **arguments: object) -> Iterator[Row]:
    limit = (
        options.timeout / 3
    )  # for the textbook algorithm; the rest is for the engine and the preparation
    found = isolated(case, timeout=options.timeout, limit=limit, **arguments)
    yield from found.get("rows", [{"case": case.__name__, **found}])


def debian(file: str, expected: int, limit: float) -> Row:
    """Transitive closure."""
    from corollary.knowledge_base.distributed import materialize

    edges = np.unique(read(Path(file), {}), axis=0)

    def ours(frame: Any) -> int:
        return materialize(frame, Program.parse(LINEAR), Dictionary()).count

    return _compared("closure of Debian", edges, expected, ours, closed_by_joins, limit)


def pairs_of_components(edges: int, limit: float) -> Row:
    """A symmetric and transitive relation with all its pairs."""
    from corollary.knowledge_base.distributed import materialize

    graph = random_edges(edges, nodes=4 * edges)

    def ours(frame: Any) -> int:
        found = materialize(frame, Program.parse(CONNECTED), Dictionary())
        return found.count + len(graph)

    case = "pairs of random components"
    return _compared(case, graph, count_pairs(graph), ours, connected_by_joins, limit)


def least_nodes(edges: int, limit: float) -> Row:
    """Components, identified by their least nodes."""
    from corollary.knowledge_base import distributed

    graph = random_edges(edges, nodes=edges)
    nodes, first = components(graph)
    expected = int(np.count_nonzero(first == np.arange(len(nodes))))

    def ours(frame: Any) -> int:
        found = distributed.components(frame, Predicate("edge"), Dictionary())
        return int(found.where("node = least").count())

    return _compared("components, one giant", graph, expected, ours, labels_by_joins, limit)


def random_edges(edges: int, nodes: int) -> Ids:
    """Distinct edges between random nodes, from a fixed seed."""
    random = np.random.default_rng(7)
    found = np.zeros((0, 2), np.uint32)
    while len(found) < edges:
        more = random.integers(0, nodes, (edges, 2), np.uint32)
        found = np.unique(np.concatenate([found, more[more[:, 0] != more[:, 1]]]), axis=0)
    return found[random.permutation(len(found))[:edges]]


def _compared(
    case: str,
    edges: Ids,
    expected: int,
    ours: Callable[[Any], int],
    textbook: Callable[[Any, float], int],
    limit: float,
) -> Row:
    """Both over the same file, in one session."""
    from corollary.engines.spark.session import build_session

    # The joins of the textbook need more than the 1 GB that Java has otherwise.
    config = {"spark.sql.adaptive.enabled": "false", "spark.driver.memory": "8g"}
    session = build_session("local[2]", config=config)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table(
            {
                "relation": pa.array(["edge"] * len(edges)),
                "arg0": pa.array(edges[:, 0].astype(np.int64)),
                "arg1": pa.array(edges[:, 1].astype(np.int64)),
            }
        )
        pq.write_table(table, f"{folder}/edges.parquet", row_group_size=1 << 17)
        frame = session.read.parquet(folder).cache()
        assert frame.count() == len(edges)
        # Warm up Java's compiler, and load the kernels in Python workers.
        ours(frame)
        _limited(session, "warm", lambda: textbook(frame, time.monotonic() + _WARM), _WARM)
        actions = {
            "kernels in tasks": lambda: ours(frame),
            "DataFrame joins": lambda: textbook(frame, time.monotonic() + limit),
        }
        for engine, action in actions.items():
            start = time.perf_counter()
            found = _limited(session, engine, action, limit)
            seconds = round(time.perf_counter() - start, 2)
            jobs = len(session.sparkContext.statusTracker().getJobIdsForGroup(engine))
            row: Row = {"case": case, "engine": engine, "edges": len(edges), "expected": expected}
            row |= {"found": found, "jobs": jobs, "seconds": seconds}
            rows.append(row | {"correct": None if found is None else found == expected})
    session.stop()
    factor = f"{rows[1]['seconds'] / rows[0]['seconds']:.1f}"
    stopped = rows[1]["found"] is None
    for row, text in zip(rows, (f"more than {factor}" if stopped else factor, ""), strict=True):
        row["times faster"] = text
    return {"rows": rows}


def _limited(session: Any, group: str, action: Callable[[], int], limit: float) -> int | None:
    """The result of an action; None if it exceeds the limit, which cancels its job."""
    context = session.sparkContext
    context.setJobGroup(group, group, interruptOnCancel=True)
    over = threading.Event()

    def cancel() -> None:
        over.set()
        context.cancelJobGroup(group)

    timer = threading.Timer(limit, cancel)
    timer.start()
    try:
        return action()
    except TooLong:
        return None
    except Exception:
        if over.is_set():
            return None
        raise
    finally:
        timer.cancel()


def closed_by_joins(frame: Any, until: float) -> int:
    """path(x, z) :- path(x, y), edge(y, z), semi-naively; returns the pairs."""
    edges = frame.selectExpr("arg0 AS y", "arg1 AS z").localCheckpoint()
    known = edges.selectExpr("y AS x", "z AS y").distinct().localCheckpoint()
    delta = known
    while True:
        found = delta.join(edges, "y").selectExpr("x", "z AS y").distinct()
        delta = found.join(known, ["x", "y"], "left_anti").localCheckpoint()
        if not delta.count():
            return int(known.count())
        known = known.union(delta).localCheckpoint()
        _check(until)


def connected_by_joins(frame: Any, until: float) -> int:
    """Both rules of a symmetric and transitive relation, semi-naively; returns the pairs."""
    known = frame.selectExpr("arg0 AS x", "arg1 AS y").distinct().localCheckpoint()
    delta = known
    while True:
        swapped = delta.selectExpr("y AS x", "x AS y")
        before = delta.join(known.selectExpr("x AS y", "y AS z"), "y").selectExpr("x", "z AS y")
        after = known.join(delta.selectExpr("x AS y", "y AS z"), "y").selectExpr("x", "z AS y")
        found = swapped.union(before).union(after).distinct()
        delta = found.join(known, ["x", "y"], "left_anti").localCheckpoint()
        if not delta.count():
            return int(known.count())
        known = known.union(delta).localCheckpoint()
        _check(until)


def labels_by_joins(frame: Any, until: float) -> int:
    """Propagate least labels until none changes; returns the components."""
    from pyspark.sql import functions

    one = frame.selectExpr("arg0 AS node", "arg1 AS other")
    edges = one.union(one.selectExpr("other AS node", "node AS other")).distinct()
    edges = edges.localCheckpoint()
    labels = edges.select("node").distinct().selectExpr("node", "node AS label").localCheckpoint()
    delta = labels
    while True:
        passed = delta.join(edges, "node").selectExpr("other AS node", "label AS better")
        least = passed.groupBy("node").agg(functions.min("better").alias("better"))
        delta = least.join(labels, "node").where("better < label")
        delta = delta.selectExpr("node", "better AS label").localCheckpoint()
        if not delta.count():
            return int(labels.where("node = label").count())
        changed = labels.join(delta.withColumnRenamed("label", "new"), "node", "left")
        labels = changed.selectExpr("node", "coalesce(new, label) AS label").localCheckpoint()
        _check(until)


def _check(until: float) -> None:
    if time.monotonic() > until:
        raise TooLong


BENCHMARK = Benchmark(
    "spark-graphs",
    "closures and components on Spark, compared with joins of DataFrames",
    "random edges",
    (1_000_000,),
    (20_000,),
    run,
    plots=(Plot("Graphs on Spark, two cores", "case", "seconds", "engine"),),
)
