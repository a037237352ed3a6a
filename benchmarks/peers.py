"""The same work by Corollary and its peers, one after another in one run.

`--scale` is the number of LUBM universities, or, for LUBM-like data, of hundreds of thousands of
facts. Corollary and DuckDB use one thread, except on Spark; `maplib` chooses its own number.
`reasonable` and `owlrl` have different rules, so their facts are not compared here (the benchmark
`reasoners` compares them, by reasons). `owlrl` closes a part, and its time is scaled by the number
of triples. `maplib` is compared by triples per property, DuckDB and Soufflé by facts per predicate.
Updates are those of `peer_updates`: most peers start over. Works *from file to file* give the same
rules and facts, as numbers, to every rule system that is found (`equal_rules`); a row of one that
is not says how to install it, or which command would run.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import (
    closing,
    dag,
    datalog_peers,
    lubm,
    lubm_one,
    maplib_peer,
    peer_updates,
    reasoners,
    spark,
)
from benchmarks.equal_rules import compare
from benchmarks.equal_rules.work import Work, relation
from benchmarks.isolate import isolated
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.program import Program

FACTS = 100_000  # in memory, for each university of `--scale`
EDGES = 10_000  # likewise
REMOVED = 3  # the rule of ρdf that derives triples from those of subproperties
_NAMES = {
    "columnar": "corollary",
    "kernels in tasks": "corollary on Spark",
    "duckdb rounds": "duckdb, rounds of SQL",
    "duckdb recursive": "duckdb, recursive query",
}


def run(options: Options) -> Iterator[Row]:
    """Each kind of work, by each engine that supports it."""
    for scale in options.scales:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            whole, part = reasoners.generated(scale, folder)
            yield from _shown(
                f"OWL 2 RL from files, LUBM({scale})",
                [*reasoners.compared({}, whole, part, folder, options, facts=False), _datalog()],
            )
            yield from _shown(f"RDFS (ρdf) from files, LUBM({scale})", _rdfs(whole, options))
            yield from _shown(
                f"delete {peer_updates.DELETED} triples, OWL 2 RL, LUBM({scale})",
                peer_updates.deletions(whole, part, folder, options),
            )
            yield from _shown(
                f"remove one of 98 rules, {scale * FACTS:,} facts",
                peer_updates.rule_removals(scale * FACTS, folder, options),
            )
            for work, rows in _equal_rules(whole, folder, options):
                yield from _shown(f"{work}, LUBM({scale})", rows)
        yield from _shown(f"98 rules in memory, {scale * FACTS:,} facts", _rules(scale, options))
        graph, pairs = dag.random_dag(scale * EDGES)
        with tempfile.TemporaryDirectory() as name:
            arguments = dag.arguments_for(graph, Path(name), options)
            wanted = {"edge": len(graph), "path": pairs}
            yield from _shown(
                f"transitive closure, {len(graph):,} edges",
                dag.linear(graph, wanted, Path(name), options, arguments),
            )
            yield from _shown(
                f"transitive closure from file to file, {len(graph):,} edges",
                _closure(graph, Path(name) / "files", options),
            )
        yield from _shown(f"RDFS (ρdf) on Spark, LUBM({scale})", _on_spark(scale, options))


def _equal_rules(
    whole: Path, folder: Path, options: Options
) -> Iterator[tuple[str, Iterator[Row]]]:
    """The positive rules of two rule sets from file to file, and updates under the first."""
    works = {}
    for rules, title in (("rhodf", "ρdf"), ("owl-rl", "the positive rules of OWL 2 RL")):
        works[rules] = folder / f"{rules}.work"
        works[rules].mkdir()
        written = isolated(
            datalog_peers.corollary,
            timeout=options.timeout,
            path=str(whole),
            rules=rules,
            folder=str(works[rules]),
            repeat=1,
        )
        if "facts" not in written:
            yield f"{title} from file to file", iter([{"engine": "corollary"} | written])
            return
        yield f"{title} from file to file", compare.rows(works[rules], options)
    few, fewer = folder / "few.work", folder / "fewer.work"
    removals = compare.updates(works["rhodf"], fewer, options, rule=REMOVED)
    number = peer_updates.DELETED
    deletions = compare.updates(works["rhodf"], few, options, deleted=number)
    yield f"delete {number} triples, ρdf from file to file", deletions
    yield "remove one of the rules, ρdf from file to file", removals


def _closure(graph: Ids, folder: Path, options: Options) -> Iterator[Row]:
    folder.mkdir()
    program = Program.parse(dag.LINEAR)
    names = relation("edge"), relation("path")
    Work.of(program, Dictionary(), *names).write(folder, graph)
    written = isolated(compare.prepare, timeout=options.timeout, folder=str(folder))
    if "facts" not in written:
        yield {"engine": "corollary"} | written
        return
    yield from compare.rows(folder, options)


def _datalog() -> Row:
    return {"engine": "maplib", "skipped": maplib_peer.missing() or maplib_peer.NO_DATALOG}


def _rdfs(path: Path, options: Options) -> Iterator[Row]:
    """Corollary and `maplib`, whose RDFS has the rules of ρdf."""
    arguments: dict[str, Any] = {
        "timeout": options.timeout,
        "path": str(path),
        "repeat": options.repeat,
    }
    ours = isolated(reasoners.corollary, rules="rhodf", **arguments)
    yield {"engine": "corollary"} | closing.shown(ours)
    row: Row = {"engine": "maplib"}
    if (absent := maplib_peer.missing()) is not None:
        yield row | {"skipped": absent}
        return
    found = isolated(maplib_peer.measured, **arguments)
    yield row | closing.shown(closing.checked(found, ours.get("counts")))


def _rules(scale: int, options: Options) -> Iterator[Row]:
    """LUBM_L on one thread, and by rounds of SQL; `reasonable` has different rules."""
    if (absent := lubm_one.missing(options.data)) is not None:
        yield {"engine": "columnar", "skipped": absent}
        return
    with tempfile.TemporaryDirectory() as folder:
        for row in lubm.closures(scale * FACTS, Path(folder), options):
            single = row["case"] == "closure" and row.get("threads", 1) == 1
            if single and row["engine"] != "reasonable":
                yield row


def _on_spark(scale: int, options: Options) -> Iterator[Row]:
    """The Spark engine and textbook joins, in one session."""
    if importlib.util.find_spec("pyspark") is None:
        yield {"engine": "kernels in tasks", "skipped": "not installed (corollary[spark])"}
        return
    for row in spark.run(Options([scale], options.repeat, options.timeout, options.data)):
        yield (
            {"engine": "kernels in tasks"}
            | row
            | {"explicit": row.get("facts")}
            | ({"facts": row["facts"] + row["derived"]} if "derived" in row else {})
        )
    installed = importlib.util.find_spec("graphframes") is not None
    reason = "has no closure under rules" if installed else "not installed (graphframes-py)"
    yield {"engine": "GraphFrames", "skipped": reason}


def _shown(work: str, rows: Iterator[Row] | list[Row]) -> Iterator[Row]:
    """The same columns for all rows, with the ratio to Corollary's time."""
    ours: Row = {}
    for row in rows:
        ours = ours or row
        found: Row = {"work": work, "engine": _NAMES.get(row["engine"], row["engine"])}
        if "skipped" in row or "seconds" not in row:
            yield found | {
                key: row[key] for key in ("does", "skipped", "failed", "correct") if key in row
            }
            continue
        yield found | {
            "explicit": row.get("explicit", ours.get("explicit")),
            "facts": row.get("facts", row.get("derived")),
            "seconds": row["seconds"],
            "cpu_seconds": row.get("cpu_seconds"),
            "peak_bytes": row.get("peak_bytes"),
            "does": row.get("does"),
            "close_seconds": row.get("close_seconds"),
            "scaled_from": row.get("measured_seconds"),
            "times": row["seconds"] / ours["seconds"] if ours.get("seconds") else None,
            "hash": row.get("hash"),
            "correct": row.get("correct"),
        }


BENCHMARK = Benchmark(
    "peers",
    "the same work by Corollary, reasonable, owlrl, maplib, DuckDB, joins on Spark, rule systems",
    unit="universities",
    scales=(10,),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "The same work by Corollary and its peers",
            "work",
            "times",
            "engine",
            unit="ratio to Corollary (hatched: estimated from a part)",
            estimated="scaled_from",
        ),
    ),
    views=(
        View(
            "Seconds, and ratio to Corollary",
            (
                "work",
                "engine",
                Column("does", "does", new=True),
                "explicit",
                "facts",
                "seconds",
                Column("times", "× Corollary"),
                Column("peak_bytes", "peak: MB", 1e-6, new=True),
                Column("cpu_seconds", "cpu: s"),
                Column("close_seconds", "of it, closing: s", new=True),
                Column("scaled_from", "scaled from: s"),
                Column("hash", "hash", new=True),
                Column("correct", "same result"),
            ),
        ),
    ),
)
