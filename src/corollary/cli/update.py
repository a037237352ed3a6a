"""`corollary update`: change a store and maintain its materialization."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.cli import arguments
from corollary.cli.loading import open_store, read_options
from corollary.cli.output import print_report, print_skipped
from corollary.cli.progress import Clock, Progress, Steps
from corollary.cli.stores import stored_outcome
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base import spark
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.differences import Differences, committed_differences, diff
from corollary.knowledge_base.imports import import_map_of
from corollary.knowledge_base.patches import apply_patch
from corollary.knowledge_base.persistence import Committed, refuse_too_large
from corollary.knowledge_base.report import Report
from corollary.knowledge_base.transaction import TransactionChanges
from corollary.store import Store

if TYPE_CHECKING:
    from corollary.knowledge_base.spark.built import Built

_Outcome = tuple[Report, dict[str, list[str]]]
_STAGES = ("session", "parse", "encode", "update", "commit")  # on Spark
_SUFFIXES = {".arrow": "arrow", ".parquet": "parquet", ".rdfp": "rdfp", ".gz": "rdfp"}


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Insert and delete explicit facts, add and remove rules, derive what changes,"
        " and commit it as one version. A fact that is deleted and inserted is inserted."
    )
    arguments.add_store(parser)
    for flag, what in (
        ("--insert", "files with facts that become explicit"),
        ("--delete", "files with facts that are no longer explicit"),
        ("--add-rules", ".dl files with rules to add"),
        ("--remove-rules", ".dl files with rules to remove"),
        ("--patch", "RDF Patch files: each transaction is a commit of its own"),
    ):
        parser.add_argument(flag, action="extend", nargs="+", default=[], metavar="FILE", help=what)
    arguments.add_algorithm(parser, "the maintenance algorithm")
    arguments.add_spark(parser, "columnar")
    parser.add_argument(
        "--changes",
        metavar="FILE",
        help="write the changes: .rdfp (RDF Patch), .arrow, .parquet, or text; - prints them",
    )
    arguments.add_import_map(parser)
    arguments.add_on_error(parser)
    arguments.add_message(parser)
    parser.add_argument(
        "--retries",
        type=arguments.positive,
        default=5,
        metavar="N",
        help="how often to retry if another writer committed first (default: 5)",
    )
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=update)


def update(options: argparse.Namespace) -> None:
    """Change a store and report."""
    facts = options.insert or options.delete
    rules = options.add_rules or options.remove_rules
    if not facts and not rules and not options.patch:
        raise InvalidInput(
            "E313",
            "nothing to change",
            "give --insert, --delete, --add-rules, --remove-rules or --patch",
        )
    if options.patch and (facts or rules):
        raise InvalidInput(
            "E313",
            "--patch excludes other changes",
            "each of its transactions is a commit of its own",
        )
    store = Store.open(arguments.place_of(options))
    progress = Progress.of(options)
    progress.outcome = stored_outcome(store.path)
    report: Report
    with progress.watched():
        if options.engine == "spark":
            before = store.latest()
            report = built = _on_spark(options)
            more = _show_changes(options, lambda: diff(store, before, built.version))
        else:
            report, more = _retried(lambda: _in_process(options, store), options)
    print_report(report, options, **more)
    print_skipped(report.skipped, report.samples)


def _show_changes(
    options: argparse.Namespace, differences: Callable[[], Differences]
) -> dict[str, list[str]]:
    """Print or write the changes; with --json, return them for the report."""
    if not options.changes:
        return {}
    found = differences()
    if options.changes != "-":
        found.write(options.changes, _SUFFIXES.get(Path(options.changes).suffix, "text"), "all")
    elif options.json:
        return {"changes": list(found.lines("all"))}
    else:
        found.print(sys.stdout, "text", "all")
    return {}


def _retried(work: Callable[[], _Outcome], options: argparse.Namespace) -> _Outcome:
    retries = 0 if options.patch else options.retries
    for attempt in range(retries + 1):
        try:
            return work()
        except OperationFailed as error:
            if error.code != "E502" or attempt == retries:
                raise
            if not options.quiet:
                print(f"{error.message}: retrying", file=sys.stderr)
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _on_spark(options: argparse.Namespace) -> Built:
    if options.patch:
        raise InvalidInput("E313", "--patch needs --engine columnar", "leave out --engine spark")
    with Steps(quiet=options.quiet, stages=_STAGES) as steps:
        return spark.update(
            arguments.place_of(options),
            insert=options.insert,
            delete=options.delete,
            add_rules=options.add_rules,
            remove_rules=options.remove_rules,
            algorithm=options.algorithm,
            master=options.master,
            **read_options(options),
            message=options.message,
            on_progress=steps,
        )


def _in_process(options: argparse.Namespace, store: Store) -> _Outcome:
    clock = Clock()
    refuse_too_large(store, options.limit_memory)
    kb = open_store(options)
    since = kb.version
    clock.lap("open")
    steps = Steps(quiet=options.quiet)
    inserted = deleted = 0
    committed: list[Committed] = []  # the last one, or all to show their changes
    for changes in _applied(kb, options):
        assert changes.committed is not None, "the knowledge base is in a store"
        if not options.changes:
            committed.clear()
        committed.append(changes.committed)
        inserted += changes.committed.statistics.inserted
        deleted += changes.committed.statistics.deleted
        if options.patch:
            steps(f"version {changes.version}")
    if not committed:
        raise InvalidInput("E508", "the patch has no transaction", file=options.patch[0])
    clock.lap("update")
    if not options.patch:
        clock.move("commit", clock.seconds["update"] - changes.statistics.seconds["update"])
    last = committed[-1]
    report = Report.of(
        last.version, last.statistics, clock.seconds, changes.skipped, changes.samples
    )
    more = _show_changes(options, lambda: committed_differences(kb.state, committed, since))
    return replace(report, inserted=inserted, deleted=deleted), more


def _applied(kb: KnowledgeBase, options: argparse.Namespace) -> Iterator[TransactionChanges]:
    """Apply the transactions of the command in order.

    Each transaction of a patch is a commit; commits before a mistake or a conflict persist.
    """
    for path in options.patch:
        yield from apply_patch(kb, path, limit_input_bytes=options.limit_input_bytes)
    if options.patch:
        return
    reading = read_options(options)
    with kb.transaction(message=options.message) as tx:
        for path in options.delete:
            tx.delete_from(path, **reading)
        if options.insert:
            tx.load(*options.insert, import_map=import_map_of(options.import_map), **reading)
        for path in options.remove_rules:
            tx.remove_rules(Path(path))
        for path in options.add_rules:
            tx.add_rules(Path(path))
    yield tx.changes
