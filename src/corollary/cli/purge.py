"""`corollary purge`: erase statements from all versions of a store."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from corollary.cli import arguments
from corollary.cli.loading import read_options
from corollary.cli.output import print_json, print_rows
from corollary.errors import InvalidInput
from corollary.knowledge_base.purging import Purged
from corollary.knowledge_base.purging import purge as erase


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Erase explicit facts, and what followed from them, from all versions, change feeds and"
        " caches of a store in a local folder, and commit a version that records it. The history"
        " is replayed without the facts; numbers, times, authors and messages of versions stay."
        " Nobody else may write to the store meanwhile. Exports, clones and backups stay."
    )
    arguments.add_store(parser)
    parser.add_argument(
        "--statements",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="files with the facts to erase",
    )
    parser.add_argument(
        "--about",
        action="extend",
        nargs="+",
        default=[],
        metavar="TERM",
        help="erase all facts with a term in any place, such as '<http://example.org/ann>'",
    )
    arguments.add_graph(parser, "erase the statements of --statements from this named graph only")
    arguments.add_on_error(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=purge)


def purge(options: argparse.Namespace) -> None:
    """Purge a store and report."""
    if not options.statements and not options.about:
        raise InvalidInput("E313", "nothing to purge", "give --statements or --about")
    place = arguments.place_of(options)
    done = erase(
        place,
        statements=options.statements,
        about=options.about,
        graph=options.graph,
        **read_options(options),
    )
    if options.json:
        print_json(asdict(done))
    elif not options.quiet:
        print_rows(_rows(done))
    if not options.quiet:
        for rule in done.rules:
            print(f"still mentioned in the rule {rule}", file=sys.stderr)
        for version in done.messages:
            print(f"still mentioned in the message of version {version}", file=sys.stderr)


def _rows(done: Purged) -> list[tuple[str, str]]:
    return [
        ("version", str(done.version)),
        ("erased", f"{done.statements:,} explicit facts, from {done.versions:,} versions"),
        ("axioms", f"{len(done.axioms):,} erased"),
        ("terms", f"{done.terms:,} forgotten"),
        ("newest version", f"-{done.facts:,} facts, derived ones included"),
    ]
