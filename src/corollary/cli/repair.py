"""`corollary repair`: make again what can be made of the tables of a store."""

from __future__ import annotations

import argparse
import json
from typing import Any

from corollary.cli.progress import Steps
from corollary.cli.stores import add_output, add_store


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "repair",
        help="rebuild caches and other derived files of a store",
        description="Rebuild the column cache, checkpoints and statistics of a store from its"
        " tables, remove damaged files that the next update on Spark writes again, and list what"
        " cannot be rebuilt and which versions can be read. Log entries and data files are never"
        " changed. Exit status: 0 the newest version is whole, 1 something is lost.",
    )
    add_store(parser)
    add_output(parser)
    parser.set_defaults(command=repair)


def repair(options: argparse.Namespace) -> int:
    """Repair, report; the exit status."""
    from corollary.store.repair import repair as repair_store  # loads the compiler

    with Steps(quiet=options.quiet) as steps:
        found = repair_store(options.store, steps)
    if options.json:
        report = {
            "version": found.version,
            "repaired": found.repaired,
            "problems": [error.as_json()["error"] for error in found.problems],
            "readable": found.readable,
        }
        print(json.dumps(report, ensure_ascii=False))
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
