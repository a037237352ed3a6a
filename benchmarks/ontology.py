"""Rules written out for a schema: a closure, an axiom that goes and comes, histories of ontologies.

`--scale` is the number of LUBM's universities. Histories are real ones, each commit a transaction;
rematerialization is measured at every twentieth, and taken to be the same in between.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import least, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from corollary.algorithms.maintain import Maintainer
from corollary.cli.main import main
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.knowledge_base.ontology import Specialized
from corollary.lang.program import Program
from corollary.rdf.formats import read, read_text

HISTORIES = ("plant-ontology", "sequence-ontology", "schemaorg-ttl")
_UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
AXIOM = f"[<{_UB}headOf>, rdfs:subPropertyOf, <{_UB}worksFor>] ."
_EVERY = 20


def run(options: Options) -> Iterator[Row]:
    """LUBM of each size under OWL 2 RL, then the histories under ρdf."""
    for scale in options.scales:
        case: Row = {"case": f"owl-rl, LUBM({scale})"}
        yield case | isolated(axiom, timeout=options.timeout, scale=scale, repeat=options.repeat)
    for name in HISTORIES:
        case = {"case": f"rhodf, {name}"}
        if not (options.data / "updates" / f"{name}.rdfp.gz").exists():
            yield case | {"skipped": f"no {name}.rdfp.gz in {options.data / 'updates'}"}
            continue
        folder = str(options.data / "updates")
        yield case | isolated(history, timeout=options.timeout, name=name, folder=folder)


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
    rules = co.rules("rhodf")
    kept = Specialized(rules, engine.facts({}), engine)
    checks = json.loads((Path(folder) / f"{name}.expected.json").read_text("utf-8"))
    expected = {check["tx"]: check["rhodf"]["closure"] for check in checks}
    spent, anew, correct = [], [], True
    for number, changes in enumerate(transactions(Path(folder) / f"{name}.rdfp.gz", engine), 1):
        spent.append(timed(lambda changes=changes: kept.update(changes))[1].cpu_seconds)  # type: ignore[misc]
        if number in expected:
            correct &= len(kept.facts) == expected[number]
        if number % _EVERY == 0:
            made, time = timed(lambda: Maintainer(rules, kept.explicit, engine))
            anew.append(time.cpu_seconds)
            correct &= len(made.facts) == len(kept.facts)
    total = sum(anew) / len(anew) * (len(spent) - 1)
    return {
        "facts": len(kept.facts),
        "commits": len(spent),
        "median_ms": median(spent[1:]) * 1e3,
        "total_cpu_seconds": sum(spent[1:]),
        "anew_cpu_seconds": total,
        "speedup": total / sum(spent[1:]),
        "correct": correct,
    }


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
    plots=(Plot("Histories: all commits", "case", "total_cpu_seconds"),),
)
