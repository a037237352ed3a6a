"""`corollary info`: what a store holds."""

from __future__ import annotations

import argparse
import json
from typing import Any

from corollary.cli.stores import add_output, add_store, add_version
from corollary.store import Store


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "info", help="what a store holds", description="Show what a version of a store holds."
    )
    add_store(parser)
    add_version(parser)
    add_output(parser)
    parser.set_defaults(command=info)


def info(options: argparse.Namespace) -> None:
    """Print what a version consists of; no fact is read."""
    store = Store.open(options.store)
    snapshot = store.snapshot(options.at_version)
    commit, statistics = snapshot.commit, snapshot.statistics
    files = [*snapshot.fact_data, *snapshot.term_data]
    report = {
        "version": commit.version,
        "explicit": statistics.explicit,
        "facts": statistics.facts,
        "terms": commit.terms,
        "rules": commit.rules,
        "mode": commit.mode,
        "relations": {n: c.facts for n, c in sorted(statistics.relations.items()) if c.facts},
        "bytes": sum(file.size for file in files),
        "files": len(files),
        "equality": commit.equality,
        "format": commit.format,
        "oldest": store.oldest(),
        "time": commit.time,
        "author": commit.author,
    }
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
        return
    for name in ("version", "time", "author", "mode", "equality", "format"):
        print(f"{name:<12}{report[name]}")
    for name in ("facts", "explicit", "terms", "rules", "bytes", "files"):
        print(f"{name:<12}{report[name]:,}")
    for name, count in sorted(statistics.relations.items()):
        if count.facts:
            print(f"  {name:<24}{count.facts:,}, {count.facts - count.explicit:,} derived")
