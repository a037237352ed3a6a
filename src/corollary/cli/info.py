"""`corollary info`: summarize the content of a store."""

from __future__ import annotations

import argparse

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.lang.syntax import is_auxiliary


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = "Show what a version of a store holds."
    arguments.add_store(parser)
    arguments.add_version(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=info)


def info(options: argparse.Namespace) -> None:
    """Print a summary of a version, without reading facts."""
    from corollary.store import Store  # loads PyArrow

    store = Store.open(arguments.place_of(options))
    snapshot = store.snapshot(options.at_version)
    commit, statistics = snapshot.commit, snapshot.statistics
    relations = [
        (name, count)
        for name, count in sorted(statistics.relations.items())
        if count.facts and not is_auxiliary(name)
    ]
    files = [*snapshot.fact_data, *snapshot.term_data]
    report = {
        "version": commit.version,
        "explicit": statistics.visible.explicit,
        "facts": statistics.visible.facts,
        "terms": commit.terms,
        "rules": commit.rules,
        "mode": commit.mode,
        "relations": {name: count.facts for name, count in relations},
        "bytes": sum(file.size for file in files),
        "files": len(files),
        "equality": commit.equality,
        "format": commit.format,
        "oldest": store.oldest(),
        "time": commit.time,
        "author": commit.author,
    }
    if options.json:
        print_json(report)
        return
    for name in ("version", "time", "author", "mode", "equality", "format"):
        print(f"{name:<12}{report[name]}")
    for name in ("facts", "explicit", "terms", "rules", "bytes", "files"):
        print(f"{name:<12}{report[name]:,}")
    for name, count in relations:
        print(f"  {name:<24}{count.facts:,}, {count.facts - count.explicit:,} derived")
