"""Stores: creating, opening, and committing one fact.

LUBM under ρdf; `--scale` is the number of universities. Every case runs in a separate process.
`open` is the time until a reader can query the store, and `first answer` the time to count the
members of a class. One-fact updates run one after another in one process; the first one, which
builds the data structures for updates, is reported separately.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import peak_bytes
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.cli.main import main
from corollary.store import Store
from corollary.store.compaction import compact

_UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
_UPDATES = 20


def run(options: Options) -> Iterator[Row]:
    """Each operation on a store of each size."""
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            for case, operation in OPERATIONS.items():
                row: Row = {"case": f"{case}, LUBM({scale})"}
                yield row | isolated(operation, timeout=options.timeout, folder=folder, scale=scale)


def build(folder: str, scale: int) -> Row:
    """Save a materialization; excludes reading and deriving."""
    data = f"{folder}/data"
    main(["generate", "lubm", "--scale", str(scale), "--out", data, "--quiet"])
    kb = co.KnowledgeBase(co.rules("rhodf"), threads=2)
    kb.load(data)
    shutil.rmtree(data)
    with _Timed() as spent:
        kb.save(f"{folder}/store")
    cache = _size(Path(folder, "store", "cache"))
    tables = _size(Path(folder, "store")) - cache
    return {"facts": kb.count()} | spent.row() | {"bytes": tables, "cache_bytes": cache}


def open_(folder: str, scale: int) -> Row:
    """Open, then ask for the members of a class."""
    Store.open(f"{folder}/store")  # loads the library
    with _Timed() as spent:
        kb = co.KnowledgeBase.open(f"{folder}/store")
    row = {"facts": kb.count()} | spent.row() | {"peak_bytes": peak_bytes()}
    with _Timed() as spent:
        members = kb.count(f"[?x, a, <{_UB}Person>]")
    return row | {"first_answer_ms": spent.seconds * 1e3, "correct": members > 0}


def open_without_cache(folder: str, scale: int) -> Row:
    """Open from the tables alone, which rebuilds the cache."""
    shutil.rmtree(f"{folder}/store/cache")
    with _Timed() as spent:
        kb = co.KnowledgeBase.open(f"{folder}/store")
    return {"facts": kb.count()} | spent.row() | {"peak_bytes": peak_bytes()}


def update(folder: str, scale: int) -> Row:
    """Commit an insertion and a deletion of one fact; then another process opens the store."""
    kb = co.KnowledgeBase.open(f"{folder}/store")
    times, sizes = [], []
    for number in range(_UPDATES):
        before = _size(Path(folder, "store"))
        fact = f"[<http://example.org/{number // 2}>, a, <{_UB}FullProfessor>] ."
        with _Timed() as spent, kb.transaction() as tx:
            (tx.delete if number % 2 else tx.insert)(fact)
        times.append(spent.seconds * 1e3)
        sizes.append(_size(Path(folder, "store")) - before)
    with _Timed() as spent:
        again = co.KnowledgeBase.open(f"{folder}/store")
    return {
        "facts": again.count(),
        "first_ms": times[0],
        "median_ms": median(times[1:]),
        "median_bytes": median(sizes),
        "max_bytes": max(sizes),
        "open_ms": spent.seconds * 1e3,
        "correct": again.count() == kb.count(),
    }


def merge(folder: str, scale: int) -> Row:
    """Compact all files."""
    store = Store.open(f"{folder}/store")
    files = len(store.snapshot().fact_data)
    with _Timed() as spent:
        compact(store, full=True)
    return {"files": files, **spent.row(), "bytes": sum(f.size for f in store.snapshot().fact_data)}


def verify(folder: str, scale: int) -> Row:
    """Read every file, rematerialize, and compare."""
    from corollary.knowledge_base.verify import verify_store

    with _Timed() as spent:
        found = verify_store(f"{folder}/store")
    return {"facts": found.facts, **spent.row(), "correct": not found.problems}


class _Timed:
    """Measures the seconds of its block."""

    def __enter__(self) -> _Timed:
        self._started, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._started
        self.cpu_seconds = time.process_time() - self._cpu

    def row(self) -> Row:
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds}


def _size(path: Path) -> int:
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


OPERATIONS: dict[str, Callable[[str, int], Row]] = {
    "save": build,
    "open": open_,
    "open, no cache": open_without_cache,
    "one fact": update,
    "compact": merge,
    "verify": verify,
}

BENCHMARK = Benchmark(
    "store",
    "stores: save, open, commit one fact, compact, verify",
    unit="universities",
    scales=(75,),
    small=(1,),
    run=run,
    plots=(
        Plot("Operations on a store", "case", ys=(("seconds", ""),), unit="seconds"),
        Plot(
            "Commits of one fact",
            "case",
            ys=(("median_ms", "median"), ("first_ms", "first in a process")),
            unit="milliseconds",
        ),
    ),
    views=(
        View(
            "Operations",
            (
                "case",
                "facts",
                "seconds",
                Column("first_answer_ms", "first answer: ms"),
                Column("bytes", "tables: MB", 1e-6),
                Column("cache_bytes", "cache: MB", 1e-6),
                Column("peak_bytes", "peak: MB", 1e-6),
                "correct",
            ),
            needs="seconds",
        ),
        View(
            "Commits of one fact",
            (
                "case",
                "facts",
                Column("first_ms", "first: ms"),
                Column("median_ms", "median: ms"),
                Column("median_bytes", "written: bytes"),
                Column("open_ms", "open again: ms"),
                "correct",
            ),
            needs="median_ms",
        ),
    ),
)
