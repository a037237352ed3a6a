"""The closure of LUBM data under LUBM_L (98 rules), with DuckDB and `reasonable` as peers."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import closing, cores, lubm_data, lubm_one, owl, sql, tables
from benchmarks.isolate import isolated
from benchmarks.measure import peak_bytes, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Ids
from corollary.lang.stratify import Predicate

_WARM_UP = 200_000  # facts: enough to use several threads
_LARGEST_FOR_DUCKDB = 20_000_000  # facts; above it the run would take longer than the rest
_LARGEST_FOR_REASONABLE = 1_000_000
_TYPE = re.compile(r"\S+ <[^>]*#type> <([^>]*)> \.")
_TRIPLE = re.compile(r"\S+ <([^>]*)> ")


def run(options: Options) -> Iterator[Row]:
    """Check, then close data of each size."""
    reason = lubm_one.missing(options.data)
    if reason is not None:
        yield {"case": "lubm", "skipped": reason}
        return
    for name in ("L", "LE"):
        yield {"case": f"LUBM(1) under {name}"} | isolated(
            lubm_one.check, timeout=options.timeout, data=str(options.data), name=name
        )
    yield proportions(options.data)
    yield {"case": "two threads that share nothing"} | isolated(
        cores.gains, timeout=options.timeout
    )
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as folder:
            yield from closures(scale, Path(folder), options)


def closures(scale: int, folder: Path, options: Options) -> Iterator[Row]:
    """The engines over data of one size."""
    program = (options.data / "rulesets" / "LUBM_L.dl").read_text("utf-8")
    path, few = str(folder / "facts.npz"), str(folder / "few.npz")
    tables.save(few, warm_up(scale))
    yield {"case": "generate", "scale": scale} | isolated(
        generate, timeout=options.timeout, scale=scale, path=path
    )
    case: Row = {"case": "closure", "scale": scale}
    arguments: dict[str, Any] = {"path": path, "repeat": options.repeat, "timeout": options.timeout}
    rules: dict[str, Any] = {"program": program, "warm_up": few}
    ours = closing.ours(None, **rules, **arguments)
    wanted = ours.get("counts")  # which the other engines must match
    yield case | closing.shown(ours)
    both = closing.ours(wanted, threads=2, **rules, **arguments)
    if both.get("seconds") and ours.get("seconds"):
        both["gain"] = ours["seconds"] / both["seconds"]
    yield case | closing.shown(both)
    if scale <= _LARGEST_FOR_DUCKDB:
        row = closing.peer(
            "duckdb rounds",
            closing.duckdb_rounds,
            sql.missing(),
            ours,
            wanted,
            **rules,
            **arguments,
        )
        yield case | closing.shown(row)
    if scale <= _LARGEST_FOR_REASONABLE:
        ontology = str(options.data / "lubm" / "univ-bench.swat-ns.nt")
        row = closing.peer(
            "reasonable",
            owl.reasonable,
            owl.missing(),
            ours,
            ontology=ontology,
            folder=str(folder),
            **arguments,
        )
        yield case | row


def warm_up(scale: int) -> dict[Predicate, Ids]:
    """Data for the first closure, which compiles code."""
    return lubm_data.generate(min(scale, _WARM_UP))


def generate(scale: int, path: str) -> Row:
    """Write data of a size to a file."""
    facts, time = timed(lambda: lubm_data.generate(scale))
    tables.save(path, facts)
    return {
        "explicit": sum(map(len, facts.values())),
        "departments": len(facts[lubm_data.class_("Department")]),
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "peak_bytes": peak_bytes(),
    }


def proportions(data: Path) -> Row:
    """Facts of each predicate for a department, as a ratio to LUBM(1)'s.

    Universities are omitted: LUBM(1) mentions 979, however few it generates.
    """
    original: Counter[str] = Counter()
    with gzip.open(data / "lubm" / "lubm-1.nt.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if (found := _TYPE.match(line)) is not None:
                original[f"a {found[1]}"] += 1
            elif (found := _TRIPLE.match(line)) is not None:
                original[found[1]] += 1
    ours = {tables.label(p): len(rows) for p, rows in lubm_data.generate(1_000_000).items()}
    department = tables.label(lubm_data.class_("Department"))
    university = tables.label(lubm_data.class_("University"))
    factor = original[department] / ours[department]
    ratios = {
        name.rpartition("#")[2]: factor * ours.get(name, 0) / count
        for name, count in original.items()
        if name != university
    }
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return {
        "case": "proportions to LUBM(1)",
        "predicates": len(ratios),
        "least": ratios[least],
        "least_of": least,
        "most": ratios[most],
        "most_of": most,
        "correct": original.keys() == ours.keys() and 0.9 < ratios[least] <= ratios[most] < 1.1,
    }


BENCHMARK = Benchmark(
    "lubm",
    "the closure of LUBM data under LUBM_L; peers: DuckDB, reasonable",
    unit="facts",
    scales=(1_000_000, 10_000_000),
    small=(100_000,),
    run=run,
    plots=(
        Plot(
            "Closure under LUBM_L",
            "scale",
            "seconds",
            "engine + threads",
            kind="lines",
            unit="seconds",
            x_unit="explicit facts",
        ),
    ),
    views=(
        View(
            "Checked against an unrelated engine",
            ("case", "facts", "correct"),
            where=(("case", ("LUBM(1) under L", "LUBM(1) under LE")),),
        ),
        View(
            "Closures",
            (
                "explicit",
                "engine",
                "threads",
                "derived",
                "seconds",
                Column("cpu_seconds", "cpu: s"),
                Column("load_seconds", "load: s"),
                Column("derived_per_second", "M derived/s", 1e-6),
                Column("seconds_per_fact", "ns per fact", 1e9),
                Column("bytes_per_fact", "bytes per fact"),
                Column("gain", "thread gain"),
                Column("speedup", "Corollary: × faster"),
                "correct",
            ),
            where=(("case", "closure"),),
        ),
        View(
            "Gain of two threads that share nothing, in the same run",
            (Column("computing", "in registers"), Column("copying", "copying 32 MB")),
            where=(("case", "two threads that share nothing"),),
        ),
    ),
)
