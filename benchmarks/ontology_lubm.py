"""LUBM under OWL 2 RL: the closure by specialized rules, and changes of one axiom."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import least, timed
from benchmarks.ontology_histories import are_equal
from benchmarks.report import Options, Row
from corollary.cli.main import main
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.program import Program
from corollary.rdf.formats import read
from corollary.reasoning.specialization import SpecializedReasoner

UNIVERSITIES = {1: 0, 10: 10_000}  # and the scale from which they are measured
_UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
AXIOM = f"[<{_UB}headOf>, rdfs:subPropertyOf, <{_UB}worksFor>] ."


def rows(options: Options) -> Iterator[Row]:
    """LUBM(1), and LUBM(10) for large scales."""
    for universities, scale in UNIVERSITIES.items():
        if max(options.scales, default=0) >= scale:
            case: Row = {"part": "lubm", "case": f"owl-rl, LUBM({universities})"}
            yield case | isolated(
                axiom, timeout=options.timeout, universities=universities, repeat=options.repeat
            )


def loaded(universities: int) -> tuple[Program, ColumnarFacts, ColumnarEngine]:
    """The OWL 2 RL rules, generated data with all axioms, and their engine."""
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    program = co.rules("owl-rl")
    with tempfile.TemporaryDirectory() as folder:
        main(["generate", "lubm", "--scale", str(universities), "--out", folder])
        triples = read(f"{folder}/*.nt", dictionary)
    axioms = engine.facts(encode(program.facts, dictionary))
    explicit = engine.facts(triples.tables(dictionary)).union(axioms)
    return Program.of(program.rules), explicit, engine


def axiom(universities: int, repeat: int) -> Row:
    """Minimum times of a closure, and of removing and adding an axiom."""
    rules, explicit, engine = loaded(universities)
    # The first run also evaluates the filters for each literal.
    maintainer, first = timed(lambda: SpecializedReasoner(rules, explicit, engine))
    time = least(
        timed(lambda: SpecializedReasoner(rules, explicit, engine))[1] for _ in range(repeat)
    )
    one = engine.facts(encode(Program.parse(AXIOM).facts, engine.dictionary))
    nothing, facts = engine.facts({}), maintainer.facts
    removed, added = [], []
    for _ in range(max(5, repeat)):
        removed.append(timed(lambda: maintainer.update(Changes(nothing, one)))[1])
        added.append(timed(lambda: maintainer.update(Changes(one, nothing)))[1])
    return {
        "explicit": len(explicit),
        "facts": len(facts),
        "rules": len(maintainer.active_program.rules),
        "first_cpu_seconds": first.cpu_seconds,
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "remove_ms": least(removed).cpu_seconds * 1e3,
        "add_ms": least(added).cpu_seconds * 1e3,
        "correct": are_equal(facts, maintainer.facts),
    }
