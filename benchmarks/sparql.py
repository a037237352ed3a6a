"""LUBM's 14 queries over a materialization; peer: pyoxigraph's store with the same triples.

LUBM(N) is generated, closed under owl-rl, exported and loaded into pyoxigraph. Then both answer
each query in one process, all answers are fetched and compared. `cold` is the first execution, in
which Corollary parses and translates the query and loads the tables that it reads.
`warm` is the minimum of later executions. Both use one thread; pyoxigraph returns rows of terms,
Corollary an Arrow table of texts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.isolate import isolated
from benchmarks.measure import Time, least, peak_bytes, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View

QUERIES = range(1, 15)
_NAMESPACE = "http://swat.cse.lehigh.edu/onto/univ-bench.owl"
_OLD_NAMESPACE = "http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl"


def run(options: Options) -> Iterator[Row]:
    """All queries at each scale."""
    folder = options.data / "lubm" / "queries"
    if not folder.is_dir():
        yield {"case": "sparql", "skipped": f"no lubm/queries in {options.data}"}
        return
    for scale in options.scales:
        done = isolated(
            measure,
            timeout=options.timeout,
            folder=str(folder),
            scale=scale,
            repeat=options.repeat,
        )
        if "failed" in done:
            yield {"case": "sparql", "scale": scale} | done
            return
        yield from ({"case": "query", "scale": scale} | row for row in done["queries"])
        yield {"case": "all 14", "scale": scale} | done["total"]


def query_text(folder: Path, number: int) -> str:
    """A query in the namespace of the generated data."""
    text = (folder / f"q{number}.rq").read_text("utf-8")
    return re.sub(re.escape(_OLD_NAMESPACE), _NAMESPACE, text)


def measure(folder: str, scale: int, repeat: int) -> Row:
    """Execute every query on both."""
    import pyoxigraph

    import corollary
    from corollary.generate import DATASETS
    from corollary.generate.write import write
    from corollary.query.results import Solutions, TripleTable
    from corollary.query.write import encoded

    with tempfile.TemporaryDirectory() as place:
        write(DATASETS["lubm"], f"{place}/lubm", scale=scale, seed=0)
        kb = corollary.KnowledgeBase(corollary.rules("owl-rl"))
        kb.load(f"{place}/lubm/*.nt")
        triples = kb.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(!isLiteral(?s)) }")
        assert isinstance(triples, TripleTable)
        exported = Path(place) / "triples.nt"
        exported.write_bytes(encoded(triples, "nt"))
        number = len(triples)
        del triples
        store = pyoxigraph.Store()
        store.bulk_load(path=str(exported), format=pyoxigraph.RdfFormat.N_TRIPLES)

    def ours(text: str) -> Any:
        found = kb.query(text)
        assert isinstance(found, Solutions)
        return found.table

    def theirs(text: str) -> list[tuple[Any, ...]]:
        found: Any = store.query(text)
        return [tuple(row) for row in found]

    rows: list[Row] = []
    sums = {"cold": [0.0, 0.0], "warm": [0.0, 0.0], "warm_cpu": [0.0, 0.0]}
    for query in QUERIES:
        text = query_text(Path(folder), query)
        times: list[list[Time]] = []
        answers: list[Any] = []
        asked: tuple[Callable[[str], Any], ...] = (ours, theirs)
        for ask in asked:
            measured = []
            for _ in range(repeat + 1):
                found, time = timed(partial(ask, text))
                measured.append(time)
            times.append(measured)
            answers.append(found)
        mine = sorted(zip(*(column.to_pylist() for column in answers[0].columns), strict=True))
        wanted = sorted(tuple(map(str, row)) for row in answers[1])
        for side, measured in enumerate(times):
            sums["cold"][side] += measured[0].seconds
            sums["warm"][side] += least(measured[1:]).seconds
            sums["warm_cpu"][side] += least(measured[1:]).cpu_seconds
        rows.append(
            {
                "query": f"q{query}",
                "answers": len(mine),
                "cold_seconds": times[0][0].seconds,
                "warm_seconds": least(times[0][1:]).seconds,
                "pyoxigraph_cold": times[1][0].seconds,
                "pyoxigraph_warm": least(times[1][1:]).seconds,
                "speedup": least(times[1][1:]).seconds / least(times[0][1:]).seconds,
                "correct": mine == wanted,
            }
        )
    return {
        "queries": rows,
        "total": {
            "triples": number,
            **{f"{name}_seconds": pair[0] for name, pair in sums.items()},
            **{f"pyoxigraph_{name}": pair[1] for name, pair in sums.items()},
            "speedup_cold": sums["cold"][1] / sums["cold"][0],
            "speedup_warm": sums["warm"][1] / sums["warm"][0],
            "speedup_warm_cpu": sums["warm_cpu"][1] / sums["warm_cpu"][0],
            "peak_bytes": peak_bytes(),
            "correct": all(row["correct"] for row in rows),
        },
    }


BENCHMARK = Benchmark(
    "sparql",
    "LUBM's 14 queries over a materialization under owl-rl; peer: pyoxigraph",
    unit="universities",
    scales=(10,),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "LUBM's queries, warm",
            "query",
            unit="milliseconds",
            factor=1e3,
            ys=(("warm_seconds", "corollary"), ("pyoxigraph_warm", "pyoxigraph")),
        ),
        Plot(
            "LUBM's queries, cold",
            "query",
            unit="milliseconds",
            factor=1e3,
            ys=(("cold_seconds", "corollary"), ("pyoxigraph_cold", "pyoxigraph")),
        ),
    ),
    views=(
        View(
            "Milliseconds",
            (
                Column("scale", "universities"),
                "query",
                "answers",
                Column("cold_seconds", "cold", 1e3),
                Column("warm_seconds", "warm", 1e3),
                Column("pyoxigraph_cold", "pyoxigraph cold", 1e3),
                Column("pyoxigraph_warm", "pyoxigraph warm", 1e3),
                "correct",
            ),
            where=(("case", "query"),),
        ),
        View(
            "All 14 queries",
            (
                Column("scale", "universities"),
                "triples",
                Column("cold_seconds", "cold: ms", 1e3),
                Column("warm_seconds", "warm: ms", 1e3),
                Column("pyoxigraph_cold", "pyoxigraph cold", 1e3),
                Column("pyoxigraph_warm", "pyoxigraph warm", 1e3),
                Column("speedup_cold", "cold: ×"),
                Column("speedup_warm", "warm: ×"),
                "correct",
            ),
            where=(("case", "all 14"),),
        ),
    ),
)
