"""`corollary log`: list the versions of a store."""

from __future__ import annotations

import argparse
import json
import sys

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.errors import OperationFailed


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "List the versions of a store, the newest first: when, by whom, what changed."
        " Exit status: 1 if a log entry is damaged; the others are listed."
    )
    arguments.add_store(parser)
    parser.add_argument(
        "--limit", type=arguments.positive, metavar="N", help="the newest N (default: all)"
    )
    arguments.add_output(parser)
    parser.set_defaults(command=log)


def log(options: argparse.Namespace) -> int:
    """Print the commits, and damaged log entries; returns the exit status."""
    from corollary.store import Store  # loads PyArrow

    rows: list[dict[str, object]] = []
    damaged: list[OperationFailed] = []
    for commit in Store.open(arguments.place_of(options)).log_entries():
        if len(rows) == options.limit:
            break
        if isinstance(commit, OperationFailed):
            damaged.append(commit)
            continue
        rows.append(commit.summary())
    for error in damaged:
        text = json.dumps(error.as_json(), ensure_ascii=False) if options.json else error.render()
        print(text, file=sys.stderr)
    if options.json:
        print_json(rows)
        return 1 if damaged else 0
    for row in rows:
        changed = f"+{row['inserted']:,} -{row['deleted']:,}"
        how = f"{row['algorithm'] or row['kind']}, {row['seconds']:.2f} s"
        line = f"{row['version']:>6}  {row['time']}  {row['author']:<10}  {changed:<16}  {how:<24}"
        print(f"{line}  {row['message']}".rstrip())
    return 1 if damaged else 0
