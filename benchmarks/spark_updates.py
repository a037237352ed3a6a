"""Small updates on Spark: one and a hundred triples, inserted and deleted, on growing stores.

Each store is built in a process of its own with `local[2]`. In a warm session, the same triples are
deleted and inserted again, several times; the fastest of each counts. `growth` is the time relative
to that on the smallest store: 1 does not depend on the data. At the smallest scale, the facts are
compared with those of a store in which nothing was changed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.spark_pipeline import hash_of, jobs_of_session
from benchmarks.views import Column, View
from corollary.generate.lubm import DATASET
from corollary.generate.write import write

COUNTS = (1, 100)
MOST_JOBS = 8  # of an update of one triple
_RULES = "owl-rl"
_SEED = 1
_FIRST = 700  # the first changed line: facts of a department


def run(options: Options) -> Iterator[Row]:
    """Updates of stores of each scale."""
    smallest: dict[tuple[str, int], float] = {}
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            write(DATASET, Path(folder) / "data", scale=scale, seed=_SEED)
            done = isolated(
                updates,
                timeout=options.timeout,
                folder=folder,
                repeat=options.repeat,
                compare=scale == min(options.scales),
            )
            for row in done.get("rows", [done]):
                if "seconds" in row:
                    first = smallest.setdefault((row["change"], row["changed"]), row["seconds"])
                    row["growth"] = row["seconds"] / first
                yield {"case": "update", "scale": scale} | row


def updates(folder: str, repeat: int, compare: bool) -> Row:
    """Build a store, then delete and insert triples."""
    from corollary import spark

    data, store = Path(folder) / "data", Path(folder) / "store"
    began = time.perf_counter()
    built = spark.build(store, [f"{data}/*.nt"], rules=_RULES, master="local[2]")
    build_seconds = time.perf_counter() - began
    before = hash_of(store) if compare else None
    spark.update(store, insert=[], delete=[])  # reads the chunks once
    lines = (data / "University0.nt").read_bytes().splitlines(keepends=True)
    best: dict[tuple[str, int], Row] = {}
    for count in COUNTS:
        changed = Path(folder) / f"changed-{count}.nt"
        changed.write_bytes(b"".join(lines[_FIRST : _FIRST + count]))
        for _ in range(max(1, repeat)):
            for change in ("delete", "insert"):
                known, began = len(jobs_of_session()), time.perf_counter()
                files = [str(changed)]
                done = (
                    spark.update(store, insert=files)
                    if change == "insert"
                    else spark.update(store, delete=files)
                )
                row: Row = {
                    "change": change,
                    "changed": count,
                    "explicit": built.explicit,
                    "seconds": time.perf_counter() - began,
                    "jobs": len(jobs_of_session()) - known,
                    "facts_changed": done.inserted + done.deleted,
                    "algorithm": done.algorithm,
                    "build_seconds": build_seconds,
                }
                if count == 1:
                    row["correct"] = row["jobs"] <= MOST_JOBS
                key = (change, count)
                if key not in best or row["seconds"] < best[key]["seconds"]:
                    best[key] = row
    if compare:
        same = hash_of(store) == before
        for row in best.values():
            row["correct"] = same and row.get("correct") is not False
    return {"rows": list(best.values())}


BENCHMARK = Benchmark(
    "spark-updates",
    "updates of one and of a hundred triples on Spark, on growing stores",
    unit="universities",
    scales=(10, 50, 100),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Seconds of an update",
            "explicit",
            "seconds",
            "changed",
            kind="lines",
            where=(("change", "delete"),),
            unit="seconds",
            x_unit="explicit triples",
        ),
    ),
    views=(
        View(
            "Updates",
            (
                Column("scale", "universities"),
                "explicit",
                "change",
                Column("changed", "triples"),
                Column("facts_changed", "facts changed"),
                "jobs",
                "seconds",
                "growth",
                Column("build_seconds", "build: s"),
                "algorithm",
                "correct",
            ),
        ),
    ),
)
