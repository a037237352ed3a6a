"""Named graphs: the cost of loading, closing, querying and updating quads instead of triples.

LUBM under ρdf; `--scale` is the number of universities. Each variant runs in a process of its own,
in turns, and the minimum of CPU seconds counts: without named graphs, and with every statement in
one of 15 graphs. `clear` drops one of the graphs; without graphs, the same triples are deleted.
`times` compares with the same operation without graphs.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import View
from corollary.cli.main import main

GRAPHS = 15
_UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
_VARIANTS = ("no graphs", f"{GRAPHS} graphs")
_QUERY = f"SELECT ?x ?y {{ ?x a <{_UB}Student> . ?x <{_UB}memberOf> ?y }}"
_REPEATS = 3  # of updates


def run(options: Options) -> Iterator[Row]:
    """Each operation with and without graphs."""
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            _generate(Path(folder), scale)
            best: dict[str, Row] = {}
            for _ in range(max(options.repeat or 0, 2)):
                for variant in _VARIANTS:
                    row = isolated(measure, timeout=options.timeout, folder=folder, variant=variant)
                    if row.keys() & {"failed"}:
                        yield {"case": variant} | row
                        return
                    best[variant] = _least(best.get(variant, row), row)
            yield from _rows(best, scale)


def _generate(folder: Path, scale: int) -> None:
    main(["generate", "lubm", "--scale", str(scale), "--out", str(folder / "data"), "--quiet"])
    paths = sorted(path for path in (folder / "data").rglob("*.nt"))
    lines = [line for path in paths for line in path.read_text("utf-8").splitlines(keepends=True)]
    (folder / "no graphs.nt").write_text("".join(lines), "utf-8")
    with (folder / f"{GRAPHS} graphs.nq").open("w", encoding="utf-8") as file:
        for number, line in enumerate(lines):
            end = line.rindex(".")
            file.write(f"{line[:end].rstrip()} <urn:graph:{number % GRAPHS}> .\n")
    part = [line for number, line in enumerate(lines) if number % GRAPHS == 1]
    (folder / "part.nt").write_text("".join(part), "utf-8")


def measure(folder: str, variant: str) -> Row:
    """CPU seconds of each operation of a variant."""
    place = Path(folder)
    [source] = place.glob(f"{variant}.n?")
    has_graphs = source.suffix == ".nq"
    kb = co.KnowledgeBase("rhodf")
    row: Row = {"load and derive": _cpu(lambda: kb.load(source))}
    row["facts"] = kb.count("[?s, ?p, ?o]")
    with tempfile.TemporaryDirectory() as stores:
        row["save"] = _cpu(lambda: kb.save(f"{stores}/store"))
        tables = ("facts", "terms")
        files = (path for name in tables for path in Path(stores, "store", name).rglob("*"))
        row["bytes"] = sum(path.stat().st_size for path in files if path.is_file())
        kb.query(_QUERY)  # loads the tables
        row["query"] = min(_cpu(lambda: kb.query(_QUERY)) for _ in range(_REPEATS))
        graph = "<urn:graph:1>" if has_graphs else None
        statement = f"<urn:new> a <{_UB}FullProfessor> ."
        times = []
        for _ in range(_REPEATS):
            times.append(_cpu(lambda: kb.insert(statement, graph=graph)))
            kb.delete(statement, graph=graph)
        row["one fact"] = min(times)
        with kb.transaction() as tx:
            started = time.process_time()
            if has_graphs:
                tx.update("CLEAR GRAPH <urn:graph:1>")
            else:
                tx.delete_from(place / "part.nt")
            requested = time.process_time() - started
        row["clear"] = requested + tx.changes.statistics.seconds["update"]
    return row


def _cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _least(one: Row, two: Row) -> Row:
    return {name: min(one[name], two[name]) for name in one}


def _rows(best: dict[str, Row], scale: int) -> Iterator[Row]:
    without, with_ = (best[variant] for variant in _VARIANTS)
    assert without["facts"] == with_["facts"], "the graphs derive the same triples"
    for operation in ("load and derive", "save", "query", "one fact", "clear", "bytes"):
        one, two = float(str(without[operation])), float(str(with_[operation]))
        unit = "bytes" if operation == "bytes" else "cpu_seconds"
        yield {
            "case": f"{operation}, LUBM({scale})",
            "facts": without["facts"],
            unit: one,
            f"{unit} with {GRAPHS} graphs": two,
            "times": two / one if one else 0.0,
            "correct": True,
        }


BENCHMARK = Benchmark(
    "datasets",
    "named graphs: quads instead of triples, and clearing a graph",
    unit="universities",
    scales=(10,),
    small=(1,),
    run=run,
    views=(
        View(
            "Named graphs",
            (
                "case",
                "facts",
                "cpu_seconds",
                f"cpu_seconds with {GRAPHS} graphs",
                "times",
            ),
            needs="times",
        ),
    ),
)
