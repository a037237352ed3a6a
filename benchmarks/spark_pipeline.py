"""The pipeline on Spark: LUBM under owl-rl from files to a committed version, stage by stage.

Every build runs in a separate process with `local[2]` and includes the start of the session. At the
smallest scale, a hash of all facts is compared with that of the embedded engine. The growth of a
row is its time per triple relative to the smallest scale. The profile of each stage contains its
jobs, the total time of their tasks, and the time without jobs, which is spent on the driver; the
slowest stage is marked. Then 100 and 100,000 triples are deleted on Spark in a warm session, and
the time is compared with that of the build.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.isolate import isolated
from benchmarks.measure import peak_bytes
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.generate.lubm import DATASET
from corollary.generate.write import write
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import read_rules
from corollary.store import Store
from corollary.store.term_hash import hashes

UPDATES = (100, 100_000)
_RULES = "owl-rl"
_SEED = 1
# Triples a second on two cores that the stages are to reach.
_TARGETS = {"parse": 400_000, "encode": 200_000, "materialize": 300_000}


def run(options: Options) -> Iterator[Row]:
    """Builds of each scale, then updates of each."""
    first: float | None = None
    for scale in options.scales:
        compare = scale == min(options.scales)
        with tempfile.TemporaryDirectory() as folder:
            data, store = Path(folder) / "data", Path(folder) / "store"
            write(DATASET, data, scale=scale, seed=_SEED)
            about: Row = {"case": "build", "scale": scale}
            built = isolated(
                build, timeout=options.timeout, data=str(data), store=str(store), compare=compare
            )
            if "failed" in built:
                yield about | built
                continue
            stages: list[Row] = built.pop("stages")
            rate = built["seconds"] / built["explicit"]
            first = first or rate
            yield about | built | {"growth": rate / first}
            for stage in stages:
                yield {"case": "stage", "scale": scale, **stage}
            done = isolated(
                update,
                timeout=options.timeout,
                data=str(data),
                store=str(store),
                counts=UPDATES,
                compare=compare,
            )
            for row in done.get("rows", [done]):
                share = row["seconds"] / built["seconds"] if "seconds" in row else None
                yield {"case": "update", "scale": scale} | row | {"share": share}


def build(data: str, store: str, compare: bool) -> Row:
    """One build, everything from the start of the session to the commit."""
    from corollary import spark

    files = [str(Path(data) / "*.nt")]
    ends: dict[str, float] = {}  # when stages ended

    def note(text: str) -> None:
        ends.setdefault(text.partition(":")[0], time.time())

    started, began = time.perf_counter(), time.time()
    done = spark.build(
        store,
        files,
        rules=_RULES,
        master="local[2]",
        on_progress=note,
    )
    seconds = time.perf_counter() - started
    peak, heap = peak_bytes(), heap_peak()
    jobs = jobs_of_session()
    stages = []
    for stage in done.stages:
        end = ends[stage.name]
        target = _TARGETS.get(stage.name)
        about = stage.to_json()
        stages.append(
            {
                "stage": about.pop("name"),
                **about,
                "rows_per_second": stage.rows / max(stage.seconds, 1e-3),
                "target": target,
                **profile(jobs, began, end),
            }
        )
        began = end
    slowest = max(stages, key=lambda row: row["seconds"])
    for row in stages:
        row["slowest"] = row is slowest
    result: Row = {
        "explicit": done.explicit,
        "facts": done.facts,
        "rounds": done.rounds,
        "seconds": seconds,
        "triples_per_second": done.explicit / seconds,
        "jobs": len(jobs),
        "driver_peak_bytes": peak,
        "heap_peak_bytes": heap,
        "slowest": slowest["stage"],
        "correct": None,
        "stages": stages,
    }
    if compare:
        kb = KnowledgeBase(read_rules(_RULES))
        kb.load(*files)
        own = Path(store).with_name("embedded")
        kb.save(own)
        result["correct"] = hash_of(store) == hash_of(own)
    return result


def update(data: str, store: str, counts: Sequence[int], compare: bool) -> Row:
    """Delete triples on Spark; the embedded engine does the same to a copy."""
    from corollary import spark

    rows: list[Row] = []
    spark.update(store, insert=[], delete=[], master="local[2]")  # the session is warm afterwards
    lines = (Path(data) / "University0.nt").read_bytes().splitlines(keepends=True)
    known = len(jobs_of_session())
    for count in counts:
        gone = Path(data).with_name(f"gone-{count}.nt")
        gone.write_bytes(b"".join(lines[:count]))
        lines = lines[count:] or lines
        started = time.perf_counter()
        done = spark.update(store, delete=[str(gone)], message=f"{count} triples")
        row: Row = {
            "changed": count,
            "seconds": time.perf_counter() - started,
            "deleted": done.deleted,
            "rounds": done.rounds,
            "jobs": len(jobs_of_session()) - known,
            "algorithm": done.algorithm,
            "stages": {stage.name: round(stage.seconds, 2) for stage in done.stages},
            "driver_peak_bytes": peak_bytes(),
            "correct": None,
        }
        known += row["jobs"]
        if compare:
            own = Path(store).with_name("embedded")
            with KnowledgeBase.open(own).transaction() as tx:
                tx.delete_from(str(gone))
            row["correct"] = hash_of(store) == hash_of(own)
        rows.append(row)
    return {"rows": rows}


Job = tuple[float, float, float]  # start, end, and seconds of its tasks


def jobs_of_session() -> list[Job]:
    """The jobs of the running session, from Spark's status store."""
    store, gateway = _java()
    arrays, jvm = gateway.new_array(gateway.jvm.double, 0), gateway.jvm
    nothing = jvm.java.util.ArrayList()
    tasks: dict[int, float] = {}
    for stage in _each(store.stageList(None, False, False, arrays, nothing)):
        tasks[stage.stageId()] = tasks.get(stage.stageId(), 0) + stage.executorRunTime() / 1000
    found = []
    for job in _each(store.jobsList(None)):
        began, ended = job.submissionTime(), job.completionTime()
        if began.isDefined() and ended.isDefined():
            spent = sum(tasks.pop(number, 0.0) for number in _each(job.stageIds()))
            found.append((began.get().getTime() / 1000, ended.get().getTime() / 1000, spent))
    return sorted(found)


def profile(jobs: Sequence[Job], began: float, ended: float) -> Row:
    """The jobs between two times: their number, their task time, and the time without jobs."""
    inside = [job for job in jobs if began <= job[0] < ended]
    idle, at = 0.0, began
    for start, end, _ in inside:
        idle += max(0.0, start - at)
        at = max(at, end)
    return {
        "jobs": len(inside),
        "task_seconds": sum(job[2] for job in inside),
        "driver_seconds": idle + max(0.0, ended - at),
    }


def heap_peak() -> int:
    """Peak bytes of Java's heap, including tasks, which share it here."""
    _, gateway = _java()
    pools = gateway.jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return sum(
        int(pool.getPeakUsage().getUsed()) for pool in pools if str(pool.getType().name()) == "HEAP"
    )


def _java() -> tuple[Any, Any]:
    from pyspark.sql import SparkSession

    session: Any = SparkSession.getActiveSession()
    context = session.sparkContext
    return context._jsc.sc().statusStore(), context._gateway


def _each(sequence: Any) -> Iterator[Any]:
    for at in range(sequence.size()):
        yield sequence.apply(at)


def hash_of(path: str | Path) -> int:
    """A hash of all facts of the newest version, independent of order and ids.

    Blank nodes are compared by their label in the document only.
    """
    snapshot = Store.open(path).snapshot()
    texts = pc.replace_substring_regex(snapshot.terms()["term"], r"^_:d\w*\.", "_:")
    terms = hashes(texts).to_numpy().view(np.uint64)
    facts = snapshot.facts("triples")
    total = np.zeros(facts.num_rows, np.uint64)
    for place in range(3):
        ids = facts[f"arg{place}"].to_numpy()
        total = (total ^ terms[ids]) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    total += pc.cast(facts["explicit"], pa.uint64()).to_numpy()
    return int(np.sum(total, dtype=np.uint64))


BENCHMARK = Benchmark(
    "spark-pipeline",
    "LUBM under owl-rl on Spark, from files to a commit; updates; peer: the embedded engine",
    unit="universities",
    scales=(10, 50, 100),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Seconds of each stage",
            "stage",
            "seconds",
            "scale",
            where=(("case", "stage"),),
            unit="seconds",
        ),
        Plot(
            "Updates on Spark, as a share of the build",
            "changed",
            "share",
            "scale",
            where=(("case", "update"),),
            unit="share of the seconds of the build",
        ),
    ),
    views=(
        View(
            "Builds",
            (
                Column("scale", "universities"),
                "explicit",
                "facts",
                "rounds",
                "seconds",
                Column("triples_per_second", "triples/s"),
                Column("growth", "growth per triple"),
                Column("driver_peak_bytes", "driver: MB", 1e-6),
                "correct",
            ),
            where=(("case", "build"),),
        ),
        View(
            "Stages",
            (
                Column("scale", "universities"),
                "stage",
                "rows",
                "seconds",
                Column("rows_per_second", "rows/s"),
                "target",
                "rounds",
                "skew",
            ),
            where=(("case", "stage"),),
        ),
        View(
            "Deletions",
            (
                Column("scale", "universities"),
                Column("changed", "triples"),
                "seconds",
                Column("share", "share of the build"),
                "deleted",
                "rounds",
                "algorithm",
                "correct",
            ),
            where=(("case", "update"),),
        ),
    ),
)
