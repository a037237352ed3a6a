"""The same rules over the same triples by Corollary, egglog and Soufflé.

All engines evaluate the rules of a rule set that have positive atoms only, because filters on
literals differ between engines. Terms are numbers. The closures are compared triple by triple.
Corollary closes triples in memory, and its time includes indexing; `egglog` indexes them while
reading, which is timed separately; the time of Soufflé's interpreter includes reading the triples
and writing the closure. One thread each.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import least, peak_bytes, timed
from benchmarks.report import Options, Row
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.knowledge_base.results import triples_of
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom, Rule, Variable
from corollary.rdf.formats import read
from corollary.reasoning.adaptive import AdaptiveReasoner

RULE_SETS = ("rhodf", "rdfs", "owl-rl")
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
        peers: Mapping[str, tuple[str | None, Callable[..., Row]]] = {
            "egglog": (egglog_missing(), egglog),
            "souffle": (souffle_missing(), souffle),
        }
        for name, (absent, measure) in peers.items():
            row = start | {"engine": name}
            if absent is not None or "facts" not in ours:
                yield row | {"skipped": absent or "there is no closure to compare with"}
                continue
            found = isolated(
                measure, timeout=options.timeout, folder=str(work), repeat=options.repeat
            )
            if "seconds" in found:
                found["times"] = found["seconds"] / ours["seconds"]
            yield row | found
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
    work = Path(folder)
    _write(work / "triple.facts", _rows(explicit, dictionary))
    np.save(work / "closure.npy", closure := _rows(maintainer.facts, dictionary))
    (work / "rules.egg").write_text(egglog_text(program, dictionary), "utf-8")
    (work / "rules.dl").write_text(souffle_text(program, dictionary), "utf-8")
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
        useful = [rule for rule in rules if {atom.relation for atom in _body(rule)} <= derived]
        if len(useful) == len(rules):
            return Program.of(rules)
        rules = useful


def egglog_missing() -> str | None:
    """Why `egglog` cannot be measured, None if it can."""
    found = importlib.util.find_spec("egglog")
    return None if found else "egglog is not installed (pip install egglog)"


def egglog(folder: str, repeat: int) -> Row:
    """Seconds until `egglog` saturates the rules, and whether the closure is equal."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    module: Any = importlib.import_module("egglog.bindings")
    work, loads, times = Path(folder), [], []
    for _ in range(repeat):
        graph = module.EGraph(fact_directory=folder)
        run = partial(_run_egglog, graph)
        run((work / "rules.egg").read_text("utf-8"))
        loads.append(timed(partial(run, '(input triple "triple.facts")'))[1])
        times.append(timed(partial(run, "(run-schedule (saturate (run rules)))"))[1])
    out = work / "egglog.csv"
    run(f'(print-function triple {2**31} :file "{out}" :mode csv)')
    closure = _read(out, ",", ["relation", "s", "p", "o", "text"])
    time = least(times)
    return _compared(closure, work) | {
        "load_seconds": least(loads).seconds,
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "peak_bytes": peak_bytes(),
    }


def _run_egglog(graph: Any, text: str) -> None:
    graph.run_program(*graph.parse_program(text))


def egglog_text(program: Program, dictionary: Dictionary) -> str:
    """The relations and rules for `egglog`, constants as numbers.

    >>> print(egglog_text(Program.parse("[?x, a, ?d] :- [?x, ?p, ?d], top(?d) ."), Dictionary()))
    (relation triple (i64 i64 i64))
    (relation r_top (i64))
    (ruleset rules)
    (rule ((triple x p d) (r_top d)) ((triple x 0 d)) :ruleset rules :name "1")
    """

    def written(atom: Atom) -> str:
        return f"({_relation(atom.relation)} {' '.join(_terms(atom, dictionary))})"

    sorts = {name: " ".join(["i64"] * arity) for name, arity in _arities(program).items()}
    lines = [f"(relation {name} ({sort}))" for name, sort in sorts.items()]
    lines.append("(ruleset rules)")
    for number, rule in enumerate(program.rules, 1):
        body = " ".join(map(written, _body(rule)))
        lines.append(f'(rule ({body}) ({written(rule.head)}) :ruleset rules :name "{number}")')
    return "\n".join(lines)


def souffle_missing() -> str | None:
    """Why Soufflé cannot be measured, None if it can."""
    return None if shutil.which("souffle") else "souffle is not installed"


def souffle(folder: str, repeat: int) -> Row:
    """Seconds of Soufflé's interpreter from file to file, and whether the closure is equal."""
    binary = shutil.which("souffle")
    assert binary is not None, "it was found before"
    command = [binary, "-j1", "-F", folder, "-D", folder, f"{folder}/rules.dl"]

    def run() -> None:
        subprocess.run(command, capture_output=True, check=True)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    time = least(timed(run)[1] for _ in range(repeat))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    closure = _read(Path(folder) / "triple.csv", "\t", ["s", "p", "o"])
    return _compared(closure, Path(folder)) | {
        "seconds": time.seconds,
        "cpu_seconds": spent / repeat,
    }


def souffle_text(program: Program, dictionary: Dictionary) -> str:
    """The program for Soufflé, constants as numbers.

    >>> print(souffle_text(Program.parse("[?x, a, ?d] :- [?x, ?p, ?d] ."), Dictionary()))
    .decl triple(a0: unsigned, a1: unsigned, a2: unsigned)
    .input triple
    .output triple
    triple(x, 0, d) :- triple(x, _, d).
    """

    def written(atom: Atom, once: Iterable[Variable] = ()) -> str:
        names = {variable.name for variable in once}
        terms = ("_" if term in names else term for term in _terms(atom, dictionary))
        return f"{_relation(atom.relation)}({', '.join(terms)})"

    lines = []
    for name, arity in _arities(program).items():
        columns = ", ".join(f"a{number}: unsigned" for number in range(arity))
        lines.append(f".decl {name}({columns})")
    lines += [".input triple", ".output triple"]
    for rule in program.rules:
        used = [v for atom in (rule.head, *_body(rule)) for v in atom.variables()]
        once = [variable for variable in used if used.count(variable) == 1]
        body = ", ".join(written(atom, once) for atom in _body(rule))
        lines.append(f"{written(rule.head)} :- {body}.")
    return "\n".join(lines)


def _body(rule: Rule) -> list[Atom]:
    return [part for part in rule.body if isinstance(part, Atom)]


def _arities(program: Program) -> dict[str, int]:
    """The number of columns of each relation; that of triples comes first."""
    atoms = [atom for rule in program.rules for atom in (rule.head, *_body(rule))]
    return {"triple": 3} | {_relation(atom.relation): len(atom.terms) for atom in atoms}


def _relation(name: str) -> str:
    return "triple" if name == TRIPLE else f"r_{name}"


def _terms(atom: Atom, dictionary: Dictionary) -> list[str]:
    return [
        term.name if isinstance(term, Variable) else str(dictionary.id(term)) for term in atom.terms
    ]


def _rows(facts: ColumnarFacts, dictionary: Dictionary) -> Ids:
    """The distinct triples, sorted."""
    triples = triples_of(facts, dictionary)
    return np.unique(np.stack(triples.columns, axis=1), axis=0)


def _write(path: Path, triples: Ids) -> None:
    table = pa.table({str(place): triples[:, place] for place in range(3)})
    csv.write_csv(table, path, csv.WriteOptions(include_header=False, delimiter="\t"))


def _read(path: Path, delimiter: str, names: list[str]) -> Ids:
    """The columns s, p and o of a file: distinct rows, sorted."""
    table = csv.read_csv(
        path,
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(delimiter=delimiter),
        csv.ConvertOptions(include_columns=["s", "p", "o"]),
    )
    columns = [table[name].to_numpy().astype(np.uint32) for name in ("s", "p", "o")]
    return np.unique(np.stack(columns, axis=1), axis=0)


def _compared(closure: Ids, folder: Path) -> Row:
    """The size of a peer's closure, and whether it equals Corollary's."""
    same = np.array_equal(closure, np.load(folder / "closure.npy"))
    return {"facts": len(closure), "correct": same}
