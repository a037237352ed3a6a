"""Performance budgets: record them, and fail when a change exceeds one.

    corollary bench fence --save     on an idle machine
    corollary bench fence --check    after a change; exit status 1 if a case exceeds its budget

Each case runs in a separate process. Its measure is the minimum CPU time over several runs, divided
by that of fixed reference work that runs before and after each of them: a slower or busy machine
slows both down. `--repeat` processes measure each case; the budget is the minimum ratio, the spread
is the relative distance of the maximum. `--check` tolerates the spread, and at least 10 %, and
repeats only the cases that exceed their budget. `--scale` is the percentage of the full size; real
data always have their full size, and cases whose data are missing are skipped.

Measured: under two memory-bound processes on two cores, the ratios of `dag`, `one-fact` and `axiom`
are 0.97–1.03 of their idle budgets, while CPU times grow by up to 15 %.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.fence_work import GROUPS, Group, measure
from benchmarks.isolate import isolated
from benchmarks.report import Benchmark, Options, Row, commit
from benchmarks.views import Column, View

TOLERANCE = 0.10  # the least; measured: spread on an idle machine is up to 6 %

Samples = dict[str, list[Row]]  # case -> one row per process


def run(options: Options) -> Iterator[Row]:
    """Measure each case, and yield its budget or a comparison with the saved one."""
    percent = options.scales[0]
    budgets = None if options.check is None else saved_budgets(options.check, percent)
    samples: Samples = {}
    problems: dict[str, Row] = {}  # case -> why there is no sample
    groups = dict(_chosen(options))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(max(1, options.repeat)):
            for name, group in groups.items():
                cases = [
                    case
                    for case in selected(group.cases, options.only)
                    if _is_pending(case, samples, problems, budgets)
                ]
                if not cases:
                    continue
                print(f"  {number + 1} of {options.repeat}: {name}", file=sys.stderr, flush=True)
                row = _measure(name, group, cases, options, folder)
                for case in cases:
                    if "cases" in row:
                        samples.setdefault(case, []).append(_ratio(case, row))
                    else:
                        problems[case] = row
    part = "budget" if budgets is None else "check"
    for group in groups.values():
        for case in selected(group.cases, options.only):
            about: Row = {"part": part, "case": case}
            if case in problems:
                yield about | problems[case]
            elif budgets is None:
                yield about | {"percent": percent, "commit": commit()} | budget(samples[case])
            elif case in budgets:
                yield about | compared(samples[case], budgets[case])
            else:
                yield about | {"skipped": "no saved budget"}


def budget(samples: Sequence[Row]) -> Row:
    """Compute the budget of a case from its samples.

    >>> samples = [{"cpu_ms": 2, "reference_ms": 1, "ratio": ratio} for ratio in (2.2, 2.0)]
    >>> row = budget(samples)
    >>> row["budget"], round(row["spread"], 3), round(row["tolerance"], 3)
    (2.0, 0.1, 0.1)
    """
    best = min(samples, key=lambda sample: sample["ratio"])
    spread = max(sample["ratio"] for sample in samples) / best["ratio"] - 1
    return {
        "cpu_ms": best["cpu_ms"],
        "reference_ms": best["reference_ms"],
        "budget": best["ratio"],
        "spread": spread,
        "tolerance": max(TOLERANCE, spread),
    }


def compared(samples: Sequence[Row], saved: Row) -> Row:
    """Compare the minimum ratio of a case with its budget.

    >>> saved = {"budget": 2.0, "tolerance": 0.1}
    >>> row = compared([{"cpu_ms": 3, "reference_ms": 1, "ratio": 3.0}], saved)
    >>> row["allowed"], row["measured"], row["to_budget"], row["within"]
    (2.2, 3.0, 1.5, False)
    """
    best = min(samples, key=lambda sample: sample["ratio"])
    allowed = saved["budget"] * (1 + saved["tolerance"])
    return {
        "budget": saved["budget"],
        "measured": best["ratio"],
        "allowed": allowed,
        "to_budget": best["ratio"] / saved["budget"],
        "cpu_ms": best["cpu_ms"],
        "within": best["ratio"] <= allowed,
    }


def saved_budgets(folder: Path, percent: int) -> dict[str, Row]:
    """Read the saved budgets of this scale, by case; exit with status 2 if there are none."""
    path = folder / f"{BENCHMARK.name}.json"
    rows = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    rows = [row for row in rows if "budget" in row]
    budgets = {row["case"]: row for row in rows if row["percent"] == percent}
    if not budgets:
        scales = sorted({row["percent"] for row in rows})
        hint = f"--scale {scales[-1]}" if scales else "corollary bench fence --save"
        print(
            f"error: no budgets at {percent} percent of the full size in {path}\nhint: {hint}",
            file=sys.stderr,
        )
        raise SystemExit(2)
    return budgets


def selected(cases: Iterable[str], only: Collection[str]) -> list[str]:
    """Select cases by name or by the first words of their names; an empty `only` selects all.

    >>> selected(["dag-linear", "dag-module", "daggers"], ["dag"])
    ['dag-linear', 'dag-module']
    """
    return [
        case
        for case in cases
        if not only or any(case == name or case.startswith(f"{name}-") for name in only)
    ]


def _chosen(options: Options) -> Iterator[tuple[str, Group]]:
    for name, group in GROUPS.items():
        if not (options.skip_spark and group.on_spark) and selected(group.cases, options.only):
            yield name, group


def _is_pending(
    case: str, samples: Samples, problems: Mapping[str, Row], budgets: Mapping[str, Row] | None
) -> bool:
    """Whether a case needs another sample."""
    if case in problems:
        return False
    if budgets is None:
        return True
    if case not in budgets:
        return False
    return case not in samples or not compared(samples[case], budgets[case])["within"]


def _measure(name: str, group: Group, cases: Sequence[str], options: Options, folder: str) -> Row:
    reason = group.missing(options.data)
    if reason is not None:
        return {"skipped": reason}
    row = isolated(
        measure,
        timeout=options.timeout,
        group=name,
        folder=folder,
        data=str(options.data),
        percent=options.scales[0],
    )
    return row | {"correct": False} if "failed" in row else row


def _ratio(case: str, row: Row) -> Row:
    seconds, reference = row["cases"][case], row["reference"]
    return {
        "cpu_ms": seconds * 1e3,
        "reference_ms": reference * 1e3,
        "ratio": seconds / reference,
    }


_COMPARISON = (
    "case",
    Column("cpu_ms", "cpu: ms"),
    "budget",
    "allowed",
    "measured",
    Column("to_budget", "÷ budget"),
    "within",
)

BENCHMARK = Benchmark(
    "fence",
    "CPU time of the main operations: --save budgets, --check them",
    unit="percent",
    scales=(100,),
    small=(1,),
    run=run,
    views=(
        View(
            "Budgets: CPU time as a ratio to the reference work",
            (
                "case",
                Column("cpu_ms", "cpu: ms"),
                Column("reference_ms", "reference: ms"),
                "budget",
                Column("spread", "spread: %", 100),
                Column("tolerance", "tolerance: %", 100),
            ),
            where=(("part", "budget"),),
        ),
        View(
            "CPU time as a ratio to the reference work",
            _COMPARISON,
            where=(("part", "check"),),
        ),
        View("Exceeded budgets", _COMPARISON, where=(("within", False),)),
    ),
    merges=True,
)
