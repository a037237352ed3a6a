"""The closure of real graphs: dependencies of Debian's packages, and the Gene Ontology."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import closing
from benchmarks.dag import LINEAR, arguments_for, recursive_query
from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary, Ids
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate

# File, and the pairs of its closure (computed elsewhere; of GO, published).
GRAPHS = {
    "Debian bookworm": ("graphs/debian-bookworm-depends.tsv.gz", 3_854_089),
    "Debian trixie": ("graphs/debian-trixie-depends.tsv.gz", 3_926_255),
    "GO": ("go/go-cc-parents.tsv.gz", 49_633),
}
OFFSPRING = "go/go-cc-offspring.expected.tsv.gz"


def run(options: Options) -> Iterator[Row]:
    """Each graph by each engine."""
    for name, (file, pairs) in GRAPHS.items():
        if not (options.data / file).exists():
            yield {"case": name, "skipped": f"no {file} in {options.data}"}
            continue
        with tempfile.TemporaryDirectory() as folder:
            edges = read(options.data / file, {})
            arguments = arguments_for(edges, Path(folder), options)
            wanted = {"edge": len(np.unique(edges, axis=0)), "path": pairs}
            case: Row = {"case": name, "expected": pairs}
            for threads in (1, 2):
                arguments["threads"] = threads
                ours = closing.ours(wanted, program=LINEAR, **arguments)
                yield case | closing.shown(ours)
                yield case | closing.shown(recursive_query(ours, wanted, **arguments))
    if (options.data / OFFSPRING).exists():
        yield {"case": "GO, every pair"} | isolated(
            offspring, timeout=options.timeout, data=str(options.data)
        )


def read(path: Path, numbers: dict[str, int]) -> Ids:
    """The first two columns of a file, with texts numbered in order of occurrence."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        pairs = [
            [numbers.setdefault(cell, len(numbers)) for cell in line.rstrip("\n").split("\t")[:2]]
            for line in lines
        ]
    return np.array(pairs, np.uint32)


def offspring(data: str) -> Row:
    """Whether the closure of GO equals the published one, pair by pair."""
    numbers: dict[str, int] = {}
    edges = read(Path(data) / GRAPHS["GO"][0], numbers)
    published = read(Path(data) / OFFSPRING, numbers)[:, ::-1]  # ancestor first
    engine = ColumnarEngine(Dictionary())
    explicit = engine.facts({Predicate("edge"): edges})
    found = materialize(Program.parse(LINEAR), explicit, engine).facts.rows(Predicate("path"))
    return {
        "facts": len(found),
        "expected": len(published),
        "correct": {*map(tuple, found.tolist())} == {*map(tuple, published.tolist())},
    }


BENCHMARK = Benchmark(
    "graphs",
    "the closures of Debian's dependencies and the Gene Ontology; peer: DuckDB",
    unit="",
    scales=(),
    small=(),
    run=run,
    plots=(
        Plot(
            "Transitive closure of real graphs",
            "case",
            "seconds",
            "engine + threads",
            unit="seconds",
        ),
    ),
    views=(
        View(
            "Transitive closure of real graphs",
            (
                "case",
                Column("expected", "pairs"),
                "engine",
                "threads",
                Column("explicit", "edges"),
                "seconds",
                Column("cpu_seconds", "cpu: s"),
                Column("speedup", "Corollary: × faster"),
                "correct",
            ),
        ),
    ),
)
