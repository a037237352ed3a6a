"""`corollary schema`: print the hierarchies of classes and properties of a store."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.cli.progress import Progress


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Print the classes and properties of a store as trees, with the numbers of their instances"
        " or triples. 'inferred' marks a position that no explicit statement gives."
    )
    arguments.add_store(parser)
    arguments.add_version(parser)
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=schema)


def schema(options: argparse.Namespace) -> None:
    """Print the schema."""
    from corollary.cli.loading import open_store  # loads the engines

    with Progress.of(options).watched():
        found = open_store(options).schema()
        if options.json:
            print_json(found.to_json())
        else:
            print(found)
