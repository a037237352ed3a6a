"""`corollary explain`: print a smallest proof of a fact in a store."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.output import print_proof
from corollary.cli.progress import Progress


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = "Print a smallest proof of a fact such as '[:ann, a, :Person]'."
    arguments.add_store(parser)
    parser.add_argument("fact", metavar="FACT", help="a triple or atom in the rule language")
    arguments.add_version(parser)
    arguments.add_proof_format(parser, "--format", "a tree, JSON, or a graph for Graphviz")
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=explain)


def explain(options: argparse.Namespace) -> None:
    """Print the proof."""
    from corollary.cli.loading import open_store  # loads the engines

    with Progress.of(options).watched():
        proof = open_store(options).explain(options.fact)
        print_proof(proof, "json" if options.json else options.format)
