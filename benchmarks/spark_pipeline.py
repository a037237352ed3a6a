"""The pipeline on Spark: LUBM by owl-rl from files to a committed version, stage by stage.

Every build is a process of its own, from the start of the session on, with `local[2]`. Its result
is compared with that of the embedded engine by a hash of all facts up to `COMPARED` universities.
The growth of a row is its time per triple in relation to that of the smallest scale. Then 100 and
100,000 triples are deleted on Spark, and what that took is compared with the build.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

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

COMPARED = 20  # universities; above, the embedded engine takes memory that the benchmark may lack
UPDATES = (100, 100_000)
_RULES = "owl-rl"
_SEED = 1
# Triples a second on two cores that the stages are to reach.
_TARGETS = {"parse": 400_000, "encode": 200_000, "materialize": 300_000}


def run(options: Options) -> Iterator[Row]:
    """Builds of each scale, then updates of each."""
    first: float | None = None
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            data, store = Path(folder) / "data", Path(folder) / "store"
            write(DATASET, data, scale=scale, seed=_SEED)
            about: Row = {"case": "build", "scale": scale}
            built = isolated(
                build, timeout=options.timeout, data=str(data), store=str(store), scale=scale
            )
            if "failed" in built:
                yield about | built
                continue
            stages: list[Row] = built.pop("stages")
            rate = built["seconds"] / built["explicit"]
            first = first or rate
            yield about | built | {"growth": rate / first}
            for stage in stages:
                target = _TARGETS.get(stage["name"])
                yield {
                    "case": "stage",
                    "scale": scale,
                    "stage": stage["name"],
                    "rows": stage["rows"],
                    "seconds": stage["seconds"],
                    "rows_per_second": stage["rows"] / max(stage["seconds"], 1e-3),
                    "target": target,
                    "bytes": stage["bytes"],
                    "rounds": stage["rounds"],
                    "skew": stage["skew"],
                }
            for count in UPDATES:
                done = isolated(
                    update,
                    timeout=options.timeout,
                    data=str(data),
                    store=str(store),
                    count=count,
                    compare=scale <= COMPARED,
                )
                share = done["seconds"] / built["seconds"] if "seconds" in done else None
                yield {"case": "update", "scale": scale, "changed": count} | done | {"share": share}


def build(data: str, store: str, scale: int) -> Row:
    """One build, everything from the start of the session to the commit."""
    from corollary import spark

    files = [str(Path(data) / "*.nt")]
    started = time.perf_counter()
    done = spark.build(store, files, rules=_RULES, master="local[2]")
    seconds = time.perf_counter() - started
    peak = peak_bytes()
    row: Row = {
        "explicit": done.explicit,
        "facts": done.facts,
        "rounds": done.rounds,
        "seconds": seconds,
        "triples_per_second": done.explicit / seconds,
        "driver_peak_bytes": peak,
        "correct": None,
        "stages": [stage.to_json() for stage in done.stages],
    }
    if scale <= COMPARED:
        kb = KnowledgeBase(read_rules(_RULES))
        kb.load(*files)
        own = Path(store).with_name("embedded")
        kb.save(own)
        row["correct"] = hash_of(store) == hash_of(own)
    return row


def update(data: str, store: str, count: int, compare: bool) -> Row:
    """Deletes triples on Spark; the embedded engine does the same to a copy."""
    from corollary import spark

    gone = Path(data).with_name(f"gone-{count}.nt")
    with (Path(data) / "University0.nt").open("rb") as lines, gone.open("wb") as out:
        out.writelines(line for number, line in enumerate(lines) if number < count)
    spark.update(store, insert=[], delete=[], master="local[2]")  # the session is warm afterwards
    started = time.perf_counter()
    done = spark.update(store, delete=[str(gone)], message=f"{count} triples")
    row: Row = {
        "seconds": time.perf_counter() - started,
        "deleted": done.deleted,
        "rounds": done.rounds,
        "algorithm": done.algorithm,
        "correct": None,
    }
    own = Path(store).with_name("embedded")
    if compare:
        with KnowledgeBase.open(own).transaction() as tx:
            tx.delete_from(str(gone))
        row["correct"] = hash_of(store) == hash_of(own)
    return row


def hash_of(path: str | Path) -> int:
    """A hash of all facts of the newest version, whatever their order and ids.

    Of blank nodes only the label in their document counts.
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
    "LUBM by owl-rl on Spark, from files to a commit; updates; compared with the embedded engine",
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
                Column("growth", "growth a triple"),
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
