"""`corollary run`: facts in, materialization out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from corollary.algorithms.constraints import Inconsistency, Violation
from corollary.cli import arguments
from corollary.cli.loading import read_options
from corollary.cli.output import print_proof, print_report, print_skipped
from corollary.cli.pandas_import import skip_pandas
from corollary.cli.progress import Clock, Progress
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, Facts
from corollary.core.notices import Notices, gathering
from corollary.core.statistics import Statistics
from corollary.core.tables import Tables, decode, encode, joined
from corollary.errors import InvalidInput, nearest
from corollary.files import FORMATS
from corollary.files.shapes import MalformedRows
from corollary.knowledge_base.fact_forms import read_fact
from corollary.knowledge_base.graphs import explicit_tables
from corollary.knowledge_base.report import Report
from corollary.knowledge_base.results import results_of
from corollary.knowledge_base.rules import read_rules
from corollary.knowledge_base.state import KnowledgeState, Settings
from corollary.knowledge_base.undefined import note_undefined
from corollary.lang import reference
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import QUADS, TRIPLE, TRIPLES_NAME, Rule, is_auxiliary
from corollary.rdf.triples import SAMPLES, Skipped, Triples
from corollary.reasoning.engines import encoded, make_engine

if TYPE_CHECKING:
    from corollary.algorithms.reasoner import Reasoner
    from corollary.files.tables import Table

_SHOWN_VIOLATIONS = 3  # violations of a constraint that are shown


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = "Derive everything that follows from a program and its facts."
    _add_sources(parser)
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
        help="of the output files: facts (tab-separated), csv, tsv, parquet, arrow, jsonl (default:"
        " facts)",
    )
    parser.add_argument(
        "--output",
        nargs="+",
        action="extend",
        metavar="RELATION",
        help="write these relations only ('triples' for all triples); without it, those that the"
        " program names by @output, or all",
    )
    arguments.add_engine(
        parser,
        "columnar",
        "reference",
        help_="what evaluates the rules: columnar (in process), spark, or reference (slow and"
        " simple) (default: columnar)",
    )
    arguments.add_session(parser)
    parser.add_argument(
        "--explain",
        metavar="FACT",
        help="print a smallest proof of a fact such as 'path(1, 3)', and nothing else",
    )
    arguments.add_proof_format(
        parser, "--explain-format", "of the proof: a tree, JSON, or a graph for Graphviz"
    )
    arguments.add_equality(parser)
    arguments.add_resources(parser)
    parser.add_argument(
        "--no-modules",
        action="store_true",
        help="derive transitive relations by their rules, not by algorithms of their own",
    )
    parser.add_argument(
        "--limit-facts", type=arguments.positive, metavar="N", help="stop when there are more facts"
    )
    parser.add_argument(
        "--limit-rounds", type=arguments.positive, metavar="N", help="stop after this many rounds"
    )
    arguments.add_output(parser, json="print statistics as JSON")
    parser.set_defaults(command=run)


def _add_sources(parser: arguments.Parser) -> None:
    parser.add_argument(
        "program",
        metavar="PROGRAM.dl",
        nargs="?",
        help="rules and facts in the rule language, or in a .srl file, in the SHACL Rules language;"
        " may be left out with --rules or --data",
    )
    arguments.add_rules(parser, "the rules of PROGRAM.dl only")
    parser.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="RDF: N-Triples, N-Quads, Turtle, TriG, RDF/XML or JSON-LD, also with .gz or .zst;"
        " folders and patterns",
    )
    arguments.add_import_map(parser)
    parser.add_argument(
        "--facts",
        metavar="DIR",
        help="folder with <relation>.facts (tab-separated), .csv, .jsonl, .parquet or .arrow files,"
        " and *.nt for triples; text files also with .gz or .zst",
    )


def run(options: argparse.Namespace) -> None:
    """Materialize, write the facts and report."""
    if options.engine != "spark":
        arguments.refuse_session(options)
    if options.engine == "reference" and options.equality != "rules":
        raise InvalidInput(
            "E313",
            f"--equality {options.equality} needs another engine than reference",
            "use --engine columnar",
        )
    progress = Progress.of(options)
    notices = Notices()
    with progress.watched(), gathering(notices):
        clock = Clock()
        source = _read(options, progress)
        program, dictionary = source.program, source.dictionary
        clock.lap("read")
        progress.state = "materializing"
        if options.explain is not None:
            _explain(source, options, notices, progress)
            notices.warn()
            return
        reasoner: Reasoner[Facts] | _Reference
        if options.engine == "reference":
            reasoner = _reference(source.explicit(notices), program, dictionary, progress)
        else:
            reasoner = _derived(source, options, notices, progress, clock).reasoner
        clock.lap("materialize")
        found: list[Inconsistency] = []
        if program.constraints:
            found += reasoner.inconsistencies(examples=_SHOWN_VIOLATIONS)
            clock.lap("check")
        notices.warn()
        facts = results_of(reasoner.facts)
        printer = Printer(program.prefixes)
        progress.state = "writing"
        generalized = _write(source, facts, options, progress)
        clock.lap("write")
    more: dict[str, object] = {"relations": _relation_counts(program, facts)}
    if program.constraints:
        more["inconsistencies"] = [one.describe(printer) for one in found]
    if options.out:
        more["generalized"] = generalized
    triples = source.triples
    skipped = triples.skipped + source.rows.count
    samples = (*triples.samples, *(Skipped(*row) for row in source.rows.samples))[:SAMPLES]
    report = _report(reasoner, len(facts), clock.seconds, options.engine, skipped, samples)
    print_report(report, options, **more)
    if generalized:
        from corollary.knowledge_base.folders import GENERALIZED

        print(
            f"generalized: {generalized:,} triples that RDF does not have, such as those about"
            f" literals, are in {GENERALIZED}",
            file=sys.stderr,
        )
    print_skipped(skipped, samples)
    _print_inconsistencies(found, printer)


def _report(
    reasoner: Reasoner[Facts] | _Reference,
    facts: int,
    seconds: Mapping[str, float],
    engine: str,
    skipped: int,
    samples: tuple[Skipped, ...],
) -> Report:
    statistics = reasoner.statistics
    return Report(
        None,
        len(reasoner.explicit),
        facts,
        facts,
        0,
        statistics.rounds,
        statistics.derivations,
        statistics.algorithm,
        statistics.reason,
        seconds,
        engine,
        skipped,
        samples,
    )


def _write(source: _Source, facts: Facts, options: argparse.Namespace, progress: Progress) -> int:
    """Write or print the chosen facts; returns the number of generalized triples."""
    program, dictionary = source.program, source.dictionary
    chosen = _chosen(program, options)
    if program.declarations.outputs:
        progress.outcome = lambda: "some files of @output may be new (each is whole)"
        from corollary.knowledge_base.folders import write_outputs

        write_outputs(program, facts, dictionary, chosen)
        if chosen is None:
            return 0
        chosen -= {one.relation for one in program.declarations.outputs}
        if not chosen:
            return 0
    if options.out:
        progress.outcome = lambda: f"some files in {options.out} may be new (each is whole)"
        from corollary.knowledge_base.folders import write_folder

        return write_folder(options.out, program, facts, dictionary, options.format, chosen)
    if not options.json:
        progress.outcome = lambda: "what was printed may be incomplete"
        printer = Printer(program.prefixes)
        shown = decode(facts, dictionary)
        if chosen is not None:
            names = {TRIPLE if name == TRIPLES_NAME else name for name in chosen}
            shown = (fact for fact in shown if fact.relation in names)
        sys.stdout.writelines(sorted(f"{printer.atom(fact)} .\n" for fact in shown))
        sys.stdout.flush()
    return 0


def _chosen(program: Program, options: argparse.Namespace) -> frozenset[str] | None:
    """The relations of `--output`; None if it is not given."""
    if options.output is None:
        return None
    known = {name for name in program.arities if not is_auxiliary(name)} | {TRIPLES_NAME}
    for name in options.output:
        if name not in known:
            close = nearest(name, known)
            raise InvalidInput(
                "E344",
                f"there is no relation {name} to write",
                f"did you mean {close}?" if close else f"choose of {', '.join(sorted(known))}",
            )
    return frozenset(options.output)


class _Source(NamedTuple):
    """The input of a run."""

    program: Program
    tables: list[Table]  # from folders
    triples: Triples  # from RDF
    dictionary: Dictionary
    rows: MalformedRows  # of tables
    imported: frozenset[str] = frozenset()  # IRIs whose documents were read

    def explicit(self, notices: Notices) -> Tables:
        """Return all explicit facts."""
        from corollary.knowledge_base.unread_axioms import note_axioms

        own = encoded(self.program, self.tables, self.dictionary)
        tables = joined([own, self.triples.tables(self.dictionary)])
        requests, imported = [(True, tables)], self.imported
        note_axioms(requests, self.program, None, self.dictionary, notices, found=imported)
        return tables


class _Reference(NamedTuple):
    """The result of the reference evaluator, with the interface of a reasoner."""

    explicit: Facts
    facts: Facts
    statistics: Statistics
    violated: list[Inconsistency]

    def inconsistencies(self, *, examples: int) -> list[Inconsistency]:
        """Return the violated constraints."""
        return self.violated


def _read(options: argparse.Namespace, progress: Progress) -> _Source:
    if options.engine != "spark":
        skip_pandas()
    names = [*(options.rules or ()), *([Path(options.program)] if options.program else ())]
    if not names and not options.data:
        raise InvalidInput("E303", "there is nothing to run", "give PROGRAM.dl, --rules or --data")
    program = read_rules(names)
    _chosen(program, options)  # fails early
    rows = MalformedRows(skip=options.on_error == "skip")
    limit = options.limit_input_bytes
    tables: list[Table] = []
    if options.facts or program.declarations.inputs:
        from corollary.knowledge_base.folders import read_folder, read_inputs

        tables += read_inputs(program, limit_input_bytes=limit, rows=rows)
    if options.facts:
        tables += read_folder(options.facts, program, limit_input_bytes=limit, rows=rows)
    else:
        note_undefined(program)
    dictionary = Dictionary()
    triples, imported = Triples.of(np.empty((0, 3), np.uint32)), frozenset[str]()
    if options.data:
        from corollary.rdf import formats

        read = partial(
            formats.read,
            dictionary=dictionary,
            on_progress=progress.reading,
            threads=options.threads,
            graphs=QUADS in program.arities,
            **read_options(options),
        )
        triples, imported = _with_imports(options, read, dictionary)
    return _Source(program, tables, triples, dictionary, rows, imported)


def _with_imports(
    options: argparse.Namespace,
    read: Callable[[Sequence[str | Path]], Triples],
    dictionary: Dictionary,
) -> tuple[Triples, frozenset[str]]:
    """Read the data and the documents that they import; also return the IRIs of these."""
    from corollary.knowledge_base.imports import Imports, import_map_of, imported_by
    from corollary.rdf.files import find

    parts = [read(options.data)]
    iris = dict.fromkeys(imported_by(parts[0], dictionary))
    if not iris:
        return parts[0], frozenset()
    named = [file.path for source in options.data for file in find(source)]
    imports = Imports(import_map_of(options.import_map), fetches=options.fetch_imports)
    with closing(imports):
        for documents in imports.documents(named, lambda: iris):
            parts.append(read(documents))
            iris.update(dict.fromkeys(imported_by(parts[-1], dictionary)))
    return Triples.joined(parts), frozenset(imports.resolved)


def _derived(
    source: _Source,
    options: argparse.Namespace,
    notices: Notices,
    progress: Progress,
    clock: Clock | None = None,
) -> KnowledgeState:
    """Derive everything; the state takes no updates."""
    engine: Engine[Facts] = make_engine(
        options.engine,
        source.dictionary,
        threads=options.threads,
        limit_memory=options.limit_memory,
        limit_facts=options.limit_facts,
        **arguments.session_of(options),
    )
    explicit = explicit_tables(source.explicit(notices), engine)
    if clock is not None:
        clock.lap("encode")
    settings = Settings(modules=not options.no_modules, equality=options.equality)
    if options.engine == "spark" and options.equality == "rules":
        # Every rule is a job: few rules are better than many, and nothing is kept for updates.
        settings = replace(settings, specialize=False, algorithm="rematerialize")
    return KnowledgeState.derive(source.program, explicit, engine, settings, on_progress=progress)


def _reference(
    tables: Tables, program: Program, dictionary: Dictionary, progress: Progress
) -> _Reference:
    engine: Engine[Facts] = make_engine("columnar", dictionary)  # stores sets, evaluates nothing
    explicit = explicit_tables(tables, engine)
    statistics = Statistics("naive", "the reference engine evaluates naively")

    def on_round(stratum: int, strata: int, round_: int, known: int) -> None:
        statistics.rounds += 1
        progress(stratum, strata, round_, known)

    facts = reference.materialize(program, {*decode(explicit, dictionary)}, on_round)
    ways: dict[Rule, list[Violation]] = {}
    for rule, substitution in reference.violations(program, facts):
        ways.setdefault(rule, []).append(Violation(rule, substitution))
    violated = [
        Inconsistency(rule, len(some), tuple(some[:_SHOWN_VIOLATIONS]))
        for rule, some in ways.items()
    ]
    return _Reference(explicit, engine.facts(encode(facts, dictionary)), statistics, violated)


def _explain(
    source: _Source, options: argparse.Namespace, notices: Notices, progress: Progress
) -> None:
    fact = read_fact(options.explain, source.program.arities, source.program.prefixes)
    if options.engine == "reference":
        raise InvalidInput(
            "E313", "--explain needs another engine than reference", "use --engine columnar"
        )
    proof = _derived(source, options, notices, progress).reasoner.explain(fact)
    print_proof(proof, "json" if options.json else options.explain_format)


def _relation_counts(program: Program, facts: Facts) -> dict[str, int]:
    """Count the facts of each relation; triples under `triples`."""
    counts = dict.fromkeys(sorted(r for r in program.arities if not is_auxiliary(r)), 0)
    if program.has_triples:
        counts[TRIPLES_NAME] = 0
    for predicate in facts.predicates():
        name = TRIPLES_NAME if predicate.relation == TRIPLE else predicate.relation
        counts[name] = counts.get(name, 0) + len(facts.only([predicate]))
    return counts


def _print_inconsistencies(found: list[Inconsistency], printer: Printer) -> None:
    """Print violated constraints, each with some of its violations, on stderr."""
    for one in found:
        name = one.rule.name or printer.rule(one.rule)
        ways = "way" if one.count == 1 else "ways"
        print(f"inconsistent: {name} is contradicted in {one.count:,} {ways}", file=sys.stderr)
        for violation in one.examples:
            print(f"  {', '.join(map(printer.atom, violation.facts))}", file=sys.stderr)
        if one.count > len(one.examples):
            print("  …", file=sys.stderr)
