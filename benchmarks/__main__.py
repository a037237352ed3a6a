"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    bf,
    computing,
    dag,
    datasets,
    dynamite,
    equality,
    fence,
    first_second,
    graphs,
    growing,
    hybrid,
    lubm,
    modular,
    one_fact,
    ontology,
    peers,
    proofs,
    rdf_load,
    reasoners,
    regret,
    rules,
    rules10k,
    scale,
    scaling,
    serving,
    spark,
    spark_graphs,
    spark_pipeline,
    spark_updates,
    sparql,
    store,
    updates,
)
from benchmarks.evolve import benchmark as evolve
from benchmarks.fence_work import GROUPS
from benchmarks.report import (
    DATA,
    RESULTS,
    Benchmark,
    Options,
    Row,
    machine,
    report,
    save,
    written,
)

BENCHMARKS: dict[str, Benchmark] = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (
        lubm,
        dag,
        bf,
        computing,
        dynamite,
        graphs,
        one_fact,
        first_second,
        rules10k,
        updates,
        growing,
        regret,
        proofs,
        rules,
        modular,
        ontology,
        rdf_load,
        reasoners,
        equality,
        hybrid,
        spark_pipeline,
        spark_updates,
        store,
        datasets,
        sparql,
        serving,
        spark,
        peers,
        scaling,
        scale,
        spark_graphs,
        evolve,
        fence,
    )
}

_PROGRESS = (
    "case",
    "scale",
    "rule",
    "pattern",
    "engine",
    "algorithm",
    "changed",
    "threads",
    "seconds",
    "budget",
    "measured",
    "skipped",
    "failed",
)
_SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark, or all at a small scale; 1 for a wrong result or an exceeded budget."""
    options = _parse(arguments)
    chosen = [BENCHMARKS[options.name]] if options.name else list(BENCHMARKS.values())
    rows: list[Row] = []
    for benchmark in chosen:
        scales = options.scale or (benchmark.scales if options.name else benchmark.small)
        print(f"{benchmark.name}: {benchmark.summary}", file=sys.stderr)
        measured: list[Row] = []
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        for row in benchmark.run(
            Options(
                scales,
                options.repeat,
                options.timeout,
                options.data,
                options.only,
                options.skip_spark,
                options.check,
            )
        ):
            progress = "  ".join(written(row[key]) for key in _PROGRESS if key in row)
            print(f"  {progress}", file=sys.stderr)
            measured.append(row)
        if not options.json:
            print(f"\n{benchmark.name}: {benchmark.summary}\n\n{benchmark.text(measured)}\n")
            sys.stdout.flush()
        if options.save is not None:
            words = sys.argv[1:] if arguments is None else arguments
            command = shlex.join(["corollary", "bench", *without_save(words)])
            save(benchmark, measured, command, load, options.save)
        rows += (
            measured if options.name else [{"benchmark": benchmark.name} | row for row in measured]
        )
    if options.json:
        print(json.dumps(report(options.name or "all", rows)))
    else:
        print(written(machine()))
    failed = any(row.get("correct") is False or row.get("within") is False for row in rows)
    return 1 if failed else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments, and reject options of `fence` for other benchmarks."""
    parser = command_line()
    options = parser.parse_args(arguments)
    if options.name != fence.BENCHMARK.name:
        for flag in ("only", "skip_spark", "check"):
            if getattr(options, flag):
                parser.error(f"--{flag.replace('_', '-')} is an option of the benchmark fence")
    cases = [case for group in GROUPS.values() for case in group.cases]
    for name in options.only:
        if not fence.selected(cases, [name]):
            parser.error(f"unknown case {name!r}; choose from {', '.join(cases)}")
    return options


def command_line() -> argparse.ArgumentParser:
    """Build the argument parser."""
    listed = "\n".join(
        f"  {b.name:14} {b.summary}"
        + (f" (scale: {b.unit}, {', '.join(map(short, b.scales))})" if b.scales else "")
        for b in BENCHMARKS.values()
    )
    parser = argparse.ArgumentParser(
        prog="corollary bench",
        description="Measure Corollary and its peers on this machine.",
        epilog=f"benchmarks:\n{listed}\n\nWithout a name, all run at a small scale.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=list(BENCHMARKS), help="the benchmark to run")
    parser.add_argument(
        "--scale", type=sizes, metavar="N[,N…]", help="sizes, such as 500k or 1M,10M,100M"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--repeat",
        type=int,
        default=3,
        metavar="N",
        help="take the minimum of N times (default: 3)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600,
        metavar="S",
        help="stop a case after S seconds (default: 600)",
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, metavar="DIR", help="real data (default: ../shared/data)"
    )
    destination = parser.add_mutually_exclusive_group()
    destination.add_argument(
        "--save",
        type=Path,
        nargs="?",
        const=RESULTS,
        metavar="DIR",
        help="write NAME.json, NAME.txt and the plot NAME.svg (default: benchmarks/results)",
    )
    destination.add_argument(
        "--check",
        type=Path,
        nargs="?",
        const=RESULTS,
        metavar="DIR",
        help="fence: compare with the saved budgets; exit status 1 if one is exceeded",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="fence: measure these cases only, or those that begin with NAME-",
    )
    parser.add_argument("--skip-spark", action="store_true", help="fence: omit the cases on Spark")
    return parser


def without_save(arguments: Sequence[str]) -> list[str]:
    """Drop `--save` and its folder from the arguments.

    >>> without_save(["bf", "--save", "somewhere", "--scale", "2"])
    ['bf', '--scale', '2']
    """
    remaining: list[str] = []
    before = ""
    for argument in arguments:
        folder = before == "--save" and not argument.startswith("-")
        if not folder and argument.partition("=")[0] != "--save":
            remaining.append(argument)
        before = argument
    return remaining


def sizes(text: str) -> tuple[int, ...]:
    """Parse sizes.

    >>> sizes("500k,1.5M")
    (500000, 1500000)
    """
    return tuple(map(size, text.split(",")))


def size(text: str) -> int:
    factor = _SUFFIXES.get(text[-1:].lower(), 1)
    number = float(text[:-1] if factor > 1 else text) * factor
    if number < 1:
        raise ValueError(f"a size must be at least 1, not {text}")
    return round(number)


def short(number: int) -> str:
    """Format a size as the command line accepts it.

    >>> short(1_500), short(10_000_000)
    ('1500', '10M')
    """
    for suffix, factor in (("M", 10**6), ("k", 10**3)):
        if number % factor == 0:
            return f"{number // factor}{suffix}"
    return str(number)


if __name__ == "__main__":
    sys.exit(main())
