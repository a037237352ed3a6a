"""Deletions of one and of a thousand facts from LUBM data under LUBM_L, and insertions.

`ms` are medians over random facts. Every deletion is followed by the insertion of the same facts. A
hash of the facts after the last deletion must be that of the other algorithms and of a
materialization from scratch, and all insertions together must restore the facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import lubm_data, lubm_one
from benchmarks.isolate import isolated
from benchmarks.maintaining import Agreement, Maintained, sample
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View

ALGORITHMS = ("auto", "bf", "dred", "fp", "bf-c", "dred-c")
_REPETITIONS = {1: 200, 1_000: 40}
_WARM_UP = 5


def run(options: Options) -> Iterator[Row]:
    """Each algorithm on data of each size, then the growth with the size."""
    reason = lubm_one.missing(options.data)
    if reason is not None:
        yield {"case": "updates", "skipped": reason}
        return
    first: dict[tuple[str, int], Row] = {}
    for scale in options.scales:
        agreement = Agreement()
        for algorithm in ALGORITHMS:
            for changed in _REPETITIONS:
                row = {
                    "case": "update",
                    "scale": scale,
                    "algorithm": algorithm,
                    "changed": changed,
                } | isolated(
                    measured,
                    timeout=options.timeout,
                    algorithm=algorithm,
                    scale=scale,
                    changed=changed,
                    data=str(options.data),
                )
                if "hash" in row:
                    same = agreement.holds(changed, row["hash"])
                    row["correct"] = row["correct"] and same
                small = first.setdefault((algorithm, changed), row)
                if "failed" not in row | small:
                    row["delete_growth"] = row["delete_ms"] / small["delete_ms"]
                    row["insert_growth"] = row["insert_ms"] / small["insert_ms"]
                yield row


def measured(algorithm: str, scale: int, changed: int, data: str) -> Row:
    """Medians over updates of a given number of facts."""
    tables = lubm_data.generate(scale)
    kept = Maintained(lubm_one.rules(Path(data), "L"), tables, algorithm)
    facts, before = len(kept.maintainer.facts), kept.digest()
    rng = np.random.default_rng(7)
    spent: list[tuple[float, float]] = []
    deleted = 0
    correct = True
    for left in reversed(range(_WARM_UP + _REPETITIONS[changed])):
        some = sample(rng, tables, changed)
        without, gone = kept.delete(some)
        if left == 0:
            after = kept.digest()
            correct &= after == kept.scratch_digest()
        again, back = kept.insert(some)
        spent.append((without * 1e3, again * 1e3))
        deleted += len(gone.deleted)
        correct &= len(gone.deleted) == len(back.inserted)
    correct &= kept.digest() == before
    times = np.array(spent[_WARM_UP:])
    return {
        "facts": facts,
        "start_seconds": kept.seconds,
        "deleted": deleted / len(spent),
        "delete_ms": float(np.median(times[:, 0])),
        "delete_ms_max": float(times[:, 0].max()),
        "insert_ms": float(np.median(times[:, 1])),
        "insert_ms_max": float(times[:, 1].max()),
        "hash": after[:12],
        "correct": bool(correct),
    }


BENCHMARK = Benchmark(
    "updates",
    "deleting and inserting 1 and 1,000 facts of LUBM data",
    unit="facts",
    scales=(1_000_000, 10_000_000),
    small=(100_000,),
    run=run,
    plots=(
        Plot(
            "Deleting facts, including all consequences",
            "changed + scale",
            "delete_ms",
            "algorithm",
            unit="milliseconds, median",
            x_unit="facts changed, explicit facts",
        ),
        Plot(
            "Inserting facts, including all consequences",
            "changed + scale",
            "insert_ms",
            "algorithm",
            unit="milliseconds, median",
            x_unit="facts changed, explicit facts",
        ),
    ),
    views=(
        View(
            "Milliseconds to delete, median",
            (Column("scale", "explicit facts"), "changed"),
            across="algorithm",
            values=("delete_ms",),
        ),
        View(
            "Milliseconds to delete, maximum",
            (Column("scale", "explicit facts"), "changed"),
            across="algorithm",
            values=("delete_ms_max",),
        ),
        View(
            "Milliseconds to insert, median",
            (Column("scale", "explicit facts"), "changed"),
            across="algorithm",
            values=("insert_ms",),
        ),
        View(
            "Facts after the last deletion: a hash, by each algorithm",
            (Column("scale", "explicit facts"), "changed"),
            across="algorithm",
            values=(Column("hash", new=True),),
        ),
        View(
            "Startup seconds",
            (Column("scale", "explicit facts"),),
            across="algorithm",
            values=("start_seconds",),
            where=(("changed", 1),),
        ),
    ),
)
