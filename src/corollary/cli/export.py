"""`corollary export`: write the facts of a store as RDF, Parquet files or Delta tables."""

from __future__ import annotations

import argparse
import sys

from corollary.cli import arguments
from corollary.cli.loading import open_store
from corollary.cli.output import print_json, print_rows
from corollary.cli.progress import Progress
from corollary.errors import InvalidInput
from corollary.knowledge_base.export import EXPORT_FORMATS, TABLE_FORMATS, Which, export
from corollary.knowledge_base.graphs import graph_named


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Write the facts of a store, explicit and derived: its triples as RDF, or all facts as"
        " tables of terms, one per relation. Delta tables that an earlier export has written are"
        " updated by a merge of what has changed since."
    )
    arguments.add_store(parser)
    parser.add_argument(
        "--format",
        choices=EXPORT_FORMATS,
        default="nt",
        help="nt, ttl (all triples), nq, trig, jsonld (triples by graph), parquet (a folder of"
        " files), delta (a folder or an address with a Delta table for each relation)"
        " (default: nt)",
    )
    parser.add_argument(
        "--out",
        metavar="TARGET",
        help="a file, or a folder for parquet and delta (default: standard output)",
    )
    arguments.add_graph(
        parser, "the statements of a named graph, or of urn:x-corollary:default, alone"
    )
    facts = parser.add_mutually_exclusive_group()
    facts.add_argument("--explicit", action="store_true", help="explicit facts only")
    facts.add_argument("--derived", action="store_true", help="derived facts only")
    arguments.add_version(parser)
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=write)


def write(options: argparse.Namespace) -> None:
    """Export the facts and report what was written."""
    which: Which = "all"
    if options.explicit or options.derived:
        which = "explicit" if options.explicit else "derived"
    if options.out is None and (options.format in TABLE_FORMATS or options.json):
        need = "--json" if options.json else f"--format {options.format}"
        raise InvalidInput("E313", f"{need} needs --out", "name a file or a folder")
    progress = Progress.of(options)
    with progress.watched():
        kb = open_store(options)
        progress.state = "writing"
        if options.format == "delta":
            progress.outcome = lambda: "each table shows the old or the new version"
        elif options.out is None:
            progress.outcome = lambda: "what was printed may be incomplete"
        else:
            progress.outcome = lambda: f"some files in {options.out} may be new (each is whole)"
        target = arguments.place_of(options, options.out) if options.out else sys.stdout.buffer
        graph = None
        if options.graph is not None:
            graph = graph_named(options.graph, kb.prefixes)
        done = export(kb.state, target, options.format, which, graph=graph)
        sys.stdout.flush()
    if options.json:
        print_json(vars(done))
    elif not options.quiet:
        rows = [("version", str(done.version))]
        rows += [(name, f"{count:,} rows") for name, count in done.rows.items()]
        rows += [(f"{name}, changed", f"{count:,}") for name, count in done.changed.items()]
        if done.generalized:
            rows.append(("not RDF", f"{done.generalized:,} triples, such as those about literals"))
        if done.omitted:
            rows.append(("omitted", f"{done.omitted:,} facts of plain relations"))
        print_rows(rows)
