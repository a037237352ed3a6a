"""Deletions by rematerialization, DRed and B/F, as in Table 2 of Motik et al. (2015).

The columns are those of the paper: |E⁻|, |I \\ I'|, seconds and derivations; |D| and the steps DR2,
DR4, DR5 of DRed; |C|, backward chaining, saturation and deletion propagation of B/F. These run
without modules, as in the paper; `auto` uses modules. The figures of the paper, shown for
comparison, are for similar data, hundreds of times larger, on two Xeon E5-2670 with 256 GB.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import lubm_data, lubm_one
from benchmarks.generated import generated
from benchmarks.isolate import isolated
from benchmarks.maintaining import Maintained, Tables, counted, sample
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Dictionary
from corollary.lang.program import Program

ALGORITHMS = ("rematerialize", "dred", "bf", "auto")
SHARES = (0.0, 0.001, 0.01, 0.05)  # of E; 0 stands for 100 facts
_FEW = 100

# |E⁻|, |I \ I'|, then seconds by rematerialization, DRed and B/F.
PAPER = {
    "LUBM": (
        "LUBM-1k-L",
        (
            (100, 113, 139.4, 0.0, 0.0),
            (5_000, 5_500, 101.8, 0.2, 0.2),
            (2_500_000, 2_700_000, 138.5, 39.4, 32.8),
            (10_000_000, 11_000_000, 99.5, 127.9, 102.2),
        ),
    ),
    "UOBM": (
        "UOBM-1k-Uo",
        (
            (100, 160, 3482.0, 8797.6, 5.4),
            (5_000, 85_200, 3417.8, 9539.3, 28.2),
            (17_000_000, 130_900_000, 3903.1, 8934.3, 988.8),
            (68_000_000, 581_400_000, 3981.9, 11351.6, 3737.3),
        ),
    ),
    "Claros": (
        "Claros-LE",
        (
            (100, 500, 3992.8, 0.0, 0.0),
            (2_500, 178_900, 5235.1, 8077.4, 10.3),
            (5_000, 427_500, 4985.1, 7628.2, 16.5),
            (10_000, 780_800, 5621.3, 7557.9, 3907.2),
        ),
    ),
}


def run(options: Options) -> Iterator[Row]:
    """Measure each dataset with each algorithm, then yield the figures of the paper."""
    for case, (name, figures) in PAPER.items():
        if case == "LUBM" and (reason := lubm_one.missing(options.data)) is not None:
            yield {"case": case, "skipped": reason}
            continue
        sizes: dict[int, int] = {}
        for algorithm in ALGORITHMS:
            found = isolated(
                measured,
                timeout=options.timeout,
                kind=case,
                algorithm=algorithm,
                scale=options.scales[0],
                repeat=options.repeat,
                data=str(options.data),
            )
            row: Row = {"case": case, "algorithm": algorithm}
            if "failed" in found:
                yield row | found
                continue
            for size in found["rows"]:
                same = sizes.setdefault(size["explicit_deleted"], size["deleted"])
                yield row | size | {"correct": same == size["deleted"]}
        for gone, facts, *seconds in figures:
            yield {"case": f"{name} in the paper", "explicit_deleted": gone, "deleted": facts} | {
                f"{algorithm} seconds": spent
                for algorithm, spent in zip(ALGORITHMS, seconds, strict=False)
            }


def loaded(case: str, scale: int, data: Path, dictionary: Dictionary) -> tuple[Program, Tables]:
    """The rules and the explicit facts."""
    if case == "LUBM":
        return lubm_one.rules(data, "L"), lubm_data.generate(100_000 * scale)
    if case == "UOBM":
        return generated("uobm", scale, dictionary)
    return generated("claros", scale / 5, dictionary)


def measured(kind: str, algorithm: str, scale: int, repeat: int, data: str) -> Row:
    """Minimum milliseconds for each size of E⁻, with the counts of the paper."""
    dictionary = Dictionary()
    program, tables = loaded(kind, scale, Path(data), dictionary)
    kept = Maintained(
        program, tables, algorithm, modules=algorithm == "auto", dictionary=dictionary
    )
    explicit, facts = sum(map(len, tables.values())), len(kept.maintainer.facts)
    rows = []
    for number in dict.fromkeys(max(_FEW, round(share * explicit)) for share in SHARES):
        some = sample(np.random.default_rng(1), tables, number)
        spent = []
        for _ in range(max(2, repeat)):  # the first one compiles
            seconds, changes = kept.delete(some)
            spent.append(seconds * 1e3)
            kept.insert(some)
        rows.append(
            {
                "explicit": explicit,
                "facts": facts,
                "explicit_deleted": sum(map(len, some.values())),
                "deleted": len(changes.deleted),
                "milliseconds": min(spent),
            }
            | counted(changes)
        )
    return {"rows": rows}


BENCHMARK = Benchmark(
    "bf",
    "deletions by DRed and B/F with their counts (Motik et al. 2015, Table 2)",
    unit="universities",
    scales=(5,),
    small=(1,),
    run=run,
    plots=tuple(
        Plot(
            f"{case}-like data: deleting explicit facts",
            "explicit_deleted",
            "milliseconds",
            "algorithm",
            kind="lines",
            where=(("case", case),),
            unit="milliseconds",
            x_unit="explicit facts deleted",
        )
        for case in PAPER
    ),
    views=(
        View(
            "Milliseconds to delete explicit facts",
            (
                "case",
                "explicit",
                "facts",
                Column("explicit_deleted", "deleted"),
                Column("deleted", "facts lost"),
            ),
            across="algorithm",
            values=("milliseconds",),
            where=(("case", tuple(PAPER)),),
        ),
        View(
            "Rule instances considered, all phases together",
            ("case", Column("explicit_deleted", "deleted")),
            across="algorithm",
            values=("derivations",),
            where=(("case", tuple(PAPER)),),
        ),
        View(
            "The paper's seconds",
            (
                "case",
                Column("explicit_deleted", "deleted"),
                Column("deleted", "facts lost"),
                Column("rematerialize seconds", "rematerialize"),
                Column("dred seconds", "dred"),
                Column("bf seconds", "bf"),
            ),
            where=(("case", tuple(f"{name} in the paper" for name, _ in PAPER.values())),),
        ),
    ),
    paper="two Xeon E5-2670 with 256 GB; data of the same kind, hundreds of times as large",
)
