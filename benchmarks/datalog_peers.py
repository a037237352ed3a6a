"""The same rules over the same triples by Corollary and other rule systems, in memory.

All engines evaluate the rules of a rule set that have positive atoms only, because filters on
literals differ between engines. Terms are numbers. The closures are compared triple by triple.
Corollary closes triples in memory, and its time includes indexing; `egglog` and clingo index them
while reading, which is timed separately; Nemo reads while it reasons, and the time of Soufflé's
interpreter includes reading the triples and writing the closure. One thread each, but Nemo's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import corollary as co
from benchmarks.equal_rules import compare
from benchmarks.equal_rules.work import Work, body
from benchmarks.isolate import isolated
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.report import Options, Row
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.knowledge_base.results import triples_of
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom
from corollary.rdf.formats import read
from corollary.reasoning.adaptive import AdaptiveReasoner

RULE_SETS = ("rhodf", "rdfs", "owl-rl")
PEERS = ("egglog", "clingo", "nemo", "souffle")
_FIXED = "not comparable: its rules are fixed (see the closure from files)"


def rows(case: str, path: Path, folder: Path, options: Options) -> Iterator[Row]:
    """A row for each rule set and engine."""
    for rules in RULE_SETS:
        work = folder / f"{rules}.datalog"
        work.mkdir()
        ours = isolated(
            corollary,
            timeout=options.timeout,
            path=str(path),
            rules=rules,
            folder=str(work),
            repeat=options.repeat,
        )
        described = {key: ours[key] for key in ("rules", "left_out", "explicit") if key in ours}
        start: Row = {"part": "rules", "case": f"{rules}, {case}"} | described
        yield start | {"engine": "corollary"} | ours
        for name, found in compare.peers(work, options, PEERS) if "facts" in ours else ():
            if "seconds" in found:
                found["seconds"] = found.get("close_seconds", found["seconds"])
                found["times"] = found["seconds"] / ours["seconds"]
            yield start | {"engine": name} | found
        yield start | {"engine": "reasonable", "skipped": _FIXED}


def corollary(path: str, rules: str, folder: str, repeat: int) -> Row:
    """Close the triples of a file; write them, the rules and the closure for the peers."""
    engine = ColumnarEngine(Dictionary())
    dictionary = engine.dictionary
    whole = co.rules(rules)
    program = positive(whole)
    explicit = engine.facts(read(path, dictionary).tables(dictionary)).union(
        engine.facts(encode(whole.facts, dictionary))
    )

    def closed() -> AdaptiveReasoner[ColumnarFacts]:
        return AdaptiveReasoner(program, explicit, engine)

    maintainer = closed()  # loads compiled code
    time = least(timed(closed)[1] for _ in range(repeat))
    work = Work.of(program, dictionary, "triple", "triple")
    work.write(Path(folder), _rows(explicit, dictionary))
    np.save(Path(folder) / "closure.npy", closure := _rows(maintainer.facts, dictionary))
    return {
        "rules": len(program.rules),
        "left_out": len(whole.rules) - len(program.rules),
        "explicit": len(explicit),
        "facts": len(closure),
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "peak_bytes": peak_bytes(),
    }


def positive(program: Program) -> Program:
    """The rules with positive atoms only whose relations may have facts.

    >>> [rule.name for rule in positive(co.rules("rdfs")).rules][:3]
    ['rdfD2', 'rdfs2', 'rdfs3']
    """
    rules = [
        rule
        for rule in program.rules
        if not rule.is_constraint and all(isinstance(part, Atom) for part in rule.body)
    ]
    while True:
        derived = {TRIPLE, *(rule.head.relation for rule in rules)}
        useful = [rule for rule in rules if {atom.relation for atom in body(rule)} <= derived]
        if len(useful) == len(rules):
            return Program.of(rules)
        rules = useful


def _rows(facts: ColumnarFacts, dictionary: Dictionary) -> Ids:
    """The distinct triples, sorted."""
    triples = triples_of(facts, dictionary)
    return np.unique(np.stack(triples.columns, axis=1), axis=0)
