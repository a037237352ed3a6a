"""Materialization on Spark: kernels in tasks, compared with textbook joins of DataFrames.

The textbook algorithm is semi-naive evaluation over one table of triples: original rules, one join
per delta atom, a union of all results, minus the known triples, with one checkpoint and one count
per round. Both run in one session, one after another, over the same data under ρdf, the largest
rule set that the textbook algorithm completes within minutes. Times are the minimum of five runs,
after an unmeasured one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Dictionary
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Term, Variable
from corollary.rdf import formats
from corollary.rdf.rulesets import rules

_TIMES = 5  # each is measured


def run(options: Options) -> Iterator[Row]:
    """Both at each scale."""
    for scale in options.scales:
        found = isolated(compare, timeout=options.timeout, scale=scale)
        yield from found.get("rows", [{"case": "LUBM under rhodf", "scale": scale, **found}])


def compare(scale: int) -> Row:
    """The two engines over LUBM(scale)."""
    from corollary.engines.spark.session import build_session
    from corollary.knowledge_base.distributed import materialize

    session = build_session("local[2]", config={"spark.sql.adaptive.enabled": "false"})
    with tempfile.TemporaryDirectory() as folder:
        dictionary = Dictionary()
        files = written(scale, Path(folder), dictionary)
        frame = session.read.parquet(str(files)).cache()
        facts = frame.count()

        def ours() -> int:
            count: int = materialize(frame, rules("rhodf"), dictionary).count
            return count

        def textbook() -> int:
            return rounds_of_joins(frame, rules("rhodf"), dictionary)

        found: list[Row] = []
        for engine, action in (("kernels in tasks", ours), ("DataFrame joins", textbook)):
            count, seconds, jobs = measured(session, engine, action)
            found.append(
                {
                    "case": "LUBM under rhodf",
                    "scale": scale,
                    "engine": engine,
                    "facts": facts,
                    "derived": count,
                    "jobs": jobs,
                    "seconds": seconds,
                }
            )
        for row in found:
            row["correct"] = row["derived"] == found[0]["derived"]
        found[0]["times faster"] = round(found[1]["seconds"] / found[0]["seconds"], 1)
    session.stop()
    return {"rows": found}


def written(scale: int, folder: Path, dictionary: Dictionary) -> Path:
    """LUBM as a table of encoded facts."""
    from corollary.cli.main import main

    main(["generate", "lubm", "--scale", str(scale), "--out", str(folder / "nt"), "--quiet"])
    columns = formats.read([folder / "nt"], dictionary).columns
    names = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(len(columns[0]), np.int8)), pa.array(["triples"])
    )
    arguments = {f"arg{at}": pa.array(c.astype(np.int64)) for at, c in enumerate(columns)}
    (folder / "facts").mkdir()
    table = pa.table({"relation": names.cast(pa.string()), **arguments})
    pq.write_table(table, folder / "facts" / "facts.parquet", row_group_size=1 << 18)
    return folder / "facts"


def measured(session: Any, name: str, action: Callable[[], int]) -> tuple[int, float, int]:
    """The result of an action after the first run, its minimum time, and its jobs."""
    context = session.sparkContext
    action()  # warms up Java's compiler, and loads the kernels in Python workers
    found, seconds, jobs = 0, float("inf"), 0
    for number in range(_TIMES):
        group = f"{name} {number}"
        context.setJobGroup(group, group)
        start = time.perf_counter()
        found = action()
        seconds = min(seconds, time.perf_counter() - start)
        jobs = len(context.statusTracker().getJobIdsForGroup(group))
    return found, round(seconds, 2), jobs


def rounds_of_joins(frame: Any, program: Program, dictionary: Dictionary) -> int:
    """Semi-naive evaluation by joins; returns the number of derived facts."""
    from pyspark.sql import DataFrame

    names = ("s", "p", "o")
    explicit = frame.selectExpr(*(f"arg{at} AS {name}" for at, name in enumerate(names)))
    known = explicit.distinct().localCheckpoint()
    delta, begun = known, int(known.count())
    while True:
        parts = []
        for rule in program.rules:
            atoms = [part for part in rule.body if isinstance(part, Atom)]
            for new in range(len(atoms)):
                found = None
                for at, atom in enumerate(atoms):
                    matches = matched(atom, delta if at == new else known, dictionary)
                    if found is None:
                        found = matches
                    else:
                        shared = [name for name in matches.columns if name in found.columns]
                        found = found.join(matches, shared)
                assert found is not None, "bodies have atoms"
                parts.append(found.selectExpr(*heads(rule.head.terms, names, dictionary)))
        derived = reduce(DataFrame.union, parts).distinct()
        delta = derived.join(known, list(names), "left_anti").localCheckpoint()
        if not delta.count():
            return int(known.count()) - begun
        known = known.union(delta).localCheckpoint()


def matched(atom: Atom, triples: Any, dictionary: Dictionary) -> Any:
    """The bindings of an atom's variables."""
    found: dict[str, str] = {}
    for name, term in zip(("s", "p", "o"), atom.terms, strict=True):
        if not isinstance(term, Variable):
            triples = triples.where(f"{name} = {dictionary.id(term)}")
        elif term.name in found:
            triples = triples.where(f"{name} = {found[term.name]}")
        else:
            found[term.name] = name
    return triples.selectExpr(*(f"{name} AS v_{variable}" for variable, name in found.items()))


def heads(terms: tuple[Term, ...], names: tuple[str, ...], dictionary: Dictionary) -> list[str]:
    """The columns of a head."""
    return [
        f"v_{term.name} AS {name}"
        if isinstance(term, Variable)
        else f"{dictionary.id(term)}L AS {name}"
        for term, name in zip(terms, names, strict=True)
    ]


BENCHMARK = Benchmark(
    "spark",
    "materialization on Spark, compared with joins of DataFrames",
    unit="universities",
    scales=(1, 10),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Materialization on Spark under ρdf, local[2]",
            "scale",
            "seconds",
            "engine",
            x_unit="universities",
            kind="bars",
            unit="seconds",
        ),
    ),
    views=(
        View(
            "LUBM under ρdf, one session on local[2]",
            (
                Column("scale", "universities"),
                "engine",
                Column("facts", "explicit"),
                "derived",
                "jobs",
                "seconds",
                Column("times faster", "× faster"),
                "correct",
            ),
        ),
    ),
)
