"""`corollary revert`: commit the inverse of a version, or bring an older version back."""

from __future__ import annotations

import argparse
from functools import partial

from corollary.cli import arguments, update
from corollary.errors import InvalidInput
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.reverting import revert as request
from corollary.knowledge_base.reverting import revert_message
from corollary.knowledge_base.transaction import Transaction


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Commit the inverse of a version: undo its changes of facts, rules and axioms, and keep"
        " what later versions changed. With --to, bring back all facts, rules and axioms of a"
        " version. Either is an update and a new version; nothing is removed from the store."
    )
    arguments.add_store(parser)
    parser.add_argument(
        "version",
        metavar="VERSION",
        type=arguments.natural,
        nargs="?",
        help="the version to undo",
    )
    parser.add_argument(
        "--to", metavar="VERSION", type=arguments.natural, help="the version to bring back"
    )
    arguments.add_algorithm(parser, "the maintenance algorithm")
    update.add_commit(parser)
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=revert, engine="columnar", patch=[], sparql=None)


def revert(options: argparse.Namespace) -> None:
    """Revert and report."""
    if (options.version is None) == (options.to is None):
        raise InvalidInput("E313", "give either VERSION or --to VERSION")
    options.message = options.message or revert_message(options.version, options.to)
    update.run(options, partial(_fill, options))


def _fill(options: argparse.Namespace, kb: KnowledgeBase, tx: Transaction) -> None:
    request(tx, kb.state, options.version, options.to)
