"""`corollary build`: parse, encode, materialize, commit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from corollary.cli import arguments
from corollary.cli.engine_choice import IN_PROCESS_BYTES, choose_engine, print_choice
from corollary.cli.loading import load_files, read_options
from corollary.cli.output import print_report, print_skipped
from corollary.cli.progress import Clock, Progress, Steps
from corollary.cli.stores import stored_outcome
from corollary.knowledge_base import spark
from corollary.knowledge_base.hybrid import check_mode
from corollary.knowledge_base.persistence import save_state
from corollary.knowledge_base.report import Report
from corollary.knowledge_base.stores import refuse_occupied
from corollary.lang.program import PROGRAM_SUFFIXES
from corollary.store.layout import MODES

_STAGES = ("session", "parse", "encode", "terms", "materialize", "commit")  # on Spark


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Read files, derive everything that follows, and commit it as the first version"
        " of a store. A build that fails leaves no version."
    )
    arguments.add_store(parser)
    arguments.add_sources(parser)
    arguments.add_graph(parser, "put the statements of the files into a named graph")
    arguments.add_reason_over(parser, "union")
    arguments.add_rules(parser)
    arguments.add_import_map(parser)
    megabytes = IN_PROCESS_BYTES // 1_000_000
    arguments.add_spark(
        parser,
        f"spark, but columnar for up to {megabytes} MB of uncompressed text without --master, and"
        " where Spark is not installed",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        default=MODES[0],
        help="derive everything, or only what queries cannot derive fast (default: %(default)s)",
    )
    arguments.add_materialize(parser)
    arguments.add_equality(parser)
    arguments.add_message(parser)
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=build)


def build(options: argparse.Namespace) -> None:
    """Build a store and report."""
    check_mode(options.mode, options.equality, options.materialize)
    rules = arguments.rules_of(options)
    place = arguments.place_of(options)
    refuse_occupied(place)
    engine = options.engine or _choose_engine(options)
    progress = Progress.of(options)
    progress.outcome = stored_outcome(place)
    with progress.watched():
        if engine == "columnar":
            arguments.refuse_session(options)
            report = _in_process(options, rules, progress)
        else:
            report = _on_spark(options, rules)
    print_report(report, options)
    print_skipped(report.skipped, report.samples)


def _choose_engine(options: argparse.Namespace) -> str:
    choice = choose_engine(options.sources, **arguments.session_of(options))
    if not options.quiet:
        print_choice(choice)
    return choice.engine


def _on_spark(options: argparse.Namespace, rules: Sequence[str]) -> Report:
    with Steps(quiet=options.quiet, stages=_STAGES) as steps:
        return spark.build(
            arguments.place_of(options),
            options.sources,
            rules=rules,
            mode=options.mode,
            equality=options.equality,
            materialize=options.materialize,
            graph=options.graph,
            reason_over=options.reason_over or "union",
            **arguments.session_of(options),
            **read_options(options),
            message=options.message,
            on_progress=steps,
        )


def _in_process(options: argparse.Namespace, rules: Sequence[str], progress: Progress) -> Report:
    clock = Clock()
    if options.materialize:  # patterns may use relations of the files, so read these first
        programs = (name for name in options.sources if name.endswith(PROGRAM_SUFFIXES))
        rules = [*rules, *programs]
    kb, loaded = load_files(options, rules, options.sources, progress)
    clock.lap("read")
    clock.move("materialize", loaded.statistics.seconds["update"])
    version = save_state(kb.state, arguments.place_of(options), message=options.message)
    clock.lap("commit")
    return Report.of(
        version.version, version.statistics, clock.seconds, loaded.skipped, loaded.samples
    )
