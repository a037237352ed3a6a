"""`corollary diff`: compare two versions of a store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.errors import InvalidInput
from corollary.store import Store
from corollary.store.layout import FORMATS, WHICH

if TYPE_CHECKING:
    from corollary.knowledge_base.differences import Differences
    from corollary.store.commits import Commit


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
    parser.add_argument(
        "--trivial",
        action="store_true",
        help="print also derived facts that say little, such as [:a, owl:sameAs, :a] or membership"
        " of owl:Thing or an unnamed class; files, other formats and counts always have them",
    )
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
        changes_since,
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
        omitted = 0

        def counted() -> Iterator[tuple[Commit, Differences]]:
            nonlocal omitted
            for commit, found in changes_since(store, options.first):
                omitted += found.omitted("rdfp", which)
                yield commit, found

        write_feed(counted(), sys.stdout, which)
        note_omitted(omitted, quiet=options.quiet)
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
        lines = [*found.lines(which, trivial=options.trivial)]
        sys.stdout.writelines(f"{line}\n" for line in lines)
        hidden = sum(1 for _ in found.lines(which)) - len(lines) if not options.trivial else 0
        if hidden and not options.quiet:
            print(
                f"{hidden:,} trivial changes are not shown; --trivial shows them", file=sys.stderr
            )
    else:
        found.print(sys.stdout, options.format, which)
    if options.out or not options.json:
        note_omitted(found.omitted(options.format, which), quiet=options.quiet)


def note_omitted(number: int, *, quiet: bool) -> None:
    """Say on stderr how many changes a format left out."""
    if number and not quiet:
        many = "change is" if number == 1 else "changes are"
        text = f"omitted: {number:,} {many} of plain relations or named graphs, not of triples"
        print(text, file=sys.stderr)


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
