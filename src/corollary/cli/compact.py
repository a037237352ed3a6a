"""`corollary compact`: merge the small files of a store."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.interrupts import leaving
from corollary.cli.output import print_json
from corollary.cli.stores import stored_outcome


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Merge small files of a store, in a commit of its own that changes no fact. Updates do this"
        " automatically when there are many small files."
    )
    arguments.add_store(parser)
    parser.add_argument("--full", action="store_true", help="merge all files, not only small ones")
    arguments.add_output(parser)
    parser.set_defaults(command=compact)


def compact(options: argparse.Namespace) -> None:
    """Merge files and report the commit."""
    from corollary.store import Store  # loads PyArrow
    from corollary.store.compaction import compact as compact_store  # loads the compiler

    store = Store.open(arguments.place_of(options))
    with leaving(stored_outcome(store.path)):
        commit = compact_store(store, full=options.full)
    if options.json:
        report = {"version": store.latest(), "compacted": commit is not None}
        print_json(report | {"files": len(store.snapshot().fact_data)})
    else:
        print(f"version {commit.version}: {commit.message}" if commit else "nothing to merge")
