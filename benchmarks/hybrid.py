"""Hybrid reasoning: LUBM's patterns of the paper, answered over a pre-materialization.

Paper: Urbani, Piro, van Harmelen, Bal: Hybrid Reasoning on OWL RL, Semantic Web 5, 2014, Tables 3
to 7. `--scale` is the number of universities; the paper has 80,000 on disk. As in the paper, rules
with equality, datatypes or an empty body are omitted, and so are those of RDFS and pD* that
read all triples. Columns named `paper_…` are figures of the paper. Cold is the first query of its
form, warm the mean of thirty more; both return the ids of the answers as arrays.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import corollary as co
from benchmarks.isolate import isolated
from benchmarks.measure import least, timed
from benchmarks.plots import Plot
from benchmarks.report import Benchmark, Options, Row
from benchmarks.views import Column, View
from corollary.cli.main import main
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.tables import decode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.parser import parse_atom
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.rdf.formats import read
from corollary.reasoning.hybrid import SpecializedHybridReasoner, schema_patterns
from corollary.reasoning.specialization import SpecializedReasoner

_UB = {"ub": "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"}
_DEPARTMENT = "http://www.Department0.University0.edu"
_STUDENT = f"<{_DEPARTMENT}/GraduateStudent{{}}>"
# Of the rule sets as the paper has them.
_LEFT_OUT = ("eq-", "dt-", "rdf-axioms", "rdfD", "rdfs4", "rdfp5", "rdfp6", "rdfp7", "rdfp11")
RULE_SETS = {"RDFS": "rdfs", "pD*": "owl-horst", "OWL RL": "owl-rl"}
WARM = 30

PATTERNS = {
    "1": f"[?x, ?y, <{_DEPARTMENT}/GraduateCourse0>]",
    "2": "[?x, ub:subOrganizationOf, <http://www.University0.edu>]",
    "3": "",  # a graduate student with a degree, found in the data
    "4": f"[?x, ?y, <{_DEPARTMENT}/AssistantProfessor0>]",
    "5": f"[?x, ub:memberOf, <{_DEPARTMENT}>]",
    "6": "[?x, a, ub:Department]",
    # Not in the paper: as many answers as its pattern 6, 1.6 million, at this scale.
    "persons": "[?x, a, ub:Person]",
}

# Table 5: cold ms, warm ms, derived, output, look-ups; Table 6: leaves without, with.
_TABLE_5 = {
    "1": (60.43, 6.39, 5, 5, 43),
    "2": (1099.28, 129.31, 463, 239, 12),
    "3": (49.18, 6.0, 3, 1, 18),
    "4": (73.06, 11.17, 37, 29, 86),
    "5": (118.71, 13.97, 1480, 719, 18),
    "6": (4026.27, 2590.27, 1_599_987, 1_599_987, 2),
}
_TABLE_6 = {"1": (16, 4), "2": (2, 1), "3": (12, 3), "5": (26, 7)}
# Table 7, without and with the answers inserted.
_TABLE_7 = {
    "1": {
        "look-up": (0.81, 0.83),
        "RDFS": (1.88, 1.79),
        "pD*": (5.4, 6.13),
        "OWL RL": (6.39, 5.89),
    },
    "2": {
        "look-up": (0.82, 1.51),
        "RDFS": (1.56, 2.83),
        "pD*": (128.78, 131.05),
        "OWL RL": (129.31, 138.53),
    },
    "3": {"look-up": (0.82, 0.83), "RDFS": (3.55, 2.72), "pD*": (5.5, 4.51), "OWL RL": (6.0, 4.83)},
    "4": {
        "look-up": (0.88, 0.94),
        "RDFS": (2.01, 2.32),
        "pD*": (10.06, 9.48),
        "OWL RL": (11.17, 10.63),
    },
    "5": {
        "look-up": (1.5, 1.61),
        "RDFS": (7.01, 4.95),
        "pD*": (13.58, 10.52),
        "OWL RL": (13.97, 10.8),
    },
    "6": {
        "look-up": (405.42, 418.38),
        "RDFS": (2605.68, 2630.08),
        "pD*": (2608.2, 2619.17),
        "OWL RL": (2590.27, 2618.66),
    },
}


def run(options: Options) -> Iterator[Row]:
    """The rules of each column; Tables 3, 5 and 6, and 7 for each size."""
    for title, name in RULE_SETS.items():
        yield {"case": "rules", "rule_set": title} | _omitted(name)
    for scale in options.scales:
        done = isolated(measure, timeout=options.timeout, scale=scale, repeat=options.repeat)
        if "rows" not in done:
            yield {"case": "hybrid", "scale": scale} | done
        for row in done.get("rows", ()):
            yield {"scale": scale} | row


def measure(scale: int, repeat: int) -> Row:
    """All rows of one size."""
    engine = ColumnarEngine(Dictionary())
    with tempfile.TemporaryDirectory() as folder:
        main(["generate", "lubm", "--scale", str(scale), "--out", folder])
        triples = read(f"{folder}/*.nt", engine.dictionary)
    explicit = engine.facts(triples.tables(engine.dictionary))
    del triples
    rows = list(closures(explicit, engine, repeat))
    kept = _hybrid("owl-rl", explicit, engine)
    full = SpecializedReasoner(_rules("owl-rl"), explicit, engine).facts
    queries = _queries(kept, engine)
    rows += [_pattern(name, query, kept, full, engine) for name, query in queries.items()]
    del kept
    rows += list(overhead(queries, explicit, full, engine))
    return {"rows": rows}


def closures(explicit: ColumnarFacts, engine: ColumnarEngine, repeat: int) -> Iterator[Row]:
    """Table 3: the pre-materialization, and the full closure."""
    kept = _hybrid("owl-rl", explicit, engine)  # compiles loops, and plans
    time = least(timed(lambda: _hybrid("owl-rl", explicit, engine))[1] for _ in range(repeat))
    full = SpecializedReasoner(_rules("owl-rl"), explicit, engine)
    whole = timed(lambda: SpecializedReasoner(_rules("owl-rl"), explicit, engine))[1]
    yield {
        "case": "pre-materialization",
        "explicit": len(explicit),
        "derived": len(kept.facts) - len(explicit),
        "seconds": time.seconds,
        "cpu_seconds": time.cpu_seconds,
        "full_derived": len(full.facts) - len(explicit),
        "full_seconds": whole.seconds,
        "full_cpu_seconds": whole.cpu_seconds,
        "ratio": whole.cpu_seconds / time.cpu_seconds,
        "paper_seconds": 1.0,
        "paper_derived": 390,
        "correct": not len(kept.facts.difference(full.facts)),
    }


def _pattern(
    name: str,
    query: Atom,
    kept: SpecializedHybridReasoner[Any],
    full: Facts,
    engine: ColumnarEngine,
) -> Row:
    """Tables 5 and 6 for one pattern."""
    answer, cold = timed(lambda: _asked(kept, query))
    warm = [timed(lambda: _asked(kept, query))[1] for _ in range(WARM)]
    tree = kept.query_plan(query) if name in _TABLE_5 else None
    expected = _look_up(kept, query, full)
    mean = sum(time.seconds for time in warm) / WARM
    paper = _TABLE_5.get(name, (None,) * 5)
    leaves = _TABLE_6.get(name, (None, None))
    return {
        "case": "pattern",
        "pattern": name,
        "cold_ms": cold.seconds * 1e3,
        "warm_ms": mean * 1e3,
        "least_ms": least(warm).seconds * 1e3,
        "warm_cpu_ms": sum(time.cpu_seconds for time in warm) / WARM * 1e3,
        "derived": answer.derived,
        "answers": len(answer.facts),
        "answers_per_second": len(answer.facts) / mean,
        "look_ups": answer.look_ups,
        "leaves": tree and tree.leaves,
        "leaves_without": tree and tree.leaves_without,
        "reduction": tree and tree.leaves_without / tree.leaves,
        "paper_cold_ms": paper[0],
        "paper_warm_ms": paper[1],
        "paper_derived": paper[2],
        "paper_answers": paper[3],
        "paper_look_ups": paper[4],
        "paper_leaves": leaves[1],
        "paper_leaves_without": leaves[0],
        "correct": len(expected) == len(answer.facts) == len(answer.facts.intersection(expected)),
    }


def overhead(
    queries: dict[str, Atom], explicit: ColumnarFacts, full: ColumnarFacts, engine: ColumnarEngine
) -> Iterator[Row]:
    """Table 7: warm milliseconds with growing rule sets, and with the answers inserted."""
    bare = SpecializedHybridReasoner(
        Program.of(co.rules("rhodf").rules[:1]), engine.facts({}), engine
    )
    found: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in queries}
    inserted = {name: explicit.union(_look_up(bare, q, full)) for name, q in queries.items()}

    def one(ask: Callable[[], object]) -> float:
        ask()
        return sum(timed(ask)[1].seconds for _ in range(WARM)) / WARM * 1e3

    for name, query in queries.items():
        found[name]["look-up"] = (
            one(lambda query=query: _rows(_look_up(bare, query, explicit))),  # type: ignore[misc]
            one(lambda query=query, name=name: _rows(_look_up(bare, query, inserted[name]))),  # type: ignore[misc]
        )
    for title, rules in RULE_SETS.items():
        kept = _hybrid(rules, explicit, engine)
        for name, query in queries.items():
            more = _hybrid(rules, inserted[name], engine)
            found[name][title] = (
                one(partial(_asked, kept, query)),
                one(partial(_asked, more, query)),
            )
    for name, times in found.items():
        row: Row = {"case": "overhead", "pattern": name}
        for title, (plain, with_answers) in times.items():
            row[f"{title} ms"] = plain
            row[f"{title}, inserted ms"] = with_answers
        for title, (plain, with_answers) in _TABLE_7.get(name, {}).items():
            row[f"paper_{title} ms"] = plain
            row[f"paper_{title}, inserted ms"] = with_answers
        yield row


def _rules(name: str) -> Program:
    """A rule set without the rules that the paper omits."""
    rules = co.rules(name).rules
    return Program.of(rule for rule in rules if not (rule.name or "").startswith(_LEFT_OUT))


def _omitted(name: str) -> Row:
    """How many rules are evaluated, and the names of those that are not."""
    evaluated = {*_rules(name).rules}
    names = dict.fromkeys(rule.name for rule in co.rules(name).rules if rule not in evaluated)
    return {"rules": len(evaluated), "left_out": ", ".join(filter(None, names))}


def _hybrid(
    rules: str, explicit: ColumnarFacts, engine: ColumnarEngine
) -> SpecializedHybridReasoner[ColumnarFacts]:
    return SpecializedHybridReasoner(_rules(rules), explicit, engine, patterns=schema_patterns())


def _asked(kept: SpecializedHybridReasoner[Any], query: Atom) -> Any:
    answer = kept.answer(query)
    _rows(answer.facts)
    return answer


def _rows(facts: Facts) -> list[Any]:
    return [facts.rows(predicate) for predicate in facts.predicates()]


def _look_up(kept: SpecializedHybridReasoner[Any], query: Atom, facts: Any) -> Any:
    return kept.hybrid.look_up(query, facts)


def _queries(kept: SpecializedHybridReasoner[Any], engine: ColumnarEngine) -> dict[str, Atom]:
    """The patterns; pattern 3 uses an existing student and their degree."""
    found = {name: parse_atom(text, _UB, name) for name, text in PATTERNS.items() if text}
    for number in range(124, -1, -1):
        query = parse_atom(f"[{_STUDENT.format(number)}, ub:degreeFrom, ?y]", _UB, "3")
        for atom in decode(kept.answer(query).facts, engine.dictionary):
            found["3"] = atom
            return dict(sorted(found.items()))
    raise AssertionError("every graduate student has a degree")


BENCHMARK = Benchmark(
    "hybrid",
    "LUBM patterns by backward chaining over a pre-materialization: Tables 3 to 7 of the paper",
    unit="universities",
    scales=(10, 50),
    small=(1,),
    run=run,
    plots=(
        Plot(
            "Patterns, warm: Corollary, and the paper at 80,000 universities",
            "scale + pattern",
            x_unit="universities, pattern",
            where=(("case", "pattern"),),
            ys=(("warm_ms", "Corollary"), ("paper_warm_ms", "paper")),
            unit="milliseconds",
        ),
        Plot(
            "Full closure, compared with the pre-materialization",
            "scale",
            x_unit="universities",
            where=(("case", "pre-materialization"),),
            ys=(("seconds", "pre-materialization"), ("full_seconds", "full closure")),
            unit="seconds",
        ),
    ),
    views=(
        View(
            "Table 3: the pre-materialization",
            (
                Column("scale", "universities"),
                "explicit",
                "derived",
                Column("paper_derived", "(paper)"),
                "seconds",
                Column("paper_seconds", "(paper)"),
                Column("full_derived", "full closure: derived"),
                Column("full_seconds", "seconds"),
                "correct",
            ),
            where=(("case", "pre-materialization"),),
        ),
        View(
            "Table 5: patterns, milliseconds",
            (
                Column("scale", "universities"),
                "pattern",
                Column("cold_ms", "cold"),
                Column("paper_cold_ms", "(paper)"),
                Column("warm_ms", "warm"),
                Column("paper_warm_ms", "(paper)"),
                "answers",
                Column("paper_answers", "(paper)"),
                "derived",
                Column("paper_derived", "(paper)"),
                Column("look_ups", "lookups"),
                Column("paper_look_ups", "(paper)"),
                "correct",
            ),
            where=(("case", "pattern"),),
        ),
        View(
            "Table 6: leaves of the proof tree",
            (
                Column("scale", "universities"),
                "pattern",
                Column("leaves_without", "without pre-materialization"),
                Column("paper_leaves_without", "(paper)"),
                Column("leaves", "with"),
                Column("paper_leaves", "(paper)"),
            ),
            where=(("case", "pattern"), ("pattern", ("1", "2", "3", "4", "5", "6"))),
        ),
        View(
            "The rules of each column, and those that it leaves out",
            (
                Column("rule_set", "column", new=True),
                Column("rules", "rules evaluated", new=True),
                Column("left_out", "left out", new=True),
            ),
            where=(("case", "rules"),),
        ),
        *(
            View(
                f"Table 7: milliseconds with growing rule sets{more}",
                (
                    Column("scale", "universities"),
                    "pattern",
                    *(
                        column
                        for name in ("look-up", *RULE_SETS)
                        for column in (
                            Column(f"{name}{more} ms", name),
                            Column(f"paper_{name}{more} ms", "(paper)"),
                        )
                    ),
                ),
                where=(("case", "overhead"),),
            )
            for more in ("", ", inserted")
        ),
    ),
    paper="two quad-core Xeon E5620, 24 GB, hard disks; LUBM(80,000), 10 billion triples",
)
