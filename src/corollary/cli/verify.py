"""`corollary verify`: check that a store is intact, and its materialization correct."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.cli.progress import Progress, Steps


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Read every file of a version, compare counts, derive everything again from the"
        " explicit facts, and compare. Exit status: 0 if the store is correct, 1 if it is not."
    )
    arguments.add_store(parser)
    arguments.add_version(parser)
    parser.add_argument(
        "--files-only", action="store_true", help="read and compare files, derive nothing"
    )
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=verify)


def verify(options: argparse.Namespace) -> int:
    """Verify everything and report; returns the exit status."""
    from corollary.knowledge_base.verify import verify_store  # loads the compiler

    progress = Progress.of(options)
    with progress.watched(), Steps(quiet=options.quiet) as steps:
        found = verify_store(
            arguments.place_of(options),
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
        print_json(report)
    else:
        for error in found.problems:
            print(error.render())
        if not found.problems:
            how = "all files are intact" if options.files_only else "rederived"
            print(f"version {found.version} is correct: {found.facts:,} facts, {how}")
    return 1 if found.problems else 0
