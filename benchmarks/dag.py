"""DAG-R: the transitive closure of a random acyclic graph, with the linear and the quadratic rule.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §7: 10,000 nodes
and 100,000 random edges; 29.6 s with their module for transitive relations, 3,239 s semi-naively.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import closing, sql, tables
from benchmarks.measure import timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Ids
from corollary.generate import dag as generate
from corollary.lang.stratify import Predicate

EXIT = "path(?x, ?y) :- edge(?x, ?y) . "
LINEAR = EXIT + "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
QUADRATIC = EXIT + "path(?x, ?z) :- path(?x, ?y), path(?y, ?z) ."

_WARM_UP = 10_000  # edges; enough for relations that are dense
_SOUFFLE = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.printsize path
"""


def run(options: Options) -> Iterator[Row]:
    """Both rules, and the module for the second one, over graphs of each size."""
    for edges in options.scales:
        graph, pairs = random_dag(edges)
        with tempfile.TemporaryDirectory() as folder:
            arguments = arguments_for(graph, Path(folder), options)
            case: Row = {"case": "closure", "edges": len(graph), "pairs": pairs}
            wanted = {"edge": len(graph), "path": pairs}
            for row in linear(graph, wanted, Path(folder), options, arguments):
                yield case | {"rule": "linear"} | row
            row = closing.ours(wanted, program=QUADRATIC, **arguments)
            yield case | {"rule": "quadratic"} | closing.shown(row)
            module = closing.ours(wanted, program=QUADRATIC, modules=True, **arguments)
            module |= closing.speedup(module, row)
            yield case | {"rule": "transitive module"} | closing.shown(module)


def linear(
    graph: Ids, wanted: Mapping[str, int], folder: Path, options: Options, arguments: dict[str, Any]
) -> Iterator[Row]:
    """The closure by the linear rule, and by the peers."""
    ours = closing.ours(wanted, program=LINEAR, **arguments)
    yield closing.shown(ours)
    yield closing.shown(recursive_query(ours, wanted, **arguments))
    row = closing.checked(souffle(graph, folder, options), wanted)
    yield closing.shown(row) | closing.speedup(ours, row)


def recursive_query(ours: Row, wanted: Mapping[str, int], **arguments: Any) -> Row:
    """A row for DuckDB's recursive query."""
    case, absent = closing.duckdb_recursive, sql.missing()
    return closing.peer("duckdb recursive", case, absent, ours, wanted, **arguments)


def arguments_for(edges: Ids, folder: Path, options: Options) -> dict[str, Any]:
    """Write a graph to a file; returns the arguments of a case over it."""
    path, warm_up = folder / "graph.npz", folder / "small.npz"
    tables.save(path, {Predicate("edge"): edges})
    tables.save(warm_up, {Predicate("edge"): random_dag(_WARM_UP)[0]})
    return {
        "path": str(path),
        "warm_up": str(warm_up),
        "repeat": options.repeat,
        "timeout": options.timeout,
    }


def random_dag(edges: int, seed: int = 0) -> tuple[Ids, int]:
    """The edges of `corollary generate dag`, and the size of their closure."""
    graph = generate.random_dag(edges, seed)
    return graph.edges.astype(np.uint32), closure_size(graph.nodes, graph.ordered)


def closure_size(nodes: int, edges: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> int:
    """Count connected pairs with bitsets; edges lead from smaller to larger numbers."""
    reached = np.zeros((nodes, (nodes + 7) // 8), np.uint8)
    first = np.searchsorted(edges[:, 0], np.arange(nodes + 1))
    for node in range(nodes - 1, -1, -1):
        successors = edges[first[node] : first[node + 1], 1]
        row = np.bitwise_or.reduce(reached[successors], axis=0)
        np.bitwise_or.at(row, successors >> 3, (1 << (successors & 7)).astype(np.uint8))
        reached[node] = row
    return int(np.bitwise_count(reached).sum())


def souffle(edges: Ids, folder: Path, options: Options) -> Row:
    """A row for Soufflé's interpreter, including reading and printing, if installed."""
    binary = shutil.which("souffle")
    if binary is None:
        return {"engine": "souffle", "skipped": "souffle is not installed"}
    np.savetxt(folder / "edge.facts", edges, fmt="%d", delimiter="\t")
    (folder / "closure.dl").write_text(_SOUFFLE, "utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done, time = timed(
            lambda: subprocess.run(
                [binary, "-F", str(folder), str(folder / "closure.dl")],
                capture_output=True,
                text=True,
                timeout=options.timeout,
                check=True,
            )
        )
    except subprocess.TimeoutExpired:
        return {"engine": "souffle", "failed": f"stopped after {options.timeout:g} s"}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    pairs = int(done.stdout.split()[-1])
    return {
        "engine": "souffle",
        "derived": pairs,
        "seconds": time.seconds,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "counts": {"edge": len(edges), "path": pairs},
    }


BENCHMARK = Benchmark(
    "dag",
    "DAG-R, the closure of a random acyclic graph; peers: DuckDB, Soufflé",
    unit="edges",
    scales=(100_000,),
    small=(10_000,),
    run=run,
    plots=(
        Plot("Transitive closure of a random DAG", "rule", "seconds", "engine", unit="seconds"),
    ),
    views=(
        View(
            "Transitive closure of a random DAG",
            (
                "edges",
                "pairs",
                "rule",
                "engine",
                "instances",
                "seconds",
                Column("cpu_seconds", "cpu: s"),
                Column("bytes_per_fact", "bytes per fact"),
                Column("speedup", "Corollary: × faster"),
                "correct",
            ),
        ),
    ),
)
