"""`corollary query`: SPARQL over a store, or over files and their consequences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.cli import arguments
from corollary.cli.loading import load_files, open_store
from corollary.cli.output import format_seconds, print_skipped
from corollary.cli.progress import Clock, Progress
from corollary.core.files import replace_file
from corollary.errors import InvalidInput, Source
from corollary.knowledge_base import spark
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.patterns import is_pattern
from corollary.knowledge_base.rules import NO_RULES
from corollary.query.results import Solutions, TripleTable
from corollary.query.write import FOLDERS, FORMATS, encoded
from corollary.store.layout import MODES

if TYPE_CHECKING:
    from corollary.knowledge_base.spark.querying import SparkStore

_SUFFIXES = (".rq", ".sparql")


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Answer a SPARQL 1.1 query (SELECT, ASK, CONSTRUCT, DESCRIBE) over all triples"
        " of a store, explicit and derived, or over files with --data. A query may also be an atom,"
        " such as '[?x, a, :Person]' or 'path(1, ?y)', whose variables are bound."
    )
    parser.add_argument(
        "arguments",
        nargs="+",
        metavar="[STORE] QUERY",
        help="the folder or address of a store, unless there is --data; then the query: its text, a"
        " file, or - for standard input",
    )
    arguments.add_storage_options(parser)
    parser.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="query files, not a store: RDF, .dl files, tables of facts, folders and patterns",
    )
    arguments.add_rules(parser, f"{NO_RULES}; for --data only")
    arguments.add_import_map(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="materialized: derived facts are looked up; hybrid: they are derived on demand"
        " (default: that of the store, or materialized)",
    )
    arguments.add_materialize(parser)
    arguments.add_spark(parser, "columnar; spark queries stores of any size, but no files")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="of the answer (default: table; Turtle for CONSTRUCT and DESCRIBE)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the answer to a file (default: standard output)"
    )
    parser.add_argument(
        "--out-folder",
        metavar="FOLDER",
        help="with --engine spark: let tasks write the answer as files of a new folder, for large"
        f" answers (--format {', '.join(FOLDERS)}; default: parquet)",
    )
    arguments.add_default_graph(parser)
    parser.add_argument(
        "--at-version", type=arguments.natural, metavar="N", help="an older version of the store"
    )
    parser.add_argument(
        "--explain-plan", action="store_true", help="print how the query is answered, in SQL"
    )
    arguments.add_resources(parser)
    arguments.add_output(parser, json="the same as --format json")
    parser.set_defaults(command=query)
    _take_arguments_anywhere(parser)


def _take_arguments_anywhere(parser: arguments.Parser) -> None:
    """Allow flags between the store and the query, which argparse does not."""
    known = parser.parse_known_args

    def parse(
        args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, left = known(args, namespace)
        found.arguments += [word for word in left if word == "-" or not word.startswith("-")]
        return found, [word for word in left if word != "-" and word.startswith("-")]

    parser.parse_known_args = parse  # type: ignore[method-assign,assignment]


def query(options: argparse.Namespace) -> None:
    """Open or load the data, evaluate the query, and print the results."""
    # Only queries load the parser and DuckDB.
    from corollary.query.parse import check_syntax

    store, name, text = _request(options)
    _check(options, store)
    progress = Progress.of(options)
    progress.state = "parsing the query"
    with progress.watched():
        if not is_pattern(text):
            check_syntax(text, name)  # before anything is loaded
        clock = Clock()
        progress.state = "opening" if store else "reading"
        source = _source(options, store, progress)
        clock.lap("load" if options.data else "open")
        progress.state = "answering the query"
        if options.explain_plan:
            print(source.explain_query(text, name=name, default_graph=options.default_graph))
            return
        if isinstance(source, KnowledgeBase):
            answer = source.query(text, name=name, default_graph=options.default_graph)
        elif options.out_folder:
            format_ = options.format or "parquet"
            rows = source.write(
                text, options.out_folder, format_, name=name, default_graph=options.default_graph
            )
            clock.lap("query")
            _report(options, f"{rows:,} rows, ", clock)
            return
        else:
            answer = source.collect(text, name=name, default_graph=options.default_graph)
        clock.lap("query")
        _print(options, answer, source.prefixes, progress)
    _report(options, "" if isinstance(answer, bool) else f"{len(answer):,} rows, ", clock)


def _source(
    options: argparse.Namespace, store: str | None, progress: Progress
) -> KnowledgeBase | SparkStore:
    """Open or load the data of the query."""
    if store is None:
        if options.at_version is not None:
            raise InvalidInput("E564", "--at-version is for stores", "files have one version")
        kb, loaded = load_files(options, options.rules or NO_RULES, options.data, progress)
        print_skipped(loaded.skipped, loaded.samples)
        return kb
    source: KnowledgeBase | SparkStore
    if options.engine == "spark":
        source = spark.open_store(
            arguments.place_of(options, store),
            at_version=options.at_version,
            **arguments.session_of(options),
        )
    else:
        source = open_store(options, store)
    if options.mode not in (None, source.mode):
        raise InvalidInput(
            "E564",
            f"the store is {source.mode}, not {options.mode}",
            f"'corollary build --mode {options.mode}' makes one",
        )
    return source


def _print(
    options: argparse.Namespace,
    answer: Solutions | TripleTable | bool,
    prefixes: Mapping[str, str],
    progress: Progress,
) -> None:
    format_ = "json" if options.json else options.format
    if format_ is None:
        format_ = "ttl" if isinstance(answer, TripleTable) else "table"
    data = encoded(answer, format_, prefixes)
    if options.out:
        replace_file(Path(options.out), lambda path: path.write_bytes(data))
        return
    if format_ == "parquet" and sys.stdout.isatty():
        raise InvalidInput("E562", "Parquet is not shown on a terminal", "use --out FILE")
    progress.outcome = lambda: "what was printed may be incomplete"
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def _report(options: argparse.Namespace, many: str, clock: Clock) -> None:
    if not options.quiet and not options.json:
        print(f"{many}seconds: {format_seconds(clock.seconds)}", file=sys.stderr)


def _check(options: argparse.Namespace, store: str | None) -> None:
    """Reject incompatible flags."""
    if options.engine == "spark" and store is None:
        raise InvalidInput(
            "E564", "--engine spark queries stores only", "'corollary build STORE FILE…' makes one"
        )
    if options.engine != "spark":
        arguments.refuse_session(options, "E564")
        if options.out_folder is not None:
            raise InvalidInput("E564", "--out-folder is for --engine spark")
    if options.out_folder and (options.out or options.json):
        other = "--out" if options.out else "--json"
        raise InvalidInput("E564", f"--out-folder and {other} exclude each other")
    if store is not None:
        for flag, value in (("--rules", options.rules), ("--materialize", options.materialize)):
            if value:
                raise InvalidInput(
                    "E564", f"{flag} is for --data", "a store has rules and patterns of its own"
                )


def _request(options: argparse.Namespace) -> tuple[str | None, str, str]:
    """Return the store, unless files are queried, and the query's name and text."""
    expected = ["QUERY"] if options.data else ["STORE", "QUERY"]
    if len(options.arguments) != len(expected):
        raise InvalidInput(
            "E564",
            f"expected {' and '.join(expected)}, found {len(options.arguments)} arguments",
            "a query is one argument: put it in quotes",
        )
    store = None if options.data else options.arguments[0]
    name = options.arguments[-1]
    if name == "-":
        return store, "<stdin>", sys.stdin.read()
    if name.endswith(_SUFFIXES) or ("\n" not in name and "{" not in name and Path(name).is_file()):
        source = Source.read(name)
        return store, source.name, source.text
    return store, "<query>", name
