"""`corollary bench evolve`: every system found, over every stream that can be made here."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.evolve import driver
from benchmarks.evolve.generated import GENERATORS, commits
from benchmarks.evolve.streams import Stream, history, write
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms.registry import ALGORITHMS


@dataclass(frozen=True)
class System:
    """An adapter: its module, what it needs, and its arguments."""

    module: str
    package: str = ""
    program: str = ""  # found on the path
    arguments: tuple[str, ...] = ()
    slow: bool = False  # runs on request only


SYSTEMS = {
    "corollary": System("corollary"),
    **{
        f"corollary-{algorithm}": System("corollary", arguments=("--algorithm", algorithm))
        for algorithm in ALGORITHMS
        if algorithm not in ("auto", "counting")  # counting needs rules without recursion
    },
    "corollary-spark": System("spark", "pyspark", slow=True),
    "duckdb": System("duckdb", "duckdb"),
    "clingo": System("clingo", "clingo"),
    "souffle": System("souffle", program="souffle"),
    "reasonable": System("reasonable", "reasonable"),
    "owlrl": System("owlrl", "owlrl"),
    "naive": System("naive"),
}


def command_of(system: str) -> list[str]:
    """The command that starts an adapter."""
    found = SYSTEMS[system]
    module = f"benchmarks.evolve.systems.{found.module}_system"
    return [sys.executable, "-m", module, *found.arguments]


def missing(system: str) -> str | None:
    """Why a system cannot run here; None if it can."""
    found = SYSTEMS[system]
    if found.package and importlib.util.find_spec(found.package) is None:
        return f"the package {found.package} is not installed"
    if found.program and shutil.which(found.program) is None:
        return f"{found.program} is not installed"
    return None


def make(
    folder: Path,
    *,
    scale: int = 1,
    seed: int = 0,
    histories: Path | None = None,
    only: Sequence[str] = (),
) -> Iterator[Stream]:
    """Write the generated streams, and the histories that are found.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [stream.name for stream in make(Path(folder), only=["policy"])]
    ['policy']
    """
    for name in GENERATORS:
        if not only or name in only:
            source = f"generated, scale {scale}, seed {seed}"
            yield write(folder / name, name, source, commits(name, scale, seed))
    for patch in sorted(histories.glob("*.rdfp.gz")) if histories else []:
        name = f"history-{patch.name.removesuffix('.rdfp.gz')}"
        if not only or name in only:
            yield write(folder / name, name, patch.name, history(patch))


def run(options: Options) -> Iterator[Row]:
    """Every system over the generated streams, and the updating ones over all histories."""
    patches = options.data / "updates"
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            found = patches if scale > 1 and patches.is_dir() else None
            for stream in make(Path(folder), scale=scale, histories=found):
                yield from _compare(stream, scale, options)


def _compare(stream: Stream, scale: int, options: Options) -> Iterator[Row]:
    reference: float | None = None
    for system in SYSTEMS:
        row: Row = {"stream": stream.name, "scale": scale, "system": system}
        if reason := missing(system):
            yield row | {"skipped": reason}
            continue
        if SYSTEMS[system].slow:
            command = f"python -m benchmarks.evolve run --system {system}"
            yield row | {"skipped": f"on request: {command}"}
            continue
        if system == "naive" and scale > 1:
            yield row | {"skipped": "plain Python, for small streams"}
            continue
        row |= driver.run(stream, command_of(system), timeout=options.timeout)
        if "built in" in row.get("failed", ""):
            row["skipped"] = "its rules are built in"
            del row["failed"]
        if row.get("correct"):
            reference = reference or row["total_seconds"]
            row["times"] = row["total_seconds"] / reference
        yield row


BENCHMARK = Benchmark(
    "evolve",
    "facts and rules that change: streams of commits, against systems that start over",
    "the size of generated streams; histories are added beyond 1",
    scales=(1, 4),
    small=(1,),
    run=run,
    views=(
        View(
            "Streams of commits",
            (
                "stream",
                "scale",
                "system",
                Column("load_seconds", "load (s)"),
                Column("median_ms", "median commit (ms)"),
                Column("worst_ms", "worst (ms)"),
                Column("total_seconds", "all commits (s)"),
                Column("times", "× ours"),
                Column("cpu_seconds", "processor (s)"),
                Column("peak_bytes", "peak (MB)", 1e-6),
                "checked",
                "correct",
            ),
        ),
    ),
)
