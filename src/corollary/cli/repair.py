"""`corollary repair`: rebuild what can be derived from the tables of a store."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.cli.progress import Steps


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Rebuild the column cache, checkpoints and statistics of a store from its"
        " tables, remove damaged files that the next update on Spark writes again, and list what"
        " cannot be rebuilt and which versions can be read. Log entries and data files are never"
        " changed. Exit status: 0 the newest version is intact, 1 something is lost."
    )
    arguments.add_store(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=repair)


def repair(options: argparse.Namespace) -> int:
    """Repair and report; returns the exit status."""
    from corollary.store.repair import repair as repair_store  # loads the compiler

    with Steps(quiet=options.quiet) as steps:
        found = repair_store(arguments.place_of(options), steps)
    if options.json:
        report = {
            "version": found.version,
            "repaired": found.repaired,
            "problems": [error.as_json()["error"] for error in found.problems],
            "readable": found.readable,
        }
        print_json(report)
    else:
        for name in found.repaired:
            print(f"rebuilt {name}")
        for error in found.problems:
            print(error.render())
        if found.problems:
            versions = ", ".join(map(str, found.readable)) or "none"
            print(f"versions that can be read: {versions}")
        elif not found.repaired:
            print(f"version {found.version} needs no repair")
    return 1 if found.problems else 0
