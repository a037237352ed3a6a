"""Rules written out for a schema: a closure, an axiom that goes and comes, histories of ontologies.

`--scale` is the number of LUBM's universities. Histories are real ones, each commit a transaction,
under ρdf with rules for transitive, symmetric and inverse properties. Rematerialization is measured
at every twentieth commit, and taken to be the same in between: of facts that are in memory, by the
rules as they are written (`anew`) and written out (`anew_out`), and as a user would do it, from a
file of N-Triples to a `KnowledgeBase` (`rebuilt`).
"""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import least, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.algorithms.maintain import Maintainer
from corollary.cli.main import main
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.knowledge_base.ontology import Specialized
from corollary.knowledge_base.results import triples_of
from corollary.lang.program import Program
from corollary.rdf.formats import read, read_text, write

HISTORIES = ("plant-ontology", "sequence-ontology", "schemaorg-ttl")
_UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
MORE = """
    [?y, ?p, ?x] :- [?p, a, owl:SymmetricProperty], [?x, ?p, ?y] .
    [?x, ?p, ?z] :- [?p, a, owl:TransitiveProperty], [?x, ?p, ?y], [?y, ?p, ?z] .
    [?y, ?q, ?x] :- [?p, owl:inverseOf, ?q], [?x, ?p, ?y] .
    [?y, ?p, ?x] :- [?p, owl:inverseOf, ?q], [?x, ?q, ?y] .
"""
AXIOM = f"[<{_UB}headOf>, rdfs:subPropertyOf, <{_UB}worksFor>] ."
_EVERY = 20
_RUNS = 3  # of which the least counts, of commits and of everything anew alike
_WAYS = ("anew", "anew_out", "rebuilt")


def run(options: Options) -> Iterator[Row]:
    """LUBM of each size under OWL 2 RL, then the histories."""
    for scale in options.scales:
        case: Row = {"case": f"owl-rl, LUBM({scale})"}
        yield case | isolated(axiom, timeout=options.timeout, scale=scale, repeat=options.repeat)
    found: list[Row] = []
    for name in HISTORIES:
        case = {"case": f"rhodf+, {name}"}
        if not (options.data / "updates" / f"{name}.rdfp.gz").exists():
            yield case | {"skipped": f"no {name}.rdfp.gz in {options.data / 'updates'}"}
            continue
        folder = str(options.data / "updates")
        row = case | isolated(history, timeout=options.timeout, name=name, folder=folder)
        found.append(row)
        yield row
    if found and all("mean_ms" in row for row in found):
        yield {"case": "rhodf+, all of them", **in_total(found)}


def in_total(rows: Sequence[Row]) -> Row:
    """Histories one after the other.

    >>> row = {"commits": 11, "mean_ms": 1, "anew_ms": 9, "anew_out_ms": 4, "rebuilt_ms": 8}
    >>> in_total([row, row])["anew_times"]
    9.0
    """
    commits = sum(row["commits"] for row in rows)
    total: Row = {"commits": commits}
    for way in ("mean_ms", *(f"{way}_ms" for way in _WAYS)):
        total[way] = sum(row[way] * (row["commits"] - 1) for row in rows) / (commits - len(rows))
    return total | {f"{way}_times": total[f"{way}_ms"] / total["mean_ms"] for way in _WAYS}


def axiom(scale: int, repeat: int) -> Row:
    """The least times of a closure, and of an axiom that is removed and added again."""
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    program = co.rules("owl-rl")
    with tempfile.TemporaryDirectory() as folder:
        main(["generate", "lubm", "--scale", str(scale), "--out", folder])
        triples = read(f"{folder}/*.nt", dictionary)
    start = engine.facts(triples.tables(dictionary)).union(
        engine.facts(encode(program.facts, dictionary))
    )
    rules = Program.of(program.rules)
    # The first one also finds out what is to know of each literal.
    kept, first = timed(lambda: Specialized(rules, start, engine))
    time = least(timed(lambda: Specialized(rules, start, engine))[1] for _ in range(repeat))
    one = engine.facts(encode(Program.parse(AXIOM).facts, dictionary))
    nothing, size = engine.facts({}), len(kept.facts)
    removed, added = [], []
    for _ in range(max(5, repeat)):
        removed.append(timed(lambda: kept.update(Changes(nothing, one)))[1])
        added.append(timed(lambda: kept.update(Changes(one, nothing)))[1])
    return {
        "explicit": len(start),
        "facts": size,
        "rules": len(kept.specialized.rules),
        "first_cpu_seconds": first.cpu_seconds,
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "remove_ms": least(removed).seconds * 1e3,
        "add_ms": least(added).seconds * 1e3,
        "correct": size == len(kept.facts),
    }


def history(name: str, folder: str) -> Row:
    """Milliseconds of processor time for each commit but the first, and in total."""
    engine = ColumnarEngine(Dictionary())
    rules = co.rules("rhodf") | Program.parse(MORE)
    checks = json.loads((Path(folder) / f"{name}.expected.json").read_text("utf-8"))
    expected = {check["tx"]: check["rhodf+trans/sym/inv"]["closure"] for check in checks}
    commits = list(transactions(Path(folder) / f"{name}.rdfp.gz", engine))
    nothing = engine.facts({})
    kept = Specialized(rules, nothing, engine)
    anew: dict[str, list[float]] = {way: [] for way in _WAYS}
    correct = True
    for number, changes in enumerate(commits, 1):
        kept.update(changes)
        if number in expected:
            correct &= len(kept.facts) == expected[number]
        if number % _EVERY == 0:
            found = _again(rules, kept, engine)
            correct &= all(size == len(kept.facts) for size, _ in found.values())
            for way, (_, seconds) in found.items():
                anew[way].append(seconds)
    runs = [_spent(Specialized(rules, nothing, engine), commits) for _ in range(_RUNS)]
    spent = [min(times) for times in zip(*runs, strict=True)]
    total = sum(spent[1:])
    row: Row = {
        "facts": len(kept.facts),
        "commits": len(spent),
        "median_ms": median(spent[1:]) * 1e3,
        "mean_ms": total / len(spent[1:]) * 1e3,
    }
    for way, times in anew.items():
        mean = sum(times) / len(times)
        row |= {f"{way}_ms": mean * 1e3, f"{way}_times": mean * len(spent[1:]) / total}
    return row | {"correct": correct}


def _spent(kept: Specialized[ColumnarFacts], commits: list[Changes[ColumnarFacts]]) -> list[float]:
    """Seconds of processor time for each commit."""
    found = []
    for changes in commits:
        start = time.process_time()
        kept.update(changes)
        found.append(time.process_time() - start)
    return found


def _again(
    rules: Program, kept: Specialized[ColumnarFacts], engine: ColumnarEngine
) -> dict[str, tuple[int, float]]:
    """Facts and seconds of each way to derive everything anew."""
    explicit = kept.explicit

    def rebuilt(path: Path) -> int:
        kb = co.KnowledgeBase(rules)
        kb.load(path)
        return kb.count()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.nt"
        write(path, triples_of(explicit, engine.dictionary), engine.dictionary)
        ways = {
            "anew": lambda: len(Maintainer(rules, explicit, engine).facts),
            "anew_out": lambda: len(Specialized(rules, explicit, engine).facts),
            "rebuilt": lambda: rebuilt(path),
        }
        found = {}
        for way, make in ways.items():
            runs = [timed(make) for _ in range(_RUNS)]
            found[way] = runs[0][0], least(time for _, time in runs).cpu_seconds
    return found


def transactions(path: Path, engine: ColumnarEngine) -> Iterator[Changes[ColumnarFacts]]:
    """The transactions of an RDF Patch."""
    lines: dict[str, list[str]] = {"A": [], "D": []}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as patch:
        for line in patch:
            kind, _, rest = line.partition(" ")
            if kind in lines:
                lines[kind].append(rest)
            elif kind == "TC":
                yield Changes(_facts(lines["A"], engine), _facts(lines["D"], engine))
                lines = {"A": [], "D": []}


def _facts(lines: list[str], engine: ColumnarEngine) -> ColumnarFacts:
    text = "".join(lines)
    found = read_text(text, engine.dictionary, format="n-triples", on_error="skip")
    return engine.facts(found.tables(engine.dictionary))


BENCHMARK = Benchmark(
    "ontology",
    "rules written out for a schema: closures, axioms that come and go, histories",
    unit="universities",
    scales=(1, 10),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Histories: a commit, and everything anew in three ways",
            "case",
            ys=(
                ("mean_ms", "auto"),
                ("anew_ms", "anew, rules as written"),
                ("anew_out_ms", "anew, written out"),
                ("rebuilt_ms", "anew, from a file"),
            ),
            unit="milliseconds of processor time, mean",
        ),
        Plot(
            "An axiom of LUBM under OWL 2 RL",
            "case",
            ys=(("remove_ms", "remove it"), ("add_ms", "add it again")),
            unit="milliseconds",
        ),
    ),
    views=(
        View(
            "LUBM under OWL 2 RL: the closure, and an axiom that goes and comes",
            (
                "case",
                "explicit",
                "facts",
                "rules",
                Column("seconds", "closure: s"),
                Column("first_cpu_seconds", "the first: s"),
                Column("remove_ms", "remove: ms"),
                Column("add_ms", "add: ms"),
                "correct",
            ),
            needs="remove_ms",
        ),
        View(
            "Histories: milliseconds a commit, and everything anew",
            (
                "case",
                "commits",
                "facts",
                Column("median_ms", "median"),
                Column("mean_ms", "mean"),
                Column("anew_ms", "anew, as written"),
                Column("anew_times", "×"),
                Column("anew_out_ms", "anew, written out"),
                Column("anew_out_times", "×"),
                Column("rebuilt_ms", "anew, from a file"),
                Column("rebuilt_times", "×"),
                "correct",
            ),
            needs="commits",
        ),
    ),
)
