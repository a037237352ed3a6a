"""`corollary diff`: compare two versions of a store."""

from __future__ import annotations

import argparse
import sys

from corollary.cli import arguments
from corollary.cli.output import print_changes, print_json
from corollary.errors import InvalidInput
from corollary.store import Store
from corollary.store.layout import FORMATS, WHICH


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Print the changes from the first version to the second one: + for inserted facts, - for"
        " deleted facts, ! for derived facts that became explicit, ~ for explicit facts that became"
        " derived. V2 defaults to the newest version."
    )
    arguments.add_store(parser)
    parser.add_argument("first", metavar="V1", type=arguments.natural, help="a version")
    parser.add_argument(
        "second", metavar="V2", type=arguments.natural, nargs="?", help="another one"
    )
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
    arguments.add_trivial(parser)
    parser.add_argument(
        "--schema",
        action="store_true",
        help="say in sentences how the classes and properties differ, instead of the facts",
    )
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=show)


def show(options: argparse.Namespace) -> None:
    """Print or write the changes between two versions."""
    from corollary.knowledge_base.differences import (  # loads the compiler
        diff,
        write_feed,
    )

    store = Store.open(arguments.place_of(options))
    if options.schema:
        _show_schema(options, store.latest() if options.second is None else options.second)
        return
    which = options.facts or ("explicit" if options.format == "rdfp" else "all")
    if options.each:
        if options.format != "rdfp" or options.second is not None or options.out:
            raise InvalidInput("E313", "--each needs --format rdfp, and takes neither V2 nor --out")
        omitted = write_feed(store, options.first, sys.stdout, which)
        note_omitted(omitted, options.format, quiet=options.quiet)
        return
    second = store.latest() if options.second is None else options.second
    found = diff(store, options.first, second)
    if options.out:
        found.write(options.out, options.format, which)
    elif options.format in ("arrow", "parquet", "nt"):
        raise InvalidInput("E313", f"--format {options.format} needs --out")
    if options.json:
        report = {"from": options.first, "to": second, **found.counts()}
        report["inserted"] = report["inserted_explicit"] + report["inserted_derived"]
        report["deleted"] = report["deleted_explicit"] + report["deleted_derived"]
        print_json(report)
    elif options.out:
        pass
    elif options.format == "text":
        print_changes(found, options, which)
    else:
        found.print(sys.stdout, options.format, which)
    if options.out or not options.json:
        number = found.omitted(options.format, which)
        note_omitted(number, options.format, quiet=options.quiet)


def note_omitted(number: int, format_: str, *, quiet: bool) -> None:
    """Say on stderr how many changes a format left out."""
    if number and not quiet:
        many = "change is" if number == 1 else "changes are"
        what = "plain relations or named graphs" if format_ == "nt" else "plain relations"
        print(f"omitted: {number:,} {many} of {what}", file=sys.stderr)


def _show_schema(options: argparse.Namespace, second: int) -> None:
    from corollary.knowledge_base.base import KnowledgeBase  # loads the engines
    from corollary.knowledge_base.schema_changes import schema_changes

    if options.out or options.each or options.facts or options.format != "text":
        raise InvalidInput("E313", "--schema prints sentences: leave out the other flags")
    place = arguments.place_of(options)
    versions = (
        KnowledgeBase.open(
            place, at_version=version, threads=options.threads, limit_memory=options.limit_memory
        )
        for version in (options.first, second)
    )
    before, after = (kb.schema() for kb in versions)
    sentences = schema_changes(before, after)
    if options.json:
        print_json({"from": options.first, "to": second, "changes": sentences})
    else:
        print("\n".join(sentences) or "the schema is the same")
