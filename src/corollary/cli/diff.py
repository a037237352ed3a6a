"""`corollary diff`: what two versions differ by."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from corollary.cli.arguments import natural
from corollary.cli.stores import add_output, add_store
from corollary.errors import InvalidInput
from corollary.rdf.patch import write_patch
from corollary.store import Store
from corollary.store.layout import FORMATS, WHICH


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "diff",
        help="what two versions of a store differ by",
        description="Print the facts by which the second version differs from the first one: + and"
        " - for facts that came and went, ! for derived facts that are explicit now, ~ for explicit"
        " facts that are derived now. Without V2, it is the newest one.",
    )
    add_store(parser)
    parser.add_argument("first", metavar="V1", type=natural, help="a version")
    parser.add_argument("second", metavar="V2", type=natural, nargs="?", help="another one")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text, arrow, parquet, nt (a folder of four N-Triples files), rdfp (RDF Patch)"
        " (default: text)",
    )
    parser.add_argument("--out", metavar="FILE", help="where to write it (default: stdout)")
    parser.add_argument(
        "--facts",
        choices=WHICH,
        help="which facts (default: all; for rdfp: explicit, so that a patch can be applied)",
    )
    parser.add_argument(
        "--each", action="store_true", help="version by version: a feed of RDF Patch (with rdfp)"
    )
    add_output(parser)
    parser.set_defaults(command=show)


def show(options: argparse.Namespace) -> None:
    """Print or write the differences."""
    from corollary.knowledge_base.differences import (  # loads the compiler
        changes_since,
        diff,
        write_feed,
    )

    store = Store.open(options.store)
    which = options.facts or ("explicit" if options.format == "rdfp" else "all")
    if options.each:
        if options.format != "rdfp" or options.second is not None or options.out:
            raise InvalidInput("E310", "--each is for --format rdfp, from V1 on, on stdout")
        write_feed(changes_since(store, options.first), sys.stdout, which)
        return
    second = store.latest() if options.second is None else options.second
    found = diff(store, options.first, second)
    if options.out:
        found.write(options.out, options.format, which)
    elif options.format in ("arrow", "parquet", "nt"):
        raise InvalidInput("E310", f"--format {options.format} needs --out")
    if options.json:
        report = {"from": options.first, "to": second, **found.counts()}
        report["inserted"] = report["inserted_explicit"] + report["inserted_derived"]
        report["deleted"] = report["deleted_explicit"] + report["deleted_derived"]
        print(json.dumps(report))
    elif not options.out and options.format == "rdfp":
        write_patch(sys.stdout, iter([({"title": found.title}, *found.triples(which))]))
    elif not options.out:
        sys.stdout.writelines(f"{line}\n" for line in found.lines(which))
