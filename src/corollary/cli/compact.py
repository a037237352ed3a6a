"""`corollary compact` and `corollary vacuum`: fewer files, and none that no version needs."""

from __future__ import annotations

import argparse
import json
from typing import Any

from corollary.cli.arguments import positive
from corollary.cli.interrupts import leaving
from corollary.cli.stores import add_output, add_store, stored_outcome
from corollary.store import Store


def add_arguments(commands: Any) -> None:
    """Add both commands to the command line."""
    parser = commands.add_parser(
        "compact",
        help="merge the small files of a store",
        description="Write small files of a store as one, in a commit of its own that changes no"
        " fact. Updates do this by themselves when files pile up.",
    )
    add_store(parser)
    parser.add_argument("--full", action="store_true", help="merge all files, not small ones only")
    add_output(parser)
    parser.set_defaults(command=merge)
    parser = commands.add_parser(
        "vacuum",
        help="remove files that no version needs",
        description="Remove files that belong to no version, and with --keep old versions.",
    )
    add_store(parser)
    parser.add_argument(
        "--keep", type=positive, metavar="N", help="keep the newest N versions (default: all)"
    )
    parser.add_argument(
        "--older-than",
        type=float,
        default=24.0,
        metavar="HOURS",
        help="of files that were never committed: a writer may be at work (default: 24)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be removed")
    add_output(parser)
    parser.set_defaults(command=remove)


def merge(options: argparse.Namespace) -> None:
    """Compact, report."""
    from corollary.store.compaction import compact  # loads the compiler

    store = Store.open(options.store)
    with leaving(stored_outcome(options.store)):
        commit = compact(store, full=options.full)
    if options.json:
        report = {"version": store.latest(), "compacted": commit is not None}
        print(json.dumps(report | {"files": len(store.snapshot().fact_data)}))
    else:
        text = f"version {commit.version}: {commit.message}" if commit else "nothing to merge"
        print(text)


def remove(options: argparse.Namespace) -> None:
    """Vacuum, report."""
    from corollary.store.compaction import vacuum  # loads the compiler

    store = Store.open(options.store)
    with leaving(lambda: "some files may be left that no version needs"):
        gone = vacuum(
            store, keep=options.keep, older_than=options.older_than, dry_run=options.dry_run
        )
    names = [path.relative_to(store.path).as_posix() for path in gone]
    if options.json:
        print(json.dumps({"removed": names, "dry_run": options.dry_run}))
    else:
        print(*names, sep="\n" if names else "")
        print(f"{len(names)} files {'would be ' if options.dry_run else ''}removed")
