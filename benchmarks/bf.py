"""Deletions by rematerialization, DRed and B/F, as in Table 2 of Motik et al. (2015).

The columns are those of the paper: |E⁻|, |I \\ I'|, seconds and derivations; |D| and the steps DR2,
DR4, DR5 of DRed; |C|, backward chaining, saturation and deletion propagation of B/F. As in the
paper, a search first finds the number of deletions at which rematerialization becomes as fast as
B/F; then 100 facts, and 25, 50, 75 and 100 % of this number are deleted, each sample containing the
previous one. These run without modules, as in the paper; `auto` uses modules.
B/F also runs on two threads, which the paper leaves as future work. The figures of the
paper, shown for comparison, are for similar data, hundreds of times larger, on two Xeon E5-2670
with 256 GB.

After each deletion, and after the same facts have been inserted again, a hash of the facts is
compared with those of the other algorithms, of which one materializes from scratch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import lubm_data, lubm_one
from benchmarks.generated import generated
from benchmarks.isolate import isolated
from benchmarks.maintaining import Agreement, Maintained, Tables, counted, prefix
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Dictionary
from corollary.lang.program import Program

ALGORITHMS = ("rematerialize", "dred", "bf", "bf, two threads", "auto")
STEPS = (0.25, 0.5, 0.75, 1.0)  # of the number at which rematerialization is as fast
_FEW = 100
_LONG = 2_000.0  # milliseconds of a deletion that is not repeated
_SHARES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.24, 0.32, 0.5)  # of E, for the search

# |E⁻|, |I \\ I'|; seconds by rematerialization; seconds, |D|, DR2, DR4 and DR5 of DRed; seconds,
# |C|, Bwd, Sat and Del prop of B/F.
K, M, G = 1e3, 1e6, 1e9
PAPER = {
    "LUBM": (
        "LUBM-1k-L",
        (
            (100, 113, 139.4, 0.0, 1.0 * K, 1.1 * K, 0.8 * K, 1.0 * K, 0.0, 0.5 * K, 200, 300, 200),
            (5_000, 5_500, 101.8, 0.2, 55.5 * K, 67.2 * K, 46.9 * K, 59.8 * K, 0.2, 23 * K, 9.3 * K,
             13.7 * K, 7.4 * K),
            (2.5 * M, 2.7 * M, 138.5, 39.4, 10.3 * M, 15.2 * M, 6.6 * M, 11.5 * M, 32.8, 10 * M,
             4.1 * M, 5.6 * M, 3.7 * M),
            (5 * M, 5.5 * M, 91.8, 54.8, 17.8 * M, 26.3 * M, 10.5 * M, 18.9 * M, 62.3, 18.8 * M,
             7.8 * M, 10.1 * M, 7.5 * M),
            (7.5 * M, 8.3 * M, 89.2, 71.5, 24.3 * M, 35.5 * M, 13.6 * M, 24.3 * M, 85.4, 26.7 * M,
             11 * M, 14 * M, 11.2 * M),
            (10 * M, 11 * M, 99.5, 127.9, 30 * M, 43.1 * M, 15.9 * M, 28.1 * M, 102.2, 34.1 * M,
             14 * M, 17.4 * M, 15 * M),
        ),
    ),
    "UOBM": (
        "UOBM-1k-Uo",
        (
            (100, 160, 3482.0, 8797.6, 1.8 * G, 2.6 * G, 53.2 * M, 2.6 * G, 5.4, 800, 500, 1.3 * K,
             500),
            (5_000, 85.2 * K, 3417.8, 9539.3, 1.8 * G, 2.6 * G, 53.2 * M, 2.6 * G, 28.2, 105.9 * K,
             17.9 * K, 42.1 * K, 104.1 * K),
            (17 * M, 130.9 * M, 3903.1, 8934.3, 1.8 * G, 2.7 * G, 63.7 * M, 2.5 * G, 988.8,
             175.8 * M, 47.6 * M, 104 * M, 196.7 * M),
            (34 * M, 269 * M, 4084.1, 9492.5, 1.9 * G, 2.8 * G, 68.4 * M, 2.4 * G, 1877.2,
             340.7 * M, 87.5 * M, 182.3 * M, 401.1 * M),
            (51 * M, 422.8 * M, 4010.0, 10659.3, 1.9 * G, 2.9 * G, 71.5 * M, 2.2 * G, 2772.7,
             513.7 * M, 125.2 * M, 246.8 * M, 622 * M),
            (68 * M, 581.4 * M, 3981.9, 11351.6, 1.9 * G, 2.9 * G, 73.3 * M, 2.1 * G, 3737.3,
             687 * M, 162.5 * M, 289.5 * M, 848.6 * M),
        ),
    ),
    "Claros-L": (
        "Claros-L",
        (
            (100, 212, 62.9, 0.0, 800, 1.0 * K, 200, 500, 0.0, 600, 300, 700, 500),
            (5_000, 11.3 * K, 62.8, 0.4, 37.8 * K, 50.7 * K, 10.9 * K, 23.9 * K, 0.4, 29.1 * K,
             18.8 * K, 35.3 * K, 26.8 * K),
            (0.6 * M, 1.3 * M, 62.3, 32.3, 4.1 * M, 5.5 * M, 1.1 * M, 2.5 * M, 14.9, 3.1 * M,
             2 * M, 3.6 * M, 3 * M),
            (1.2 * M, 2.6 * M, 61.2, 53.2, 7.8 * M, 10.8 * M, 2 * M, 4.8 * M, 33.6, 6.1 * M,
             3.8 * M, 6.7 * M, 6 * M),
            (1.7 * M, 4 * M, 60.5, 73.6, 11.4 * M, 15.9 * M, 2.8 * M, 6.8 * M, 47.8, 8.9 * M,
             5.6 * M, 9.5 * M, 9.1 * M),
            (2.3 * M, 5.5 * M, 60.0, 91.0, 14.8 * M, 20.9 * M, 3.6 * M, 8.6 * M, 60.6, 11.7 * M,
             7.3 * M, 12 * M, 12.3 * M),
        ),
    ),
    "Claros-LE": (
        "Claros-LE",
        (
            (100, 500, 3992.8, 0.0, 1.3 * K, 2.0 * K, 300, 900, 0.0, 1.0 * K, 700, 1.0 * K,
             1.1 * K),
            (2_500, 178.9 * K, 5235.1, 8077.4, 5.5 * M, 11.7 * G, 176.6 * K, 11.7 * G, 10.3,
             216.4 * K, 161.2 * K, 8.8 * M, 320 * K),
            (5_000, 427.5 * K, 4985.1, 7628.2, 6 * M, 11.7 * G, 186 * K, 11.7 * G, 16.5,
             485.6 * K, 369 * K, 8.9 * M, 769.3 * K),
            (7_500, 609.6 * K, 4855.0, 7419.1, 6.5 * M, 11.7 * G, 193.9 * K, 11.7 * G, 19.5,
             683.4 * K, 516.8 * K, 9 * M, 1.1 * M),
            (10_000, 780.8 * K, 5621.3, 7557.9, 6.8 * M, 11.7 * G, 207.6 * K, 11.7 * G, 3907.2,
             6 * M, 723 * M, 11.7 * G, 16.9 * M),
        ),
    ),
}  # fmt: skip
PAPER_KEYS = (
    "explicit_deleted", "deleted", "rematerialize seconds", "dred seconds", "overdeleted", "DR2",
    "DR4", "DR5", "bf seconds", "checked", "Bwd", "Sat", "Del prop",
)  # fmt: skip


def run(options: Options) -> Iterator[Row]:
    """Measure each dataset with each algorithm, then yield the figures of the paper."""
    for case, (name, figures) in PAPER.items():
        if case == "LUBM" and (reason := lubm_one.missing(options.data)) is not None:
            yield {"case": case, "skipped": reason}
            continue
        shared: Row = {"kind": case, "scale": options.scales[0], "data": str(options.data)}
        search = isolated(equilibrium, timeout=options.timeout, shares=list(_SHARES), **shared)
        if "failed" in search:
            yield {"case": case} | search
            continue
        yield {"case": f"{case}, as fast as rematerialization"} | search
        sizes = sizes_up_to(search["explicit_deleted"])
        agreement = Agreement()
        for algorithm in ALGORITHMS:
            row: Row = {"case": case, "algorithm": algorithm}
            for size in sizes:  # each within its own limit
                found = isolated(
                    measured,
                    timeout=options.timeout,
                    algorithm=algorithm,
                    number=size,
                    repeat=options.repeat,
                    **shared,
                )
                if "failed" not in found:
                    found["correct"] &= agreement.holds(size, (found["deleted"], found["hash"]))
                yield row | {"explicit_deleted": size} | found
        for line in figures:
            paper = dict(zip(PAPER_KEYS, line, strict=True))
            yield {"case": f"{name} in the paper"} | {
                key: round(value) if key not in _SECONDS else value for key, value in paper.items()
            }


_SECONDS = ("rematerialize seconds", "dred seconds", "bf seconds")


def sizes_up_to(most: int) -> list[int]:
    """The numbers of deletions up to the one at which rematerialization is as fast.

    >>> sizes_up_to(10_000), sizes_up_to(200)
    ([100, 2500, 5000, 7500, 10000], [100, 150, 200])
    """
    return sorted({min(_FEW, most), *(max(_FEW, round(step * most)) for step in STEPS)})


def equilibrium(kind: str, scale: int, data: str, shares: Sequence[float]) -> Row:
    """The smallest sample whose deletion takes B/F as long as rematerialization."""
    dictionary = Dictionary()
    program, tables = loaded(kind, scale, Path(data), dictionary)
    explicit = sum(map(len, tables.values()))
    rivals = [
        Maintained(program, tables, name, modules=False, dictionary=dictionary)
        for name in ("bf", "rematerialize")
    ]
    some = prefix(tables, _FEW)
    for rival in rivals:  # compiles
        rival.delete(some)
        rival.insert(some)
    size = _FEW
    for share in shares:
        size = max(_FEW, round(share * explicit))
        some = prefix(tables, size)
        spent = []
        for rival in rivals:
            times = []
            for _ in range(2):
                times.append(rival.delete(some)[0] * 1e3)
                rival.insert(some)
                if times[-1] > _LONG:
                    break
            spent.append(min(times))
        if spent[0] >= spent[1]:
            break
    return {
        "explicit": explicit,
        "explicit_deleted": size,
        "share": 100 * size / explicit,
        "bf milliseconds": spent[0],
        "rematerialize milliseconds": spent[1],
    }


def loaded(case: str, scale: int, data: Path, dictionary: Dictionary) -> tuple[Program, Tables]:
    """The rules and the explicit facts."""
    if case == "LUBM":
        return lubm_one.rules(data, "L"), lubm_data.generate(100_000 * scale)
    if case == "UOBM":
        return generated("uobm", scale, dictionary)
    program, tables = generated("claros", scale / 5, dictionary)
    return (easy(program) if case == "Claros-L" else program), tables


def easy(program: Program) -> Program:
    """Without the hard rules: those that relate places, which lead to many derivations."""
    hard = "relatedPlaces"
    kept = [rule for rule in program.rules if hard not in repr(rule)]
    return Program.of(kept, program.facts)


def measured(kind: str, algorithm: str, number: int, scale: int, repeat: int, data: str) -> Row:
    """Minimum milliseconds to delete a number of facts, with the counts of the paper."""
    dictionary = Dictionary()
    program, tables = loaded(kind, scale, Path(data), dictionary)
    name, _, parallel = algorithm.partition(", ")
    kept = Maintained(
        program,
        tables,
        name,
        modules=name == "auto",
        dictionary=dictionary,
        threads=2 if parallel else 1,
    )
    explicit, facts, before = (
        sum(map(len, tables.values())),
        len(kept.maintainer.facts),
        kept.digest(),
    )
    some = prefix(tables, number)
    spent = []
    for _ in range(max(2, repeat + 1)):  # the first one compiles, and decides the representation
        seconds, changes = kept.delete(some)
        spent.append(seconds * 1e3)
        after = kept.digest()
        kept.insert(some)
        if spent[-1] > _LONG:
            break
    return {
        "explicit": explicit,
        "facts": facts,
        "deleted": len(changes.deleted),
        "milliseconds": min(spent[1:] or spent),
        "first_milliseconds": spent[0],
        "hash": after[:12],
        "correct": kept.digest() == before,
    } | counted(changes)


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
            new=case == "Claros-L",
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
            "Facts after each deletion: a hash, by each algorithm",
            ("case", Column("explicit_deleted", "deleted")),
            across="algorithm",
            values=(Column("hash", new=True),),
            where=(("case", tuple(PAPER)),),
        ),
        View(
            "Where rematerialization becomes as fast as B/F",
            (
                "case",
                Column("explicit_deleted", "deleted", new=True),
                Column("share", "% of the explicit facts", new=True),
                Column("bf milliseconds", "bf: ms", new=True),
                Column("rematerialize milliseconds", "rematerialize: ms", new=True),
            ),
            where=(("case", tuple(f"{case}, as fast as rematerialization" for case in PAPER)),),
        ),
        View(
            "DRed by phase: facts overdeleted, and instances in each step",
            (
                "case",
                Column("explicit_deleted", "deleted"),
                Column("overdeleted", "|D|"),
                "DR2",
                "DR4",
                "DR5",
                Column("milliseconds", "ms"),
            ),
            where=(("case", tuple(PAPER)), ("algorithm", "dred")),
        ),
        View(
            "B/F by phase: facts checked, and instances in each step",
            (
                "case",
                Column("explicit_deleted", "deleted"),
                Column("checked", "|C|"),
                "Bwd",
                "Sat",
                "Del prop",
                Column("milliseconds", "ms"),
            ),
            where=(("case", tuple(PAPER)), ("algorithm", "bf")),
        ),
        View(
            "Rule instances considered, all phases together",
            ("case", Column("explicit_deleted", "deleted")),
            across="algorithm",
            values=("derivations",),
            where=(("case", tuple(PAPER)),),
        ),
        View(
            "The paper's seconds, facts and instances",
            (
                "case",
                Column("explicit_deleted", "deleted"),
                Column("deleted", "facts lost"),
                Column("rematerialize seconds", "rematerialize"),
                Column("dred seconds", "dred"),
                Column("overdeleted", "|D|", new=True),
                Column("DR2", new=True),
                Column("DR4", new=True),
                Column("DR5", new=True),
                Column("bf seconds", "bf"),
                Column("checked", "|C|", new=True),
                Column("Bwd", new=True),
                Column("Sat", new=True),
                Column("Del prop", new=True),
            ),
            where=(("case", tuple(f"{name} in the paper" for name, _ in PAPER.values())),),
        ),
    ),
    paper="two Xeon E5-2670 with 256 GB; data of the same kind, hundreds of times as large",
)
