"""`corollary sync`: keep relations of a store equal to Delta tables."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.output import print_json, print_rows
from corollary.cli.progress import Progress
from corollary.cli.stores import stored_outcome
from corollary.knowledge_base.sync import sync


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Make relations of a store equal to Delta tables, and maintain what follows, in one commit."
        " Of a table that the store shows already, only the files that have changed are read."
    )
    arguments.add_store(parser)
    parser.add_argument(
        "tables",
        nargs="*",
        metavar="RELATION[(COLUMN, …)]=TABLE",
        help="a relation, or 'triples', and the folder or address of the Delta table whose rows are"
        " its explicit facts (default: the tables of the last time)",
    )
    parser.add_argument(
        "--full", action="store_true", help="read all rows, not only what has changed"
    )
    arguments.add_message(parser)
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Synchronize and report."""
    place = arguments.place_of(options)
    progress = Progress.of(options)
    progress.outcome = stored_outcome(place)
    with progress.watched():
        done = sync(
            place,
            options.tables,
            options=dict(options.storage_option),
            message=options.message,
            full=options.full,
            threads=options.threads,
            limit_memory=options.limit_memory,
        )
    if options.json:
        print_json(done.to_json())
    elif not options.quiet:
        rows = [("version", f"{done.version} (+{done.inserted:,} -{done.deleted:,} facts)")]
        for relation, table in done.tables.items():
            read = "all of version" if table.since is None else f"versions {table.since} to"
            counts = f"+{table.inserted:,} -{table.deleted:,} rows"
            rows.append((relation, f"{counts} ({read} {table.version})"))
        print_rows(rows)
