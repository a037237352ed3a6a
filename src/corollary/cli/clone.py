"""`corollary clone`: copy a store, also while others write to it."""

from __future__ import annotations

import argparse
import sys

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.engines.columnar.budget import format_bytes
from corollary.store.clone import clone as copy


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Copy a store with its versions into a new folder, also while others write to it. Caches"
        " are not copied: they are rebuilt."
    )
    arguments.add_store(parser)
    parser.add_argument("target", metavar="TARGET", help="an empty or new folder")
    arguments.add_version(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=clone)


def clone(options: argparse.Namespace) -> None:
    """Copy a store and report."""
    done = copy(arguments.place_of(options), options.target, at_version=options.at_version)
    if options.json:
        print_json(vars(done))
    elif not options.quiet:
        text = f"{options.target}: version {done.version}, {done.files:,} files,"
        print(f"{text} {format_bytes(done.bytes)}", file=sys.stderr)
