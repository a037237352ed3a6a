"""`corollary apply`: replay a script of commits, and print what each changes."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from corollary.algorithms.maintain import ALGORITHMS, Maintainer
from corollary.cli.arguments import add_input_limit, add_resources
from corollary.cli.progress import Limits, Progress
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
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
from corollary.files.facts import Table
from corollary.knowledge_base.engines import ENGINES, encoded, make_engine
from corollary.knowledge_base.folders import read_folder
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.script import ScriptCommit, parse_script

_SMALL = 10_000  # facts below which a comparison is tried before it is measured
_TRIED = 4  # commits of it that are tried

# The columns of Table 2 of Motik et al. 2015: what is counted, and under which name.
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


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "apply",
        help="replay a script of changes of facts and rules",
        description="Materialize a program, then apply the commits of a script one after the other"
        " and print the facts that each inserts (+) and deletes (-).",
        epilog="A script holds statements such as\n"
        '  insert edge("a", "b"), edge("b", "c") ;\n'
        '  delete edge("a", "b") ;\n'
        "  add rule path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) . ;\n"
        "  remove rule path(?x, ?y) :- edge(?x, ?y) . ;\n"
        "  commit ;",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", metavar="PROGRAM.dl", help="rules and facts")
    parser.add_argument("--updates", metavar="SCRIPT", required=True, help="the script of commits")
    parser.add_argument(
        "--facts", metavar="DIR", help="folder with facts, as for 'corollary run --facts'"
    )
    parser.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        default="auto",
        help="how the materialization is kept up to date (default: auto)",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="run the script with every algorithm and print a table of what each did; they must"
        " all agree",
    )
    parser.add_argument(
        "--coarse-strata",
        action="store_true",
        help="as few strata as negation allows, so that algorithms work as without strata",
    )
    parser.add_argument(
        "--no-modules",
        action="store_true",
        help="derive transitive relations by their rules where everything is derived",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="after every commit derive and count everything again, and compare",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="columnar",
        help="columnar or spark (default: columnar)",
    )
    add_resources(parser)
    add_input_limit(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress and no statistics")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object for each commit, on a line"
    )
    parser.set_defaults(command=apply)


@dataclass(frozen=True)
class Applied:
    """What a commit did under one algorithm: facts as text, in order."""

    inserted: list[str]
    deleted: list[str]
    statistics: dict[str, Any]


class Replay:
    """A maintainer that takes commits as the rule language writes them."""

    def __init__(
        self,
        program: Program,
        tables: list[Table],
        algorithm: str,
        options: argparse.Namespace,
        progress: Progress,
    ) -> None:
        self.dictionary = Dictionary()
        self.engine = make_engine(
            options.engine,
            self.dictionary,
            threads=options.threads,
            limit_memory=options.limit_memory,
        )
        explicit = self.engine.facts(encoded(program, tables, self.dictionary))
        self.maintainer = Maintainer(
            program.without_facts(),
            explicit,
            self.engine,
            algorithm=algorithm,
            coarse=options.coarse_strata,
            modules=not options.no_modules,
            on_progress=progress,
        )
        self.verify: bool = options.verify
        self.printer = Printer(program.prefixes)

    def apply(self, commit: ScriptCommit) -> Applied:
        """Apply a commit."""
        _refuse_unknown_rules(commit, self.maintainer.program, self.printer)
        before = len(self.maintainer.explicit)
        changes = Changes(
            self.engine.facts(encode(commit.inserted, self.dictionary)),
            self.engine.facts(encode(commit.deleted, self.dictionary)),
            commit.added,
            commit.removed,
        )
        gone = len(changes.deleted.intersection(self.maintainer.explicit))
        started = time.perf_counter()
        done = self.maintainer.update(changes)
        spent = time.perf_counter() - started
        if self.verify:
            self.maintainer.verify()
        assert done.statistics is not None, "an update has statistics"
        explicit = len(self.maintainer.explicit)
        return Applied(
            self._written(done.inserted),
            self._written(done.deleted),
            {
                "algorithm": done.statistics.algorithm,
                "reason": done.statistics.reason,
                "explicit": explicit,
                "explicit_inserted": explicit - before + gone,
                "explicit_deleted": gone,
                "facts": len(self.maintainer.facts),
                "inserted": len(done.inserted),
                "deleted": len(done.deleted),
                "rounds": done.statistics.rounds,
                "derivations": done.statistics.derivations,
                "considered": done.statistics.considered,
                "seconds": {"update": round(spent, 6)},
            },
        )

    def _written(self, facts: Facts) -> list[str]:
        return sorted(map(self.printer.atom, decode(facts, self.dictionary)))


def apply(options: argparse.Namespace) -> None:
    """Replay the script; print the changes and what was done."""
    progress = Progress(Limits.of(options), quiet=options.quiet)
    with progress.watched():
        program = Program.load(options.program)
        commits = parse_script(Source.read(options.updates), program)
        notices = Notices()
        tables = []
        if options.facts:
            with gathering(notices):
                tables = read_folder(
                    options.facts, program, limit_input_bytes=options.limit_input_bytes
                )
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
        report = {
            "commit": number,
            "inserted": done.inserted,
            "deleted": done.deleted,
            "statistics": done.statistics,
        }
        print(json.dumps(report, ensure_ascii=False), flush=True)
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
    commits: Iterable[ScriptCommit],
    tables: list[Table],
    options: argparse.Namespace,
    progress: Progress,
) -> None:
    """Every algorithm on the same commits; prints a table, fails if two differ."""
    commits = list(commits)
    if len(program.facts) + sum(len(t.columns[0].indices) for t in tables if t.columns) < _SMALL:
        # Loading a compiled kernel takes longer than a small update: once before times are taken.
        for algorithm in ALGORITHMS:
            with contextlib.suppress(CorollaryError):
                trial = Replay(program, tables, algorithm, options, progress)
                for commit in commits[:_TRIED]:
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
            print(json.dumps(report | {"algorithms": found}, ensure_ascii=False), flush=True)
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
    row["rules, anew"] = "-"
    other = found["derivations"]
    if "rule removal" in other or "materialization" in other:
        row["rules, anew"] = f"{other.get('rule removal', 0) + other.get('materialization', 0):,}"
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
    """A rule that is not there cannot be removed: say where the script asks for it."""
    problems = [
        Diagnostic("E307", f"the program has no rule {printer.rule(rule)}", rule.span)
        for rule in commit.removed
        if rule not in program and rule.span is not None
    ]
    if problems:
        raise InvalidProgram(problems)
