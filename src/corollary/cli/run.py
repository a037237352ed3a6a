"""`corollary run`: facts in, materialization out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from corollary.algorithms import seminaive
from corollary.algorithms.constraints import Inconsistency, Violation, inconsistencies
from corollary.algorithms.maintain import Maintainer
from corollary.cli.arguments import (
    add_resources,
    add_rules,
    describe_skipped,
    positive,
    print_rows,
    print_skipped,
)
from corollary.cli.progress import Clock, Limits, Progress
from corollary.cli.warned import describe_warnings
from corollary.core.compile import TRIPLES
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.core.notices import Notices, gathering
from corollary.core.statistics import Statistics
from corollary.core.tables import Tables, decode, encode, joined
from corollary.errors import InvalidInput
from corollary.files.facts import FORMATS, Column, Table, replace_file, write_facts
from corollary.knowledge_base.adaptive import AdaptiveMaintainer
from corollary.knowledge_base.base import EQUALITY
from corollary.knowledge_base.engines import ENGINES, encoded, make_engine
from corollary.knowledge_base.equality import EqualityMaintainer
from corollary.knowledge_base.folders import read_folder
from corollary.knowledge_base.results import results_of, triples_of
from corollary.knowledge_base.rules import read_rules
from corollary.knowledge_base.unread_axioms import note_axioms
from corollary.lang import reference
from corollary.lang.parser import parse_atom
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, TYPE, Atom, Rule, is_auxiliary
from corollary.rdf import formats
from corollary.rdf.specialize import is_specializable
from corollary.rdf.triples import Triples

GENERALIZED = "triples.generalized"
_SHOWN = 3  # ways to contradict a constraint that are shown


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="materialize a Datalog program",
        description="Derive everything that follows from a program and its facts.",
    )
    parser.add_argument(
        "program",
        metavar="PROGRAM.dl",
        nargs="?",
        help="rules and facts in the rule language; may be left out with --rules or --data",
    )
    add_rules(parser, "the rules of PROGRAM.dl only")
    parser.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="RDF: N-Triples, N-Quads, Turtle, TriG, RDF/XML or JSON-LD, also with .gz or .zst;"
        " folders and patterns",
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
        help="folder for the materialization, one file for each relation, and triples.nt (triples"
        " that RDF does not have, such as those about literals, go to triples.generalized); without"
        " it, facts are printed",
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
    parser.add_argument(
        "--equality",
        choices=EQUALITY,
        default=EQUALITY[0],
        help="equal terms: by the rules, or one stands for all (default: %(default)s)",
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
    progress = Progress(Limits.of(options), quiet=options.quiet)
    notices = Notices()
    with progress.watched(), gathering(notices):
        clock = Clock()
        given = _read(options, progress, notices)
        program = given.program
        clock.lap("read")
        progress.state = "materializing"
        if options.explain is not None:
            _explain(given, options, progress)
            notices.warn()
            return
        if options.engine == "reference":
            explicit, facts, statistics, found = _run_reference(given)
        else:
            explicit, facts, statistics, found = _run_engine(given, options, clock, progress)
        clock.lap("check" if "materialize" in clock.seconds else "materialize")
        notices.warn()
        facts = results_of(facts)
        generalized = 0
        progress.state = "writing"
        if options.out:
            progress.outcome = lambda: f"some files in {options.out} may be new (each is whole)"
            generalized = _write(options.out, given, facts, format_=options.format)
        elif not options.json:
            progress.outcome = lambda: "what was printed may be incomplete"
            print_facts(program, facts, given.dictionary)
        clock.lap("write")
    counts = relation_counts(program, facts)
    size = sum(counts.values())
    report = {
        "version": None,
        "explicit": explicit,
        "facts": size,
        "inserted": size,
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
    if options.out:
        report["generalized"] = generalized
    if options.data:
        report |= describe_skipped(given.triples.skipped, given.triples.samples)
    report["warnings"] = describe_warnings()
    if options.json:
        print(json.dumps(report))
    elif not options.quiet:
        print_statistics(report)
    if generalized:
        print(
            f"generalized: {generalized:,} triples that RDF does not have, such as those about"
            f" literals, are in {GENERALIZED}",
            file=sys.stderr,
        )
    print_skipped(given.triples.skipped, given.triples.samples)
    print_inconsistencies(report.get("inconsistencies", []))


@dataclass(frozen=True)
class _Given:
    """What a run begins with."""

    program: Program
    tables: list[Table]
    triples: Triples
    dictionary: Dictionary
    notices: Notices

    def explicit(self) -> Tables:
        """All facts, in numbers."""
        found = encoded(self.program, self.tables, self.dictionary)
        tables = joined([found, self.triples.tables(self.dictionary)])
        note_axioms([(True, tables)], self.program, None, self.dictionary, self.notices)
        return tables


def _read(options: argparse.Namespace, progress: Progress, notices: Notices) -> _Given:
    names = [*(options.rules or ()), *([Path(options.program)] if options.program else ())]
    if not names and not options.data:
        raise InvalidInput("E303", "there is nothing to run", "give PROGRAM.dl, --rules or --data")
    program = read_rules(names)
    tables = (
        read_folder(options.facts, program, limit_input_bytes=options.limit_input_bytes)
        if options.facts
        else []
    )
    dictionary = Dictionary()
    triples = formats.read(
        options.data or (),
        dictionary,
        on_error=options.on_error,
        on_progress=progress.reading,
        threads=options.threads,
        limit_input_bytes=options.limit_input_bytes,
    )
    return _Given(program, tables, triples, dictionary, notices)


Outcome = tuple[int, Facts, Statistics, list[Inconsistency]]


def _run_reference(given: _Given) -> Outcome:
    program, dictionary = given.program, given.dictionary
    engine = make_engine("columnar", dictionary)  # for sets of facts, not to evaluate
    explicit = {*decode(engine.facts(given.explicit()), dictionary)}
    facts = reference.materialize(program, explicit)
    ways: dict[Rule, list[Violation]] = {}
    for rule, substitution in reference.violations(program, facts):
        ways.setdefault(rule, []).append(Violation(rule, substitution))
    found = [Inconsistency(rule, len(all_), tuple(all_[:_SHOWN])) for rule, all_ in ways.items()]
    statistics = Statistics("naive", "the reference engine evaluates naively")
    return len(explicit), engine.facts(encode(facts, dictionary)), statistics, found


def _run_engine(
    given: _Given, options: argparse.Namespace, clock: Clock, progress: Progress
) -> Outcome:
    engine = make_engine(
        options.engine,
        given.dictionary,
        threads=options.threads,
        limit_memory=options.limit_memory,
        limit_facts=options.limit_facts,
    )
    explicit = engine.facts(given.explicit())
    clock.lap("encode")
    kind = _kind(given.program, options)
    if kind is not Maintainer:
        kept = _kept(kind, given, explicit, engine, options, progress)
        facts, statistics = kept.facts, kept.statistics
        clock.lap("materialize")
        found = list(kept.inconsistencies(examples=_SHOWN)) if given.program.constraints else []
        return len(explicit), facts, statistics, found
    done = seminaive.materialize(
        given.program, explicit, engine, modules=not options.no_modules, on_progress=progress
    )
    found = []
    if given.program.constraints:
        clock.lap("materialize")
        found = list(inconsistencies(given.program, done.facts, engine, examples=_SHOWN))
    return len(explicit), done.facts, done.statistics, found


def _kind(program: Program, options: argparse.Namespace) -> Any:
    """What derives: by representatives if asked to, and by rules written out where there are such.

    On Spark every rule is a job, so that few rules are better than many.
    """
    if options.equality == "rewrite":
        return EqualityMaintainer
    in_process = options.engine == "columnar" and is_specializable(program)
    return AdaptiveMaintainer if in_process else Maintainer


def _kept(
    kind: Any,
    given: _Given,
    explicit: Any,
    engine: Any,
    options: argparse.Namespace,
    progress: Progress,
) -> Any:
    return kind(
        given.program.without_facts(),
        explicit,
        engine,
        modules=not options.no_modules,
        on_progress=progress,
    )


def _write(folder: str, given: _Given, facts: Any, *, format_: str) -> int:
    """Files of the relations by their terms, the triples by columns of ids.

    Returns how many triples are no RDF: a literal is their subject, or their property is no IRI.
    """
    program, dictionary = given.program, given.dictionary
    plain = list(result_tables(facts.without([TRIPLES]), dictionary))
    write_facts(folder, program, plain, format_=format_)
    triples = triples_of(facts, dictionary).in_order(dictionary)
    is_rdf = triples.are_rdf(dictionary)
    for name, part in (
        ("triples.nt", triples.where(is_rdf)),
        (GENERALIZED, triples.where(~is_rdf)),
    ):
        path = Path(folder) / name
        # A file of an earlier run of a program about triples gets empty. Nothing is removed: the
        # folder may be the one that facts are read from.
        if len(part) or (program.has_triples and path.exists()):
            replace_file(path, partial(formats.write, triples=part, dictionary=dictionary))
    return int((~is_rdf).sum())


def _explain(given: _Given, options: argparse.Namespace, progress: Progress) -> None:
    program = given.program
    fact = parse_atom(options.explain, program.prefixes, "--explain")
    if options.engine == "reference":
        raise InvalidInput("E341", "the reference engine gives no proofs", "use --engine columnar")
    engine = make_engine(
        options.engine,
        given.dictionary,
        threads=options.threads,
        limit_memory=options.limit_memory,
        limit_facts=options.limit_facts,
    )
    explicit = engine.facts(given.explicit())
    proof = _kept(_kind(program, options), given, explicit, engine, options, progress).explain(fact)
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


def print_facts(program: Program, facts: Facts, dictionary: Dictionary) -> None:
    """Print facts as the rule language writes them, in the order of their text."""
    printer = Printer(program.prefixes)
    sys.stdout.writelines(sorted(f"{printer.atom(fact)} .\n" for fact in decode(facts, dictionary)))
    sys.stdout.flush()


def relation_counts(program: Program, facts: Facts) -> dict[str, int]:
    """The number of facts of each relation; triples under `triples`."""
    counts = dict.fromkeys(sorted(r for r in program.arities if not is_auxiliary(r)), 0)
    if program.has_triples:
        counts["triples"] = 0
    for predicate in facts.predicates():
        name = TRIPLES_NAME if predicate.relation == TRIPLE else predicate.relation
        counts[name] = counts.get(name, 0) + len(facts.only([predicate]))
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
    print_rows(rows)


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
