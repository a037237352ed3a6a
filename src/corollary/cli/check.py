"""`corollary check`: what the facts contradict, each with its proof."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corollary.cli.arguments import (
    add_resources,
    add_rules,
    describe_skipped,
    positive,
    print_skipped,
)
from corollary.cli.progress import Clock, Limits, Progress
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import EQUALITY, KnowledgeBase
from corollary.knowledge_base.persistence import is_store
from corollary.knowledge_base.rules import NO_RULES, read_rules
from corollary.rdf.triples import Skipped

_DEFAULT = "owl-rl"


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="find inconsistencies, each with its proof",
        description="Derive everything that follows from files, and report which constraints the"
        " facts contradict. Exit status: 0 consistent, 1 inconsistent, 2 bad input.",
    )
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="FILE",
        help="a store, or RDF files, .dl files, tables of facts, folders and patterns",
    )
    add_rules(parser, f"{_DEFAULT}, or {NO_RULES} if a FILE is a .dl file")
    parser.add_argument(
        "--limit",
        type=positive,
        default=3,
        metavar="N",
        help="proofs that are shown of each constraint (default: 3)",
    )
    parser.add_argument(
        "--equality",
        choices=EQUALITY,
        default=EQUALITY[0],
        help="equal terms: by the rules, or one stands for all (default: %(default)s)",
    )
    add_resources(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress and no statistics")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(command=check)


def check(options: argparse.Namespace) -> int:
    """Load, look for contradictions, report; the exit status."""
    progress = Progress(Limits.of(options), quiet=options.quiet)
    with progress.watched():
        clock = Clock()
        kb, skipped = _opened(options) or _loaded(options, progress)
        clock.lap("load")
        found = kb.inconsistencies(limit=options.limit)
        clock.lap("check")
    report = {
        "consistent": not found,
        "inconsistencies": [one.to_json() for one in found],
        "facts": kb.count(),
        "seconds": {phase: round(spent, 6) for phase, spent in clock.seconds.items()},
        **describe_skipped(*skipped),
    }
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        print("\n".join(map(str, found)) or "consistent")
    print_skipped(*skipped)
    if not options.quiet and not options.json:
        spent = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in clock.seconds.items())
        print(f"{kb.count():,} facts, seconds: {spent}", file=sys.stderr)
    return 1 if found else 0


_Checked = tuple[KnowledgeBase, tuple[int, Sequence[Skipped]]]


def _opened(options: argparse.Namespace) -> _Checked | None:
    """The knowledge base of a store, if one is named."""
    if not any(is_store(source) for source in options.sources):
        return None
    if len(options.sources) > 1 or options.rules:
        raise InvalidInput(
            "E341",
            "a store is checked alone, by its own rules",
            "'corollary update' adds facts and rules to it",
        )
    kb = KnowledgeBase.open(
        options.sources[0], threads=options.threads, limit_memory=options.limit_memory
    )
    return kb, (0, ())


def _loaded(options: argparse.Namespace, progress: Progress) -> _Checked:
    kb = KnowledgeBase(
        read_rules(options.rules or _default(options.sources)),
        equality=options.equality,
        threads=options.threads,
        limit_memory=options.limit_memory,
    )
    done = kb.load(
        *options.sources,
        on_error=options.on_error,
        on_progress=progress.reading,
        limit_input_bytes=options.limit_input_bytes,
    )
    return kb, (done.skipped, done.samples)


def _default(sources: Sequence[str]) -> str:
    return NO_RULES if any(Path(source).suffix == ".dl" for source in sources) else _DEFAULT
