"""`corollary explain`: a smallest proof of a fact of a store."""

from __future__ import annotations

import argparse
import json
from typing import Any

from corollary.cli.arguments import add_resources
from corollary.cli.progress import Limits, Progress
from corollary.cli.stores import add_output, add_store, add_version
from corollary.knowledge_base.base import KnowledgeBase


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "explain",
        help="why a fact of a store holds",
        description="Print a smallest proof of a fact such as '[:ann, a, :Person]'.",
    )
    add_store(parser)
    parser.add_argument("fact", metavar="FACT", help="a triple or atom in the rule language")
    add_version(parser)
    parser.add_argument(
        "--format",
        choices=("tree", "json", "dot"),
        default="tree",
        help="a tree, JSON, or a graph for Graphviz (default: tree)",
    )
    add_resources(parser)
    add_output(parser)
    parser.set_defaults(command=explain)


def explain(options: argparse.Namespace) -> None:
    """Print the proof."""
    progress = Progress(Limits.of(options), quiet=options.quiet)
    with progress.watched():
        kb = KnowledgeBase.open(
            options.store,
            at_version=options.at_version,
            threads=options.threads,
            limit_memory=options.limit_memory,
        )
        proof = kb.explain(options.fact)
        match "json" if options.json else options.format:
            case "json":
                print(json.dumps(proof.to_json(), ensure_ascii=False))
            case "dot":
                print(proof.to_dot())
            case _:
                print(proof)
