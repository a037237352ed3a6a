"""`corollary update`: change a store, and derive what changes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corollary.algorithms.kinds import ALGORITHMS
from corollary.cli.arguments import add_on_error, add_resources, describe_skipped, positive
from corollary.cli.progress import Limits, Progress, Steps
from corollary.cli.stores import (
    add_engine,
    add_output,
    add_store,
    print_report,
    print_samples,
    spark_pipeline,
    stored_outcome,
)
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.patches import apply_patch
from corollary.knowledge_base.persistence import refuse_too_large
from corollary.knowledge_base.transaction import TransactionChanges
from corollary.store import Store

_STAGES = ("session", "parse", "encode", "update", "commit")  # on Spark
_SUFFIXES = {".arrow": "arrow", ".parquet": "parquet", ".rdfp": "rdfp", ".gz": "rdfp"}


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "update",
        help="change the facts and rules of a store",
        description="Insert and delete explicit facts, add and remove rules, derive what changes,"
        " and commit it as one version. A fact that is deleted and inserted is inserted.",
    )
    add_store(parser)
    for flag, what in (
        ("--insert", "files with facts that become explicit"),
        ("--delete", "files with facts that are explicit no longer"),
        ("--add-rules", ".dl files with rules to add"),
        ("--remove-rules", ".dl files with rules to remove"),
        ("--patch", "RDF Patch files: each transaction is a commit of its own"),
    ):
        parser.add_argument(flag, action="extend", nargs="+", default=[], metavar="FILE", help=what)
    parser.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        default="auto",
        help="how the materialization is updated (default: auto)",
    )
    add_engine(parser, "columnar")
    parser.add_argument(
        "--changes",
        metavar="FILE",
        help="write what has changed: .rdfp (RDF Patch), .arrow, .parquet, or text; - prints it",
    )
    add_on_error(parser)
    parser.add_argument("--message", default="", metavar="TEXT", help="for the log")
    parser.add_argument(
        "--retries",
        type=positive,
        default=5,
        metavar="N",
        help="how often to begin again if another writer was faster (default: 5)",
    )
    add_resources(parser)
    add_output(parser)
    parser.set_defaults(command=update)


def update(options: argparse.Namespace) -> None:
    """Change a store, report."""
    facts = options.insert or options.delete
    rules = options.add_rules or options.remove_rules
    if not facts and not rules and not options.patch:
        raise InvalidInput(
            "E310", "there is nothing to change", "give --insert, --delete, --add-rules, …"
        )
    if options.patch and (facts or rules):
        raise InvalidInput(
            "E310", "a patch is applied alone", "its transactions are commits of their own"
        )
    store = Store.open(options.store)
    before = store.latest()
    progress = Progress(Limits.of(options), quiet=options.quiet)
    progress.outcome = stored_outcome(options.store)
    with progress.watched():
        if options.engine == "spark":
            report = _on_spark(options)
        elif options.patch:
            report = _patched(options, store)
        else:
            report = _retried(lambda: _in_process(options, store), options)
        if options.changes:
            _show_changes(options, store, before, report)
    print_report(report, options)
    print_samples(report)


def _show_changes(
    options: argparse.Namespace, store: Store, before: int, report: dict[str, Any]
) -> None:
    from corollary.knowledge_base.differences import diff  # loads the compiler

    found = diff(store, before, report["version"])
    suffix = Path(options.changes).suffix
    if options.changes != "-":
        found.write(options.changes, _SUFFIXES.get(suffix, "text"), "all")
    elif options.json:
        report["changes"] = list(found.lines("all"))
    else:
        for line in found.lines("all"):
            print(line)


def _retried(work: Callable[[], dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    for attempt in range(options.retries + 1):
        try:
            return work()
        except OperationFailed as error:
            if error.code != "E502" or attempt == options.retries:
                raise
            if not options.quiet:
                print(f"{error.message}: once more", file=sys.stderr)
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _on_spark(options: argparse.Namespace) -> dict[str, Any]:
    if options.patch:
        raise InvalidInput("E310", "--patch is for --engine columnar", "leave out --engine spark")
    with Steps(quiet=options.quiet, stages=_STAGES) as steps:
        done = spark_pipeline().update(
            options.store,
            insert=options.insert,
            delete=options.delete,
            add_rules=options.add_rules,
            remove_rules=options.remove_rules,
            algorithm=options.algorithm,
            master=options.master,
            on_error=options.on_error,
            limit_input_bytes=options.limit_input_bytes,
            message=options.message,
            on_progress=steps,
        )
    report: dict[str, Any] = done.to_json()
    return report


def _opened(options: argparse.Namespace, store: Store) -> KnowledgeBase:
    refuse_too_large(store, options.limit_memory)
    return KnowledgeBase.open(
        options.store,
        algorithm=options.algorithm,
        threads=options.threads,
        limit_memory=options.limit_memory,
    )


def _in_process(options: argparse.Namespace, store: Store) -> dict[str, Any]:
    started = time.perf_counter()
    kb = _opened(options, store)
    opened = time.perf_counter()
    limit = options.limit_input_bytes
    with kb.transaction(message=options.message) as tx:
        for path in options.delete:
            tx.delete_from(path, on_error=options.on_error, limit_input_bytes=limit)
        if options.insert:
            tx.load(*options.insert, on_error=options.on_error, limit_input_bytes=limit)
        for path in options.remove_rules:
            tx.remove_rules(Path(path))
        for path in options.add_rules:
            tx.add_rules(Path(path))
    spent = time.perf_counter() - opened
    update_ = tx.changes.statistics.seconds["update"]
    seconds = {"open": opened - started, "update": update_, "commit": spent - update_}
    return _report(store, tx.changes, seconds)


def _patched(options: argparse.Namespace, store: Store) -> dict[str, Any]:
    """Each transaction is a commit; those before a mistake, or before a conflict, stay."""
    started = time.perf_counter()
    kb = _opened(options, store)
    opened = time.perf_counter()
    steps = Steps(quiet=options.quiet)
    done: list[TransactionChanges] = []
    totals = {"inserted": 0, "deleted": 0}
    for path in options.patch:
        for changes in apply_patch(kb, path, limit_input_bytes=options.limit_input_bytes):
            done = [changes]
            commit = store.commit(changes.version).statistics
            totals["inserted"] += commit.inserted
            totals["deleted"] += commit.deleted
            steps(f"version {changes.version}")
    if not done:
        raise InvalidInput("E310", "the patch has no transaction", file=options.patch[0])
    seconds = {"open": opened - started, "update": time.perf_counter() - opened}
    return _report(store, done[-1], seconds) | totals


def _report(store: Store, changes: TransactionChanges, seconds: dict[str, float]) -> dict[str, Any]:
    commit = store.commit(changes.version)
    statistics = changes.statistics
    return {
        "version": changes.version,
        "explicit": commit.statistics.explicit,
        "facts": commit.statistics.facts,
        "inserted": commit.statistics.inserted,
        "deleted": commit.statistics.deleted,
        "rounds": statistics.rounds,
        "derivations": statistics.derivations,
        "seconds": {phase: round(spent, 6) for phase, spent in seconds.items()},
        "algorithm": statistics.algorithm,
        "reason": statistics.reason,
        "engine": "columnar",
        "complete": True,
        **describe_skipped(changes.skipped, changes.samples),
    }
