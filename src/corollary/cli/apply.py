"""`corollary apply`: replay a script of commits and print the changes of each."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corollary.algorithms.registry import ALGORITHMS
from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.cli.progress import Progress
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, Facts
from corollary.core.notices import Notices, gathering
from corollary.core.tables import decode, encode
from corollary.errors import (
    CorollaryError,
    Diagnostic,
    InvalidInput,
    InvalidProgram,
    OperationFailed,
    Source,
)
from corollary.files.tables import Table
from corollary.knowledge_base.folders import read_folder, read_inputs
from corollary.knowledge_base.graphs import explicit_changes, explicit_tables
from corollary.knowledge_base.state import KnowledgeState, Settings
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.script import ScriptCommit, parse_script
from corollary.reasoning.engines import encoded, make_engine

_WARM_UP_FACTS_LIMIT = 10_000  # facts; larger comparisons have no warm-up run
_WARM_UP_COMMITS = 4  # commits of a warm-up run

# The columns of Table 2 of Motik et al. 2015: counters and their names.
TABLE = (
    ("|D|", "considered", ("overdeleted", "unsure")),
    ("DR2", "derivations", ("overdeletion",)),
    ("DR4", "derivations", ("rederivation",)),
    ("DR5", "derivations", ("insertion",)),
    ("|C|", "considered", ("checked",)),
    ("Bwd", "derivations", ("backward",)),
    ("Sat", "derivations", ("saturation",)),
    ("Del prop", "derivations", ("deletion propagation",)),
)


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Materialize a program, then apply the commits of a script one after the other"
        " and print the facts that each inserts (+) and deletes (-)."
    )
    parser.epilog = (
        "A script holds statements such as\n"
        '  insert edge("a", "b"), edge("b", "c") ;\n'
        '  delete edge("a", "b") ;\n'
        "  add rule path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) . ;\n"
        "  remove rule path(?x, ?y) :- edge(?x, ?y) . ;\n"
        "  commit ;"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("program", metavar="PROGRAM.dl", help="rules and facts")
    parser.add_argument("--updates", metavar="SCRIPT", required=True, help="the script of commits")
    parser.add_argument(
        "--facts", metavar="DIR", help="folder with facts, as for 'corollary run --facts'"
    )
    arguments.add_algorithm(parser, "the maintenance algorithm")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="run the script with every algorithm and print a table of their work; their results"
        " must agree",
    )
    parser.add_argument(
        "--coarse-strata",
        action="store_true",
        help="use as few strata as negation allows",
    )
    parser.add_argument(
        "--no-modules",
        action="store_true",
        help="derive transitive relations by their rules, not by algorithms of their own",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="after every commit, rematerialize and compare facts and counters",
    )
    arguments.add_engine(parser, "columnar", help_="columnar or spark (default: columnar)")
    arguments.add_session(parser)
    arguments.add_resources(parser)
    arguments.add_input_limit(parser)
    arguments.add_output(parser, json="print one JSON object for each commit, on a line")
    parser.set_defaults(command=apply)


@dataclass(frozen=True)
class Applied:
    """The changes of a commit under one algorithm, as text in order."""

    inserted: list[str]
    deleted: list[str]
    statistics: dict[str, Any]


class Replay:
    """A knowledge base that replays the commits of a script."""

    def __init__(
        self,
        program: Program,
        tables: list[Table],
        algorithm: str,
        options: argparse.Namespace,
        progress: Progress,
    ) -> None:
        dictionary = Dictionary()
        engine: Engine[Facts] = make_engine(
            options.engine,
            dictionary,
            threads=options.threads,
            limit_memory=options.limit_memory,
            **arguments.session_of(options),
        )
        settings = Settings(
            algorithm=algorithm,
            modules=not options.no_modules,
            coarse=options.coarse_strata,
            specialize=False,
        )
        explicit = explicit_tables(encoded(program, tables, dictionary), engine)
        self.state = KnowledgeState.derive(
            program, explicit, engine, settings, on_progress=progress
        )
        self.verify: bool = options.verify
        self.printer = Printer(program.prefixes)

    def apply(self, commit: ScriptCommit) -> Applied:
        """Apply a commit."""
        reasoner, engine = self.state.reasoner, self.state.engine
        _refuse_unknown_rules(commit, reasoner.program, self.printer)
        before = len(reasoner.explicit)
        changes = Changes(
            engine.facts(encode(commit.inserted, engine.dictionary)),
            engine.facts(encode(commit.deleted, engine.dictionary)),
            commit.added,
            commit.removed,
        )
        changes = explicit_changes(changes, reasoner.explicit, engine)
        deleted = len(changes.deleted.intersection(reasoner.explicit))
        started = time.perf_counter()
        done = reasoner.update(changes)
        spent = time.perf_counter() - started
        if self.verify:
            reasoner.verify()
        statistics = done.statistics
        assert statistics is not None, "an update has statistics"
        explicit = len(reasoner.explicit)
        return Applied(
            self._written(done.inserted),
            self._written(done.deleted),
            {
                "algorithm": statistics.algorithm,
                "reason": statistics.reason,
                "explicit": explicit,
                "explicit_inserted": explicit - before + deleted,
                "explicit_deleted": deleted,
                "facts": len(reasoner.facts),
                "inserted": len(done.inserted),
                "deleted": len(done.deleted),
                "rounds": statistics.rounds,
                "derivations": statistics.derivations,
                "considered": statistics.considered,
                "seconds": {"update": round(spent, 6)},
            },
        )

    def _written(self, facts: Facts) -> list[str]:
        return sorted(map(self.printer.atom, decode(facts, self.state.dictionary)))


def apply(options: argparse.Namespace) -> None:
    """Replay the script; print the changes and statistics."""
    if options.engine != "spark":
        arguments.refuse_session(options)
    progress = Progress.of(options)
    with progress.watched():
        program = Program.load(options.program)
        commits = parse_script(Source.read(options.updates), program)
        notices = Notices()
        limit = options.limit_input_bytes
        with gathering(notices):
            tables = read_inputs(program, limit_input_bytes=limit)
            if options.facts:
                tables += read_folder(options.facts, program, limit_input_bytes=limit)
        if options.compare:
            _compare(program, commits, tables, options, progress)
            return
        with gathering(notices):
            replay = Replay(program, tables, options.algorithm, options, progress)
        notices.warn()
        applied = 0
        progress.outcome = lambda: f"{applied} of {len(commits)} commits were applied"
        for number, commit in enumerate(commits, 1):
            with gathering(notices):
                done = replay.apply(commit)
            applied = number
            notices.warn()
            _print_commit(number, done, options)


def _print_commit(number: int, done: Applied, options: argparse.Namespace) -> None:
    if options.json:
        report = {"commit": number, "inserted": done.inserted, "deleted": done.deleted}
        print_json(report | {"statistics": done.statistics})
        return
    print(f"commit {number}")
    for line in [*(f"+ {fact}" for fact in done.inserted), *(f"- {fact}" for fact in done.deleted)]:
        print(line)
    sys.stdout.flush()
    if not options.quiet:
        found = done.statistics
        counted = {**found["derivations"], **found["considered"]}
        phases = "".join(f", {phase} {count:,}" for phase, count in counted.items() if count)
        print(
            f"{found['algorithm']}: +{found['inserted']:,} -{found['deleted']:,} facts"
            f" in {found['seconds']['update'] * 1e3:.2f} ms{phases} ({found['reason']})",
            file=sys.stderr,
            flush=True,
        )


def _compare(
    program: Program,
    commits: Sequence[ScriptCommit],
    tables: list[Table],
    options: argparse.Namespace,
    progress: Progress,
) -> None:
    """Run every algorithm on the same commits; print a table, and fail if two results differ."""
    if (
        len(program.facts) + sum(len(t.columns[0].indices) for t in tables if t.columns)
        < _WARM_UP_FACTS_LIMIT
    ):
        # Warm up: loading a compiled kernel takes longer than a small update.
        for algorithm in ALGORITHMS:
            with contextlib.suppress(CorollaryError):
                trial = Replay(program, tables, algorithm, options, progress)
                for commit in commits[:_WARM_UP_COMMITS]:
                    trial.apply(commit)
    replays: dict[str, Replay | str] = {}
    for algorithm in ALGORITHMS:
        try:
            replays[algorithm] = Replay(program, tables, algorithm, options, progress)
        except InvalidInput as error:
            replays[algorithm] = error.message
    rows = []
    for number, commit in enumerate(commits, 1):
        done: dict[str, Applied] = {}
        for algorithm, replay in replays.items():
            if isinstance(replay, Replay):
                try:
                    done[algorithm] = replay.apply(commit)
                except InvalidInput as error:
                    if algorithm == "auto":
                        raise
                    replays[algorithm] = error.message
        first = done["auto"]
        for algorithm, other in done.items():
            if (other.inserted, other.deleted) != (first.inserted, first.deleted):
                raise OperationFailed("E407", f"{algorithm} and auto differ after commit {number}")
        if options.json:
            found = {name: applied.statistics for name, applied in done.items()}
            report = {"commit": number, "inserted": first.inserted, "deleted": first.deleted}
            print_json(report | {"algorithms": found})
        rows += [_row(number, applied.statistics) for applied in done.values()]
    if not options.json:
        _print_table(rows)
    for algorithm, replay in replays.items():
        if isinstance(replay, str):
            print(f"{algorithm}: {replay}", file=sys.stderr)


def _row(number: int, found: dict[str, Any]) -> dict[str, str]:
    row = {
        "commit": str(number),
        "algorithm": found["algorithm"],
        "|E⁻|": f"{found['explicit_deleted']:,}",
        "|E⁺|": f"{found['explicit_inserted']:,}",
        "|I∖I′|": f"{found['deleted']:,}",
        "|I′∖I|": f"{found['inserted']:,}",
        "ms": f"{found['seconds']['update'] * 1e3:.2f}",
    }
    for title, kind, phases in TABLE:
        counts = [found[kind][phase] for phase in phases if phase in found[kind]]
        row[title] = f"{sum(counts):,}" if counts else "-"
    row["rules, full"] = "-"
    other = found["derivations"]
    if "rule removal" in other or "materialization" in other:
        row["rules, full"] = f"{other.get('rule removal', 0) + other.get('materialization', 0):,}"
    return row


def _print_table(rows: list[dict[str, str]]) -> None:
    if not rows:
        return
    titles = list(rows[0])
    widths = {t: max(len(t), *(len(row[t]) for row in rows)) for t in titles}
    for row in [dict(zip(titles, titles, strict=True)), *rows]:
        cells = (
            row[t].ljust(widths[t]) if t == "algorithm" else row[t].rjust(widths[t]) for t in titles
        )
        print("  ".join(cells).rstrip())
    sys.stdout.flush()


def _refuse_unknown_rules(commit: ScriptCommit, program: Program, printer: Printer) -> None:
    """Reject removals of rules that do not exist, with their place in the script."""
    problems = [
        Diagnostic("E307", f"the program has no rule {printer.rule(rule)}", rule.span)
        for rule in commit.removed
        if rule not in program and rule.span is not None
    ]
    if problems:
        raise InvalidProgram(problems)
