"""`corollary log`: the versions of a store."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from corollary.cli.arguments import positive
from corollary.cli.stores import add_output, add_store
from corollary.errors import OperationFailed
from corollary.store import Store


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "log",
        help="the versions of a store",
        description="List the versions of a store, the newest first: when, by whom, what changed."
        " Exit status: 1 if a log entry is damaged; the others are listed.",
    )
    add_store(parser)
    parser.add_argument("--limit", type=positive, metavar="N", help="the newest N (default: all)")
    add_output(parser)
    parser.set_defaults(command=log)


def log(options: argparse.Namespace) -> int:
    """Print the commits, and the log entries that are damaged; the exit status."""
    rows: list[dict[str, Any]] = []
    damaged: list[OperationFailed] = []
    for commit in Store.open(options.store).log_entries():
        if len(rows) == options.limit:
            break
        if isinstance(commit, OperationFailed):
            damaged.append(commit)
            continue
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
    for error in damaged:
        text = json.dumps(error.as_json(), ensure_ascii=False) if options.json else error.render()
        print(text, file=sys.stderr)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 1 if damaged else 0
    for row in rows:
        changed = f"+{row['inserted']:,} -{row['deleted']:,}"
        how = f"{row['algorithm'] or row['kind']}, {row['seconds']:.2f} s"
        line = f"{row['version']:>6}  {row['time']}  {row['author']:<10}  {changed:<16}  {how:<24}"
        print(f"{line}  {row['message']}".rstrip())
    return 1 if damaged else 0
