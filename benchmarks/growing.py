"""Deletions of growing parts of E from LUBM data (§5 of Motik et al. 2015).

For each size of E⁻, the minimum time of each algorithm to delete it; the facts are inserted again
before the next deletion. Hashes of the facts after each are compared. The last rows compare `auto`
with the best other algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import lubm_data, lubm_one
from benchmarks.isolate import isolated
from benchmarks.maintaining import Agreement, Maintained, counted, sample
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View

ALGORITHMS = ("rematerialize", "dred", "bf", "fp", "dred-c", "bf-c", "auto")
SHARES = (0.0, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5)  # of E; 0 stands for one fact
_SEEDS = (1, 2, 3)


def run(options: Options) -> Iterator[Row]:
    """A curve for each algorithm."""
    reason = lubm_one.missing(options.data)
    if reason is not None:
        yield {"case": "growing", "skipped": reason}
        return
    for scale in options.scales:
        found: dict[int, dict[str, float]] = {}
        agreement = Agreement()
        for algorithm in ALGORITHMS:
            curve = isolated(
                measured,
                timeout=options.timeout,
                algorithm=algorithm,
                scale=scale,
                repeat=options.repeat,
                data=str(options.data),
            )
            case: Row = {"case": "deletion", "scale": scale, "algorithm": algorithm}
            if "failed" in curve:
                yield case | curve
                continue
            for row in curve["rows"]:
                same = agreement.holds(row["explicit_deleted"], (row["deleted"], row["hash"]))
                yield case | row | {"correct": row["correct"] and same}
                found.setdefault(row["explicit_deleted"], {})[algorithm] = row["milliseconds"]
        for size, times in found.items():
            others = {name: spent for name, spent in times.items() if name != "auto"}
            if "auto" in times and others:
                best = min(others, key=lambda name: others[name])
                yield {
                    "case": "auto against the best",
                    "scale": scale,
                    "explicit_deleted": size,
                    "best": best,
                    "best_milliseconds": others[best],
                    "auto_milliseconds": times["auto"],
                    "auto_to_best": times["auto"] / others[best],
                }


def measured(algorithm: str, scale: int, repeat: int, data: str) -> Row:
    """Minimum milliseconds for each size of E⁻."""
    tables = lubm_data.generate(scale)
    explicit = sum(map(len, tables.values()))
    kept = Maintained(lubm_one.rules(Path(data), "L"), tables, algorithm)
    before = kept.digest()
    warm = sample(np.random.default_rng(0), tables, 100)
    for _ in range(3):
        kept.delete(warm)
        kept.insert(warm)
    rows = []
    for share in SHARES:
        some = sample(np.random.default_rng(1), tables, max(1, round(share * explicit)))
        spent, after = [], ""
        for _ in range(repeat if share > 0.01 else 4 * repeat):
            seconds, changes = kept.delete(some)
            spent.append(seconds)
            if len(spent) == 1:
                after = kept.digest()
            kept.insert(some)
        rows.append(
            {
                "explicit_deleted": sum(map(len, some.values())),
                "deleted": len(changes.deleted),
                "milliseconds": min(spent) * 1e3,
                "hash": after[:12],
                "correct": kept.digest() == before,
            }
            | counted(changes)
        )
    return {"rows": rows}


BENCHMARK = Benchmark(
    "growing",
    "growing deletions from LUBM data, compared with rematerialization",
    unit="facts",
    scales=(1_000_000,),
    small=(30_000,),
    run=run,
    plots=(
        Plot(
            "Growing deletions from LUBM data",
            "explicit_deleted",
            "milliseconds",
            "algorithm",
            kind="lines",
            unit="milliseconds",
            x_unit="explicit facts deleted",
        ),
    ),
    views=(
        View(
            "Milliseconds to delete explicit facts",
            (Column("scale", "explicit facts"), Column("explicit_deleted", "deleted")),
            across="algorithm",
            values=("milliseconds",),
            where=(("case", "deletion"),),
        ),
        View(
            "Facts after each deletion: a hash, by each algorithm",
            (Column("scale", "explicit facts"), Column("explicit_deleted", "deleted")),
            across="algorithm",
            values=(Column("hash", new=True),),
            where=(("case", "deletion"),),
        ),
        View(
            "`auto` compared with the best other algorithm",
            (
                Column("explicit_deleted", "deleted"),
                "best",
                Column("best_milliseconds", "ms"),
                Column("auto_milliseconds", "auto: ms"),
                Column("auto_to_best", "ratio"),
            ),
            where=(("case", "auto against the best"),),
        ),
    ),
)
