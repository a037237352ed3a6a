"""`corollary vacuum`: remove the files of a store that no version needs."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.interrupts import leaving
from corollary.cli.output import print_json


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = "Remove files that no version needs, and old versions with --keep."
    arguments.add_store(parser)
    parser.add_argument(
        "--keep",
        type=arguments.positive,
        metavar="N",
        help="keep the newest N versions (default: all)",
    )
    arguments.add_number(
        parser,
        "--older-than",
        24.0,
        "minimum age of uncommitted files, which may belong to an active writer",
        float,
        "HOURS",
    )
    parser.add_argument("--dry-run", action="store_true", help="list the files, remove nothing")
    arguments.add_output(parser)
    parser.set_defaults(command=vacuum)


def vacuum(options: argparse.Namespace) -> None:
    """Remove files and report their names."""
    from corollary.store import Store  # loads PyArrow
    from corollary.store.compaction import vacuum as vacuum_store  # loads the compiler

    store = Store.open(arguments.place_of(options))
    with leaving(lambda: "some files that no version needs may remain"):
        removed = vacuum_store(
            store, keep=options.keep, older_than=options.older_than, dry_run=options.dry_run
        )
    names = [store.name_of(path) for path in removed]
    if options.json:
        print_json({"removed": names, "dry_run": options.dry_run})
    else:
        print(*names, sep="\n" if names else "")
        print(f"{len(names)} files {'would be ' if options.dry_run else ''}removed")
