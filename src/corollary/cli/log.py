"""`corollary log`: the versions of a store."""

from __future__ import annotations

import argparse
import json
from itertools import islice
from typing import Any

from corollary.cli.arguments import positive
from corollary.cli.stores import add_output, add_store
from corollary.store import Store


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "log",
        help="the versions of a store",
        description="List the versions of a store, the newest first: when, by whom, what changed.",
    )
    add_store(parser)
    parser.add_argument("--limit", type=positive, metavar="N", help="the newest N (default: all)")
    add_output(parser)
    parser.set_defaults(command=log)


def log(options: argparse.Namespace) -> None:
    """Print the commits."""
    rows = []
    for commit in islice(Store.open(options.store).log(), options.limit):
        found = commit.statistics
        rows.append(
            {
                "version": commit.version,
                "time": commit.time,
                "author": commit.author,
                "kind": commit.kind,
                "message": commit.message,
                "inserted": found.inserted,
                "deleted": found.deleted,
                "explicit": found.explicit,
                "facts": found.facts,
                "rules": commit.rules,
                "algorithm": found.algorithm,
                "engine": found.engine,
                "seconds": round(sum(found.seconds.values()), 6),
                "batch": commit.batch,
            }
        )
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        changed = f"+{row['inserted']:,} -{row['deleted']:,}"
        how = f"{row['algorithm'] or row['kind']}, {row['seconds']:.2f} s"
        line = f"{row['version']:>6}  {row['time']}  {row['author']:<10}  {changed:<16}  {how:<24}"
        print(f"{line}  {row['message']}".rstrip())
