"""More cores and more data: in process, on Spark in one process, and on a standalone cluster.

`--scale` counts millions of facts in process, and universities on Spark. In process, LUBM-like data
are closed under LUBM_L, and the dependencies of Debian are closed transitively, with one and two
threads. On Spark, LUBM is built under owl-rl from files to a committed version, each build in a
separate process, with `local[1]`, with `local[2]`, and on a cluster of a master and two workers
with one core each on this machine. `growth` is the time per explicit fact relative to the smallest
scale: 1 is linear. `gain` is the time with one core divided by that with two.

Two builds with `local[1]` at the same time, which share nothing, say what a second core is worth
here: `share` is the gain of `local[2]` relative to theirs. `spark_model` replays the tasks recorded
with `local[1]` on two cores, which is compared with what was measured, and on clusters that are not
here, for more data.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import closing, graphs, lubm, lubm_one, spark_model, tables
from benchmarks.cluster import cluster, session_at
from benchmarks.dag import LINEAR, arguments_for
from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View

FACTS = 1_000_000  # for each unit of `--scale`
_GRAPH = "Debian bookworm"
_RULES = "owl-rl"
_SEED = 1
# Billions of triples, and machines; the cores of each that Spark uses.
PLANS = ((1, 1), (1, 4), (10, 4), (10, 16), (100, 40), (100, 160))
PLAN_CORES = 14
MASTERS = ("local[1]", "local[2]", "cluster of 2")


def run(options: Options) -> Iterator[Row]:
    """In process, then on Spark."""
    yield from _compared(_in_process(options), "threads")
    yield from _compared(_graph(options), "threads")
    yield from _compared(_on_spark(options), "master")


def _compared(rows: Iterator[Row], by: str) -> Iterator[Row]:
    """Add `growth` and `gain`; correct if the sizes at each scale are equal."""
    smallest: dict[Any, float] = {}
    one_core: dict[Any, Row] = {}
    for row in rows:
        if row.get("seconds"):
            rate = row["seconds"] / row["explicit"]
            row["growth"] = rate / smallest.setdefault(row[by], rate)
            first = one_core.setdefault(row.get("scale"), row)
            row["gain"] = first["seconds"] / row["seconds"]
            row["correct"] = row.get("correct") is not False and row["facts"] == first["facts"]
        yield row


def _in_process(options: Options) -> Iterator[Row]:
    case: Row = {"case": "LUBM_L in process"}
    if (absent := lubm_one.missing(options.data)) is not None:
        yield case | {"skipped": absent}
        return
    program = (options.data / "rulesets" / "LUBM_L.dl").read_text("utf-8")
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            path, warm_up = f"{folder}/facts.npz", f"{folder}/few.npz"
            tables.save(warm_up, lubm.warm_up(scale * FACTS))
            made = isolated(lubm.generate, timeout=options.timeout, scale=scale * FACTS, path=path)
            if "failed" in made:
                yield case | {"scale": scale} | made
                continue
            for threads in (1, 2):
                row = closing.ours(
                    None,
                    threads=threads,
                    program=program,
                    path=path,
                    warm_up=warm_up,
                    repeat=options.repeat,
                    timeout=options.timeout,
                )
                yield case | {"scale": scale} | _kept(row)


def _graph(options: Options) -> Iterator[Row]:
    file, pairs = graphs.GRAPHS[_GRAPH]
    case: Row = {"case": f"{_GRAPH}, transitive"}
    if not (options.data / file).exists():
        yield case | {"skipped": f"no {file} in {options.data}"}
        return
    with tempfile.TemporaryDirectory() as folder:
        edges = graphs.read(options.data / file, {})
        arguments = arguments_for(edges, Path(folder), options)
        for threads in (1, 2):
            row = closing.ours(None, program=LINEAR, threads=threads, **arguments)
            yield case | _kept(row) | {"correct": row.get("derived") == pairs}


def _kept(row: Row) -> Row:
    keys = ("threads", "explicit", "facts", "seconds", "cpu_seconds", "failed", "correct")
    return {key: row[key] for key in keys if row.get(key) is not None}


def _on_spark(options: Options) -> Iterator[Row]:
    case: Row = {"case": "build under owl-rl on Spark"}
    if importlib.util.find_spec("pyspark") is None:
        yield case | {"skipped": "not installed (pip install 'corollary[spark]')"}
        return
    from corollary.generate.lubm import DATASET
    from corollary.generate.write import write

    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            write(DATASET, Path(folder) / "data", scale=scale, seed=_SEED)
            found: dict[str, Row] = {}
            traces: dict[str, spark_model.Trace] = {}
            for number, master in enumerate(MASTERS):
                row = isolated(
                    build, timeout=options.timeout, folder=folder, number=number, master=master
                )
                traces[master] = spark_model.from_json(row.pop("trace", []))
                found[master] = row
                yield case | {"scale": scale, "master": master} | row
            one, two = (found.get(master, {}) for master in ("local[1]", "local[2]"))
            if "seconds" in one and "seconds" in two:
                yield case | {"scale": scale} | _copies(folder, one, two, options.timeout)
                yield from (
                    {"scale": scale, "explicit": one["explicit"]} | row
                    for row in _modelled(traces["local[1]"], one, two)
                )


def _copies(folder: str, one: Row, two: Row, timeout: float) -> Row:
    """Two builds with one core each at the same time, compared with one build with two cores."""
    with ThreadPoolExecutor(2) as pool:
        rows = list(
            pool.map(
                lambda number: isolated(
                    build, timeout=timeout, folder=folder, number=number, master="local[1]"
                ),
                (10, 11),
            )
        )
    if any("seconds" not in row for row in rows):
        return {"copies": 2} | rows[0]
    gain = 2 * one["seconds"] / max(row["seconds"] for row in rows)
    own = one["seconds"] / two["seconds"]
    return {"copies": 2, "copies_gain": gain, "own_gain": own, "share": own / gain}


def _modelled(trace: spark_model.Trace, one: Row, two: Row) -> Iterator[Row]:
    """The model compared with what was measured, and what it says of other clusters."""
    case: Row = {"case": "model"}
    for cores, measured in ((1, one["seconds"]), (2, two["seconds"])):
        seconds = spark_model.simulated(trace, 1, cores)
        yield case | {
            "machines": 1,
            "cores": cores,
            "modelled": seconds,
            "measured_seconds": measured,
            "error": seconds / measured - 1,
            "driver_share": spark_model.driver_share(trace),
        }
    for billions, machines in PLANS:
        more = spark_model.scaled(trace, billions * 1e9 / one["explicit"])
        seconds = spark_model.simulated(more, machines, PLAN_CORES)
        yield case | {
            "billions": billions,
            "machines": machines,
            "cores": PLAN_CORES,
            "modelled": seconds,
        }


def build(folder: str, number: int, master: str) -> Row:
    """One build; the startup of Spark is reported separately, because it does not grow."""
    from corollary.engines.spark.session import build_session

    if master in ("local[1]", "local[2]"):
        started = time.perf_counter()
        kept = {"spark.ui.retainedTasks": "10000000", "spark.ui.retainedStages": "100000"}
        return _built(folder, number, build_session(master, config=kept), started)
    logs = Path(folder) / f"cluster{number}"
    logs.mkdir()
    with cluster(logs, memory="2g") as (url, _):
        started = time.perf_counter()
        return _built(folder, number, session_at(url, memory="1g"), started)


def _built(folder: str, number: int, session: Any, started: float) -> Row:
    from corollary import spark

    session.range(2).count()
    begun, clock = time.perf_counter(), time.time()
    done = spark.build(
        f"{folder}/store{number}", [f"{folder}/data/*.nt"], rules=_RULES, session=session
    )
    seconds = time.perf_counter() - begun
    trace = spark_model.to_json(spark_model.recorded(session, clock))
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    session.stop()
    return {
        "explicit": done.explicit,
        "facts": done.facts,
        "seconds": seconds,
        "start_seconds": begun - started,
        "triples_per_second": done.explicit / seconds,
        "executors": max(1, executors - 1),
        "rounds": done.rounds,
        "trace": trace,
    }


BENCHMARK = Benchmark(
    "scaling",
    "one and two cores, growing data: in process, on Spark, on a standalone cluster",
    unit="million facts in process, universities on Spark",
    scales=(1, 5, 10),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "In process: LUBM_L",
            "explicit",
            "seconds",
            "threads",
            kind="lines",
            where=(("case", "LUBM_L in process"),),
            unit="seconds",
            x_unit="explicit facts",
        ),
        Plot(
            "On Spark: LUBM under OWL 2 RL, from files to a committed version",
            "explicit",
            "seconds",
            "master",
            kind="lines",
            where=(("case", "build under owl-rl on Spark"),),
            unit="seconds",
            x_unit="explicit triples",
        ),
    ),
    views=(
        View(
            "In process",
            (
                "case",
                "explicit",
                "facts",
                "threads",
                "seconds",
                Column("cpu_seconds", "cpu: s"),
                Column("gain", "thread gain"),
                Column("growth", "growth per fact"),
                "correct",
            ),
            where=(("master", None), ("copies", None), ("machines", None)),
        ),
        View(
            "Builds on Spark",
            (
                Column("scale", "universities"),
                "master",
                "executors",
                "explicit",
                "facts",
                Column("start_seconds", "start: s"),
                "seconds",
                Column("triples_per_second", "triples/s"),
                Column("gain", "gain to local[1]"),
                Column("growth", "growth per triple"),
                "correct",
            ),
            where=(("case", "build under owl-rl on Spark"), ("copies", None)),
        ),
        View(
            "One build with two cores, and two builds with one core each, which share nothing",
            (
                Column("scale", "universities"),
                Column("own_gain", "gain of local[2]"),
                Column("copies_gain", "gain of two builds"),
                "share",
            ),
            where=(("copies", 2),),
        ),
        View(
            "The model, from the tasks of local[1]",
            (
                Column("scale", "universities"),
                "machines",
                "cores",
                Column("modelled", "model: s"),
                Column("measured_seconds", "measured: s"),
                "error",
                Column("driver_share", "driver: share"),
            ),
            where=(("case", "model"), ("billions", None)),
        ),
        View(
            "What the model says of clusters with 10 Gbit/s",
            (
                Column("scale", "recorded at"),
                Column("billions", "billion triples"),
                "machines",
                "cores",
                Column("modelled", "model: hours", 1 / 3600),
            ),
            where=(("case", "model"), ("measured_seconds", None)),
        ),
    ),
)
