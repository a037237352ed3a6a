"""`corollary update`: change a store and maintain its materialization."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.cli import arguments
from corollary.cli.diff import note_omitted
from corollary.cli.loading import open_store, read_options
from corollary.cli.output import print_report, print_skipped
from corollary.cli.progress import Clock, Progress, Steps
from corollary.cli.stores import stored_outcome
from corollary.errors import InvalidInput, OperationFailed, Source
from corollary.knowledge_base import spark
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.differences import Differences, committed_differences, diff
from corollary.knowledge_base.imports import import_map_of
from corollary.knowledge_base.patches import apply_patch
from corollary.knowledge_base.persistence import Committed, refuse_too_large
from corollary.knowledge_base.preview import planned_commit
from corollary.knowledge_base.report import Report
from corollary.knowledge_base.transaction import Transaction
from corollary.knowledge_base.transaction_changes import TransactionChanges
from corollary.lang.printer import Printer
from corollary.store import Store

if TYPE_CHECKING:
    from corollary.knowledge_base.spark.built import Built

_Outcome = tuple[Report, dict[str, Any]]
_SHOWN = 3  # facts that were not deleted
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
        ("--add-rules", ".dl and .srl files with rules to add"),
        ("--remove-rules", ".dl and .srl files with rules to remove"),
        ("--patch", "RDF Patch files: each transaction is a commit of its own"),
    ):
        parser.add_argument(flag, action="extend", nargs="+", default=[], metavar="FILE", help=what)
    arguments.add_graph(parser, "the named graph that --insert and --delete are about")
    arguments.add_reason_over(parser, "as before")
    arguments.add_default_graph(parser)
    parser.add_argument(
        "--replace-graph",
        action="store_true",
        help="delete all other statements of --graph, so that it has those of --insert",
    )
    parser.add_argument(
        "--sparql",
        metavar="REQUEST",
        help="a SPARQL 1.1 Update request: a file, - (standard input), or the text itself",
    )
    parser.add_argument(
        "--load",
        choices=("files", "web", "none"),
        default="files",
        help="what LOAD may read: local files, also http and https, or nothing (default: files)",
    )
    arguments.add_algorithm(parser, "the maintenance algorithm")
    arguments.add_spark(parser, "columnar")
    add_commit(parser)
    arguments.add_import_map(parser)
    arguments.add_on_error(parser)
    arguments.add_resources(parser)
    arguments.add_output(parser)
    parser.set_defaults(command=update)


def add_commit(parser: arguments.Parser) -> None:
    """Add the arguments of all commands that commit one update."""
    parser.add_argument(
        "--changes",
        metavar="FILE",
        help="write the changes: .rdfp (RDF Patch), .arrow, .parquet, or text; - prints them",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would change, and the contradictions that would arise; commit nothing",
    )
    arguments.add_message(parser)
    parser.add_argument(
        "--retries",
        type=arguments.positive,
        default=5,
        metavar="N",
        help="how often to retry if another writer committed first (default: 5)",
    )


def update(options: argparse.Namespace) -> None:
    """Change a store and report."""
    facts = options.insert or options.delete
    rules = options.add_rules or options.remove_rules or options.reason_over
    if options.replace_graph and (options.graph is None or not options.insert):
        raise InvalidInput("E313", "--replace-graph needs --graph and --insert")
    has_request = options.sparql is not None
    if not facts and not rules and not options.patch and not has_request:
        raise InvalidInput(
            "E313",
            "nothing to change",
            "give --insert, --delete, --add-rules, --remove-rules, --sparql or --patch",
        )
    if options.patch and (facts or rules or has_request):
        raise InvalidInput(
            "E313",
            "--patch excludes other changes",
            "each of its transactions is a commit of its own",
        )
    if has_request and (facts or rules):
        hint = "run two commands; a request has INSERT, DELETE and LOAD"
        raise InvalidInput("E313", "--sparql excludes other changes", hint)
    if options.dry_run and (options.patch or options.engine == "spark"):
        flag = "--patch" if options.patch else "--engine spark"
        raise InvalidInput("E313", f"--dry-run excludes {flag}", "leave one of them out")
    if options.engine != "spark":
        arguments.refuse_session(options)
    if has_request:
        options.sparql = _request(options.sparql)
    run(options, partial(_fill, options))


Fill = Callable[[KnowledgeBase, Transaction], None]  # requests the changes of a command


def run(options: argparse.Namespace, fill: Fill) -> None:
    """Commit, or preview, the changes of a command, and report."""
    store = Store.open(arguments.place_of(options))
    progress = Progress.of(options)
    progress.outcome = stored_outcome(store.path)
    report: Report
    more: dict[str, Any]
    with progress.watched():
        if options.engine == "spark":
            before = store.latest()
            report = built = _on_spark(options)
            more = _show_changes(options, lambda: diff(store, before, built.version))
        else:
            report, more = _retried(lambda: _in_process(options, store, fill), options)
    print_report(report, options, **more)
    print_skipped(report.skipped, report.samples)


def _request(argument: str) -> Source:
    """Read the text of `--sparql`: a file that exists, -, or the text itself."""
    if argument == "-":
        return Source("<stdin>", sys.stdin.read())
    if "\n" not in argument and "{" not in argument and Path(argument).is_file():
        return Source.read(argument)
    return Source("<update>", argument)


def _show_changes(
    options: argparse.Namespace, differences: Callable[[], Differences]
) -> dict[str, list[str]]:
    """Print or write the changes; with --json, return them for the report."""
    if not options.changes:
        return {}
    found = differences()
    if options.changes != "-":
        format_ = _SUFFIXES.get(Path(options.changes).suffix, "text")
        found.write(options.changes, format_, "all")
        note_omitted(found.omitted(format_, "all"), quiet=options.quiet)
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
    for flag in ("patch", "sparql", "reason_over", "replace_graph"):
        if getattr(options, flag):
            hint = "leave out --engine spark"
            name = flag.replace("_", "-")
            raise InvalidInput("E313", f"--{name} needs --engine columnar", hint)
    with Steps(quiet=options.quiet, stages=_STAGES) as steps:
        return spark.update(
            arguments.place_of(options),
            insert=options.insert,
            delete=options.delete,
            add_rules=options.add_rules,
            remove_rules=options.remove_rules,
            algorithm=options.algorithm,
            graph=options.graph,
            **arguments.session_of(options),
            **read_options(options),
            message=options.message,
            on_progress=steps,
        )


def _in_process(options: argparse.Namespace, store: Store, fill: Fill) -> _Outcome:
    clock = Clock()
    refuse_too_large(store, options.limit_memory)
    kb = open_store(options, write_cache=not options.dry_run)
    since = kb.version
    clock.lap("open")
    if options.dry_run:
        return _previewed(kb, options, clock, fill)
    steps = Steps(quiet=options.quiet)
    inserted = deleted = 0
    committed: list[Committed] = []  # the last one, or all to show their changes
    for changes in _applied(kb, options, fill):
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
    more: dict[str, Any] = _show_changes(
        options, lambda: committed_differences(kb.state, committed, since)
    )
    if options.sparql is not None:
        more["not_deleted"] = _note_not_deleted(kb, changes, options)
    return replace(report, inserted=inserted, deleted=deleted), more


def _previewed(
    kb: KnowledgeBase, options: argparse.Namespace, clock: Clock, fill: Fill
) -> _Outcome:
    """Print the changes that would be committed, and the contradictions that would arise."""
    with kb.transaction() as tx:
        fill(kb, tx)
        found = tx.preview()
        tx.rollback()
    clock.lap("update")
    state, planned = found.state, planned_commit(kb.state, found)
    assert state is not None, "a preview has a state"
    options.changes = options.changes or "-"
    more: dict[str, Any] = {"dry_run": True}
    more |= _show_changes(options, lambda: committed_differences(state, [planned], kb.version))
    more["contradictions"] = [one.to_json() for one in found.contradictions]
    if not options.json:
        for contradiction in found.contradictions:
            print(f"new: {contradiction}")
    if options.sparql is not None:
        more["not_deleted"] = _note_not_deleted(kb, found, options)
    report = Report.of(kb.version, planned.statistics, clock.seconds, found.skipped, found.samples)
    return report, more


def _note_not_deleted(
    kb: KnowledgeBase, changes: TransactionChanges, options: argparse.Namespace
) -> list[str]:
    """Say on stderr which facts a request deletes in vain; also return them."""
    printer = Printer(kb.prefixes)
    facts = sorted(map(printer.atom, changes.not_deleted))
    if facts and not options.quiet:
        many = "fact still holds" if len(facts) == 1 else "facts still hold"
        print(f"not deleted: {len(facts):,} {many}, because others imply it:", file=sys.stderr)
        for fact in facts[:_SHOWN]:
            print(f"  {fact}", file=sys.stderr)
        if len(facts) > _SHOWN:
            print("  …", file=sys.stderr)
    return facts


def _applied(
    kb: KnowledgeBase, options: argparse.Namespace, fill: Fill
) -> Iterator[TransactionChanges]:
    """Apply the transactions of the command in order.

    Each transaction of a patch is a commit; commits before a mistake or a conflict persist.
    """
    for path in options.patch:
        yield from apply_patch(kb, path, limit_input_bytes=options.limit_input_bytes)
    if options.patch:
        return
    with kb.transaction(message=options.message) as tx:
        fill(kb, tx)
    yield tx.changes


def _fill(options: argparse.Namespace, kb: KnowledgeBase, tx: Transaction) -> None:
    """Request the changes of the command."""
    reading = read_options(options)
    if options.sparql is not None:
        tx.update(
            options.sparql.text,
            load=options.load,
            name=options.sparql.name,
            default_graph=options.default_graph,
        )
    if options.reason_over:
        tx.reason_over(options.reason_over)
    if options.replace_graph:
        tx.clear_graph(options.graph)
    for path in options.delete:
        tx.delete_from(path, graph=options.graph, **reading)
    if options.insert:
        imports = import_map_of(options.import_map)
        fetches: bool = options.fetch_imports
        graph = options.graph
        tx.load(*options.insert, import_map=imports, fetch_imports=fetches, graph=graph, **reading)
    for path in options.remove_rules:
        tx.remove_rules(Path(path))
    for path in options.add_rules:
        tx.add_rules(Path(path))
