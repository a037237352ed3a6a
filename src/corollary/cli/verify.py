"""`corollary verify`: whether a store is whole, and what follows from its facts."""

from __future__ import annotations

import argparse
import json
from typing import Any

from corollary.cli.arguments import add_resources
from corollary.cli.progress import Limits, Progress, Steps
from corollary.cli.stores import add_output, add_store, add_version


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "verify",
        help="recompute a store and compare",
        description="Read every file of a version, compare counts, derive everything again from the"
        " explicit facts, and compare. Exit status: 0 all is right, 1 something is not.",
    )
    add_store(parser)
    add_version(parser)
    parser.add_argument(
        "--files-only", action="store_true", help="read and compare files, derive nothing"
    )
    add_resources(parser)
    add_output(parser)
    parser.set_defaults(command=verify)


def verify(options: argparse.Namespace) -> int:
    """Look at everything, report; the exit status."""
    from corollary.knowledge_base.verify import verify_store  # loads the compiler

    progress = Progress(Limits.of(options), quiet=options.quiet)
    with progress.watched(), Steps(quiet=options.quiet) as steps:
        found = verify_store(
            options.store,
            version=options.at_version,
            derive=not options.files_only,
            threads=options.threads,
            limit_memory=options.limit_memory,
            on_progress=steps,
        )
    if options.json:
        problems = [error.as_json()["error"] for error in found.problems]
        report = {"version": found.version, "right": not problems, "problems": problems}
        report |= {"facts": found.facts, "seconds": found.seconds}
        print(json.dumps(report, ensure_ascii=False))
    else:
        for error in found.problems:
            print(error.render())
        if not found.problems:
            how = "files are whole" if options.files_only else "derived again"
            print(f"version {found.version} is right: {found.facts:,} facts, {how}")
    return 1 if found.problems else 0
