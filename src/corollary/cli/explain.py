"""`corollary explain`: print a smallest proof of a fact in a store."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.output import print_json, print_proof
from corollary.cli.progress import Progress


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = "Print a smallest proof of a fact such as '[:ann, a, :Person]'."
    arguments.add_store(parser)
    parser.add_argument("fact", metavar="FACT", help="a triple or atom in the rule language")
    arguments.add_version(parser)
    arguments.add_proof_format(parser, "--format", "a tree, JSON, or a graph for Graphviz")
    parser.add_argument(
        "--why-not",
        action="store_true",
        help="of what is not a fact: the rules that could derive it, with the premises that hold"
        " and those that are missing, nearest first",
    )
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=explain)


def explain(options: argparse.Namespace) -> None:
    """Print the proof."""
    from corollary.cli.loading import open_store  # loads the engines

    with Progress.of(options).watched():
        kb = open_store(options)
        if options.why_not:
            found = kb.why_not(options.fact)
            if options.json or options.format == "json":
                print_json(found.to_json())
            else:
                print(found)
            return
        proof = kb.explain(options.fact)
        print_proof(proof, "json" if options.json else options.format)
