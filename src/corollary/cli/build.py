"""`corollary build`: parse, encode, materialize, commit."""

from __future__ import annotations

import argparse
from typing import Any

from corollary.cli.arguments import add_resources, add_rules, describe_skipped
from corollary.cli.progress import Clock, Limits, Progress, Steps
from corollary.cli.stores import (
    add_engine,
    add_materialize,
    add_output,
    add_store,
    has_spark,
    print_report,
    print_samples,
    spark_pipeline,
    stored_outcome,
)
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import EQUALITY, KnowledgeBase
from corollary.knowledge_base.hybrid import check_mode
from corollary.knowledge_base.persistence import refuse_occupied
from corollary.knowledge_base.rules import NO_RULES, read_rules
from corollary.store.layout import MODES

_DEFAULT = "owl-rl"
_STAGES = ("session", "parse", "encode", "terms", "materialize", "commit")  # on Spark


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "build",
        help="make a store of files and all that follows from them",
        description="Read files, derive everything that follows, and commit it as the first version"
        " of a store. A build that fails leaves no version.",
    )
    add_store(parser)
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="FILE",
        help="RDF files, .dl files, tables of facts, folders and patterns",
    )
    add_rules(parser, f"{_DEFAULT}, or {NO_RULES} if a FILE is a .dl file")
    add_engine(parser, "spark if it is installed, else columnar")
    parser.add_argument(
        "--mode",
        choices=MODES,
        default=MODES[0],
        help="derive everything, or only what queries cannot derive fast (default: %(default)s)",
    )
    add_materialize(parser)
    parser.add_argument(
        "--equality",
        choices=EQUALITY,
        default=EQUALITY[0],
        help="equal terms: by the rules, or one stands for all (default: %(default)s)",
    )
    parser.add_argument("--message", default="", metavar="TEXT", help="for the log")
    add_resources(parser)
    add_output(parser)
    parser.set_defaults(command=build)


def build(options: argparse.Namespace) -> None:
    """Build a store, report."""
    engine = options.engine or ("spark" if has_spark() and _fits_spark(options) else "columnar")
    check_mode(options.mode, options.equality, options.materialize)
    rules = options.rules or [_default(options.sources)]
    refuse_occupied(options.store)
    progress = Progress(Limits.of(options), quiet=options.quiet)
    progress.outcome = stored_outcome(options.store)
    with progress.watched():
        if engine == "spark":
            with Steps(quiet=options.quiet, stages=_STAGES) as steps:
                report = _on_spark(options, rules, steps)
        else:
            report = _in_process(options, rules, progress)
    print_report(report, options)
    print_samples(report)


def _fits_spark(options: argparse.Namespace) -> bool:
    """Representatives of equal terms are kept by the embedded engine only."""
    return bool(options.equality == EQUALITY[0])


def _on_spark(options: argparse.Namespace, rules: list[str], steps: Steps) -> dict[str, Any]:
    if not _fits_spark(options):
        raise InvalidInput(
            "E507",
            f"--equality {options.equality} is not for --engine spark",
            "use --engine columnar",
        )
    done = spark_pipeline().build(
        options.store,
        options.sources,
        rules=rules,
        mode=options.mode,
        materialize=options.materialize,
        master=options.master,
        on_error=options.on_error,
        limit_input_bytes=options.limit_input_bytes,
        message=options.message,
        on_progress=steps,
    )
    report: dict[str, Any] = done.to_json()
    return report


def _in_process(
    options: argparse.Namespace, rules: list[str], progress: Progress
) -> dict[str, Any]:
    clock = Clock()
    if options.materialize:  # patterns may be about relations of files, and are read first
        rules = [*rules, *(source for source in options.sources if source.endswith(".dl"))]
    kb = KnowledgeBase(
        read_rules(rules),
        equality=options.equality,
        threads=options.threads,
        limit_memory=options.limit_memory,
        mode=options.mode,
        materialize=options.materialize,
    )
    loaded = kb.load(
        *options.sources,
        on_error=options.on_error,
        on_progress=progress.reading,
        limit_input_bytes=options.limit_input_bytes,
    )
    spent = loaded.statistics.seconds.get("update", 0.0)
    clock.lap("read")
    clock.seconds["read"] -= spent
    clock.seconds["materialize"] = spent
    version = kb.save(options.store, message=options.message)
    clock.lap("commit")
    statistics, facts = loaded.statistics, kb.count()
    return {
        "version": version,
        "explicit": len(kb._maintainer.explicit),
        "facts": facts,
        "inserted": facts,
        "deleted": 0,
        "rounds": statistics.rounds,
        "derivations": statistics.derivations,
        "seconds": {phase: round(spent, 6) for phase, spent in clock.seconds.items()},
        "algorithm": statistics.algorithm,
        "reason": statistics.reason,
        "engine": "columnar",
        "complete": True,
        **describe_skipped(loaded.skipped, loaded.samples),
    }


def _default(sources: list[str]) -> str:
    return NO_RULES if any(source.endswith(".dl") for source in sources) else _DEFAULT
