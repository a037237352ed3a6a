"""`corollary query`: SPARQL over a store, or of files and what follows from them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from corollary.cli.arguments import add_resources, add_rules, natural, print_skipped
from corollary.cli.progress import Clock, Limits, Progress
from corollary.errors import InvalidInput, Source
from corollary.files.facts import replace_file
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.hybrid import MODES
from corollary.knowledge_base.rules import NO_RULES, read_rules
from corollary.query.results import TripleTable
from corollary.query.write import FORMATS, encoded

_SUFFIXES = (".rq", ".sparql")


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "query",
        help="answer a SPARQL query",
        description="Answer a SPARQL 1.1 query (SELECT, ASK, CONSTRUCT, DESCRIBE) over all triples"
        " of a store, explicit and derived, or over files with --data.",
    )
    parser.add_argument(
        "arguments",
        nargs="+",
        metavar="[STORE] QUERY",
        help="the folder of a store, unless there is --data; then the query: its text, a file, or -"
        " for standard input",
    )
    parser.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="ask files instead of a store: RDF, .dl files, tables of facts, folders and patterns",
    )
    add_rules(parser, f"{NO_RULES}; for --data only")
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="materialized: derived facts are looked up; hybrid: they are derived when asked for"
        " (default: that of the store, or materialized)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="of the answer (default: table; Turtle for CONSTRUCT and DESCRIBE)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the answer to a file (default: standard output)"
    )
    parser.add_argument(
        "--at-version", type=natural, metavar="N", help="an older version of the store"
    )
    parser.add_argument(
        "--explain-plan", action="store_true", help="print how the query is answered, in SQL"
    )
    add_resources(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress and no statistics")
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.set_defaults(command=query)


def query(options: argparse.Namespace) -> None:
    """Open or load, ask, print."""
    # The parser and DuckDB are loaded by those who query.
    from corollary.query.parse import check_syntax

    given, name, text = _asked(options)
    check_syntax(text, name)  # before anything is loaded
    progress = Progress(Limits(seconds=options.limit_seconds), quiet=options.quiet)
    with progress.watched():
        clock = Clock()
        kb = _opened(options, given) if given else _loaded(options, progress)
        clock.lap("load" if options.data else "open")
        if options.explain_plan:
            print(kb.explain_query(text, name=name))
            return
        answer = kb.query(text, name=name)
        clock.lap("query")
    format_ = "json" if options.json else options.format
    if format_ is None:
        format_ = "ttl" if isinstance(answer, TripleTable) else "table"
    data = encoded(answer, format_, kb.prefixes)
    if options.out:
        replace_file(Path(options.out), lambda path: _write(path, data))
    else:
        if format_ == "parquet" and sys.stdout.isatty():
            raise InvalidInput("E562", "Parquet is not shown on a terminal", "use --out FILE")
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    if not options.quiet and not options.json:
        many = "" if isinstance(answer, bool) else f"{len(answer):,} rows, "
        spent = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in clock.seconds.items())
        print(f"{many}seconds: {spent}", file=sys.stderr)


def _asked(options: argparse.Namespace) -> tuple[str | None, str, str]:
    """The store, if one is asked; and the query's name and text."""
    given = list(options.arguments)
    wanted = 1 if options.data else 2
    if len(given) != wanted:
        what = "QUERY" if options.data else "STORE and QUERY"
        raise InvalidInput(
            "E564",
            f"expected {what}, found {len(given)} arguments",
            "a query is one argument: put it in quotes",
        )
    name = given[-1]
    if name == "-":
        return given[0] if wanted == 2 else None, "<stdin>", sys.stdin.read()
    if name.endswith(_SUFFIXES) or ("\n" not in name and "{" not in name and Path(name).is_file()):
        source = Source.read(name)
        return given[0] if wanted == 2 else None, source.name, source.text
    return given[0] if wanted == 2 else None, "<query>", name


def _loaded(options: argparse.Namespace, progress: Progress) -> KnowledgeBase:
    if options.at_version is not None:
        raise InvalidInput("E564", "--at-version is for stores", "files have one version")
    kb = KnowledgeBase(
        read_rules(options.rules or NO_RULES),
        threads=options.threads,
        limit_memory=options.limit_memory,
        **_mode(options),
    )
    loaded = kb.load(*options.data, on_error=options.on_error, on_progress=progress.reading)
    print_skipped(loaded.skipped, loaded.samples)
    return kb


def _opened(options: argparse.Namespace, store: str) -> KnowledgeBase:
    if options.rules:
        raise InvalidInput("E564", "--rules is for --data", "a store has rules of its own")
    kb = KnowledgeBase.open(
        store,
        at_version=options.at_version,
        threads=options.threads,
        limit_memory=options.limit_memory,
    )
    mode = kb.mode
    if options.mode not in (None, mode):
        raise InvalidInput(
            "E564",
            f"the store is {mode}, not {options.mode}",
            f"'corollary build --mode {options.mode}' makes one",
        )
    return kb


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _mode(options: argparse.Namespace) -> dict[str, Any]:
    return {} if options.mode is None else {"mode": options.mode}
