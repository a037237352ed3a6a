"""`corollary run`: facts in, materialization out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from corollary.algorithms import seminaive
from corollary.algorithms.constraints import Inconsistency, Violation, inconsistencies
from corollary.algorithms.maintain import Maintainer
from corollary.cli.arguments import add_resources, positive
from corollary.cli.progress import Clock, Limits, Progress
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.statistics import Statistics
from corollary.errors import InvalidInput
from corollary.files.facts import FORMATS, Column, Table, read_facts, write_facts
from corollary.knowledge_base.engines import ENGINES, encoded, make_engine
from corollary.lang import reference
from corollary.lang.parser import parse_atom
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Rule, is_auxiliary

_SHOWN = 3  # ways to contradict a constraint that are shown


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="materialize a Datalog program",
        description="Derive everything that follows from a program and its facts.",
    )
    parser.add_argument(
        "program", metavar="PROGRAM.dl", help="rules and facts in the rule language"
    )
    parser.add_argument(
        "--facts",
        metavar="DIR",
        help="folder with <relation>.facts (tab-separated), .csv, .parquet or .arrow files, and"
        " *.nt for triples; text files also with .gz or .zst",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the materialization, one file for each relation; without it, facts are"
        " printed",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="facts",
        help="of the output files: facts (tab-separated), csv, parquet, arrow (default: facts)",
    )
    parser.add_argument(
        "--engine",
        choices=(*ENGINES, "reference"),
        default="columnar",
        help="what evaluates the rules: columnar (in process), spark, or reference (slow and"
        " simple) (default: columnar)",
    )
    parser.add_argument(
        "--explain",
        metavar="FACT",
        help="print a smallest proof of a fact such as 'path(1, 3)', and nothing else",
    )
    parser.add_argument(
        "--explain-format",
        choices=("tree", "json", "dot"),
        default="tree",
        help="of the proof: a tree, JSON, or a graph for Graphviz (default: tree)",
    )
    add_resources(parser)
    parser.add_argument(
        "--no-modules",
        action="store_true",
        help="derive transitive relations by their rules, not by algorithms of their own",
    )
    parser.add_argument(
        "--limit-facts", type=positive, metavar="N", help="stop when there are more facts"
    )
    parser.add_argument(
        "--limit-rounds", type=positive, metavar="N", help="stop after this many rounds"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress and no statistics")
    parser.add_argument("--json", action="store_true", help="print statistics as JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Materialize, write the facts, report."""
    limits = Limits(options.limit_facts, options.limit_seconds, options.limit_rounds)
    progress = Progress(limits, quiet=options.quiet)
    with progress.watched():
        clock = Clock()
        program = Program.load(options.program)
        tables = read_facts(options.facts, program) if options.facts else []
        clock.lap("read")
        if options.explain is not None:
            _explain(program, tables, options, progress)
            return
        if options.engine == "reference":
            explicit, results, statistics, found = _run_reference(program, tables, progress)
        else:
            explicit, results, statistics, found = _run_engine(
                program, tables, options, clock, progress
            )
        clock.lap("check" if "materialize" in clock.seconds else "materialize")
    results = [table for table in results if not is_auxiliary(table.relation)]
    if options.out:
        write_facts(options.out, program, results, format_=options.format)
    elif not options.json:
        print_facts(program, results)
    clock.lap("write")
    counts = relation_counts(program, results)
    facts = sum(counts.values())
    report = {
        "version": None,
        "explicit": explicit,
        "facts": facts,
        "inserted": facts,
        "deleted": 0,
        "rounds": statistics.rounds,
        "derivations": statistics.derivations,
        "seconds": {phase: round(spent, 6) for phase, spent in clock.seconds.items()},
        "algorithm": statistics.algorithm,
        "reason": statistics.reason,
        "engine": options.engine,
        "complete": True,
        "relations": counts,
    }
    if program.constraints:
        printer = Printer(program.prefixes)
        report["inconsistencies"] = [one.describe(printer) for one in found]
    if options.json:
        print(json.dumps(report))
    elif not options.quiet:
        print_statistics(report)
    print_inconsistencies(report.get("inconsistencies", []))


Outcome = tuple[int, list[Table], Statistics, list[Inconsistency]]


def _run_reference(program: Program, tables: list[Table], progress: Progress) -> Outcome:
    explicit = {*program.facts, *(fact for table in tables for fact in table.atoms())}
    facts = reference.materialize(program, explicit)
    by_relation: dict[str, list[Atom]] = {}
    for fact in facts:
        by_relation.setdefault(fact.relation, []).append(fact)
    results = [Table.of(relation, found) for relation, found in by_relation.items()]
    ways: dict[Rule, list[Violation]] = {}
    for rule, substitution in reference.violations(program, facts):
        ways.setdefault(rule, []).append(Violation(rule, substitution))
    found = [Inconsistency(rule, len(all_), tuple(all_[:_SHOWN])) for rule, all_ in ways.items()]
    statistics = Statistics("naive", "the reference engine evaluates naively")
    return len(explicit), results, statistics, found


def _run_engine(
    program: Program,
    tables: list[Table],
    options: argparse.Namespace,
    clock: Clock,
    progress: Progress,
) -> Outcome:
    dictionary = Dictionary()
    engine = make_engine(
        options.engine, dictionary, threads=options.threads, limit_memory=options.limit_memory
    )
    explicit = engine.facts(encoded(program, tables, dictionary))
    clock.lap("encode")
    done = seminaive.materialize(
        program, explicit, engine, modules=not options.no_modules, on_progress=progress
    )
    results = list(result_tables(done.facts, dictionary))
    found = []
    if program.constraints:
        clock.lap("materialize")
        found = list(inconsistencies(program, done.facts, engine, examples=_SHOWN))
    return len(explicit), results, done.statistics, found


def _explain(
    program: Program, tables: list[Table], options: argparse.Namespace, progress: Progress
) -> None:
    fact = parse_atom(options.explain, program.prefixes, "--explain")
    if options.engine == "reference":
        raise InvalidInput("E341", "the reference engine gives no proofs", "use --engine columnar")
    dictionary = Dictionary()
    engine = make_engine(
        options.engine, dictionary, threads=options.threads, limit_memory=options.limit_memory
    )
    maintainer = Maintainer(
        Program.of(program.rules, prefixes=program.prefixes),
        engine.facts(encoded(program, tables, dictionary)),
        engine,
        modules=not options.no_modules,
        on_progress=progress,
    )
    proof = maintainer.explain(fact)
    match "json" if options.json else options.explain_format:
        case "json":
            print(json.dumps(proof.to_json(), ensure_ascii=False))
        case "dot":
            print(proof.to_dot())
        case _:
            print(proof)


def result_tables(facts: Facts, dictionary: Dictionary) -> Iterator[Table]:
    """The facts of an engine as tables of terms."""
    for predicate in facts.predicates():
        rows = facts.rows(predicate)
        columns = []
        for number in range(rows.shape[1]):
            ids, indices = np.unique(rows[:, number], return_inverse=True)
            columns.append(Column(dictionary.terms(ids.tolist()), indices))
        if not columns:
            yield Table.of(predicate.relation, [Atom(predicate.relation, ())])
            continue
        if predicate.relation == TRIPLE:
            zeros = np.zeros(len(rows), np.int64)
            assert predicate.property is not None, "triples are kept by property"
            columns.insert(1, Column([predicate.property], zeros))
            if predicate.member_of is not None:
                columns[1:] = [Column([TYPE], zeros), Column([predicate.member_of], zeros)]
        yield Table(predicate.relation, columns)


def print_facts(program: Program, tables: list[Table]) -> None:
    """Print facts as the rule language writes them, in the order of their text."""
    printer = Printer(program.prefixes)
    lines = sorted(f"{printer.atom(fact)} .\n" for table in tables for fact in table.atoms())
    sys.stdout.writelines(lines)
    sys.stdout.flush()


def relation_counts(program: Program, tables: list[Table]) -> dict[str, int]:
    """The number of facts of each relation; triples under `triples`."""
    counts = dict.fromkeys(sorted(r for r in program.arities if not is_auxiliary(r)), 0)
    if program.has_triples:
        counts["triples"] = 0
    for table in tables:
        name = "triples" if table.relation == TRIPLE else table.relation
        counts[name] += len(table.columns[0].indices)
    return counts


def print_statistics(report: dict[str, Any]) -> None:
    """A short table on stderr."""
    seconds = report["seconds"]
    rows = [
        ("facts", f"{report['facts']:,}, {report['facts'] - report['explicit']:,} derived"),
        ("engine", f"{report['engine']}, {report['algorithm']}"),
        ("rounds", str(report["rounds"])),
        *((f"instances, {phase}", f"{n:,}") for phase, n in report["derivations"].items()),
        ("seconds", ", ".join(f"{phase} {spent:.2f}" for phase, spent in seconds.items())),
    ]
    for name, value in rows:
        print(f"{name:<24}{value}", file=sys.stderr)


def print_inconsistencies(found: list[dict[str, Any]]) -> None:
    """The constraints that are contradicted, each with some of the ways, on stderr."""
    for one in found:
        name = one["rule"] or one["constraint"]
        ways = "way" if one["count"] == 1 else "ways"
        print(f"inconsistent: {name} is contradicted in {one['count']:,} {ways}", file=sys.stderr)
        for facts in one["examples"]:
            print(f"  {', '.join(facts)}", file=sys.stderr)
        if one["count"] > len(one["examples"]):
            print("  …", file=sys.stderr)
