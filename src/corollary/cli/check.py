"""`corollary check`: report violated constraints, each with its proofs."""

from __future__ import annotations

import argparse
import sys

from corollary.cli import arguments
from corollary.cli.loading import load_files, open_store
from corollary.cli.output import describe_skipped, format_seconds, print_json, print_skipped
from corollary.cli.progress import Clock, Progress
from corollary.errors import InvalidInput
from corollary.knowledge_base.check_report import KINDS, CheckReport, profile
from corollary.knowledge_base.rules import NO_RULES
from corollary.knowledge_base.stores import is_store
from corollary.rdf.triples import Skipped


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Derive everything that follows from files, and report which constraints the facts"
        " contradict, each with its smallest proof; which classes and properties cannot have"
        " members; which literals do not fit their datatypes; which integrity conditions of SKOS"
        " are violated; and which axioms are outside OWL 2 RL, so that they may have no effect."
        " Exit status: 0 consistent, 1 inconsistent (or other findings, with --fail-on), 2 bad"
        " input."
    )
    arguments.add_sources(parser, "a store, or ")
    arguments.add_storage_options(parser)
    arguments.add_rules(parser)
    arguments.add_import_map(parser)
    arguments.add_number(parser, "--limit", 3, "proofs that are shown of each constraint")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="only list the axioms outside OWL 2 RL, with the reasons; nothing is derived",
    )
    parser.add_argument(
        "--fail-on",
        action="append",
        choices=(*KINDS, "all"),
        default=[],
        help="findings with which the exit status is 1, besides contradictions; may be given"
        " several times",
    )
    arguments.add_equality(parser)
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=check)


def check(options: argparse.Namespace) -> int:
    """Load, check the constraints and report; returns the exit status."""
    progress = Progress.of(options)
    with progress.watched():
        clock = Clock()
        skipped, samples = 0, tuple[Skipped, ...]()
        if any(is_store(arguments.place_of(options, source)) for source in options.sources):
            if len(options.sources) > 1 or options.rules:
                raise InvalidInput(
                    "E313",
                    "a store excludes other sources and --rules: it is checked by its own rules",
                    "add facts and rules to it with 'corollary update'",
                )
            kb = open_store(options, options.sources[0])
        else:
            rules = [NO_RULES] if options.profile else arguments.rules_of(options)
            kb, loaded = load_files(options, rules, options.sources, progress)
            skipped, samples = loaded.skipped, loaded.samples
        clock.lap("load")
        if options.profile:
            found = CheckReport(outside_profile=tuple(profile(kb.state)))
        else:
            found = kb.check(limit=options.limit)
        clock.lap("check")
    if options.json:
        report = found.to_json() | {
            "facts": kb.count(),
            "seconds": {phase: round(spent, 6) for phase, spent in clock.seconds.items()},
        }
        print_json(report | describe_skipped(skipped, samples))
    else:
        print(_profile_text(found) if options.profile else found)
    print_skipped(skipped, samples)
    if not options.quiet and not options.json:
        print(f"{kb.count():,} facts, seconds: {format_seconds(clock.seconds)}", file=sys.stderr)
    kinds = KINDS if "all" in options.fail_on else ("contradictions", *options.fail_on)
    return 1 if found.findings(kinds) else 0


def _profile_text(found: CheckReport) -> str:
    axioms = "\n".join(map(str, found.outside_profile))
    return axioms or "all axioms are in OWL 2 RL"
