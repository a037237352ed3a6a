"""`corollary query`: SPARQL over a store, or of files and what follows from them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corollary.cli.arguments import add_resources, add_rules, natural, print_skipped
from corollary.cli.progress import Clock, Limits, Progress
from corollary.cli.stores import add_engine, add_materialize, spark_pipeline
from corollary.errors import InvalidInput, Source
from corollary.files.facts import replace_file
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.hybrid import MODES
from corollary.knowledge_base.patterns import is_pattern
from corollary.knowledge_base.rules import NO_RULES, read_rules
from corollary.query.results import TripleTable
from corollary.query.write import FOLDERS, FORMATS, encoded

_SUFFIXES = (".rq", ".sparql")


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "query",
        help="answer a SPARQL query",
        description="Answer a SPARQL 1.1 query (SELECT, ASK, CONSTRUCT, DESCRIBE) over all triples"
        " of a store, explicit and derived, or over files with --data. A query may also be an atom,"
        " such as '[?x, a, :Person]' or 'path(1, ?y)', whose variables are bound.",
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
    add_materialize(parser)
    add_engine(parser, "columnar; spark asks stores, whatever their size")
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
    _take_arguments_anywhere(parser)


def _take_arguments_anywhere(parser: argparse.ArgumentParser) -> None:
    """Let flags stand between the store and the query, which argparse does not."""
    known = parser.parse_known_args

    def parse(args: Any = None, namespace: Any = None) -> tuple[argparse.Namespace, list[str]]:
        found, left = known(args, namespace)
        found.arguments += [word for word in left if word == "-" or not word.startswith("-")]
        return found, [word for word in left if word != "-" and word.startswith("-")]

    parser.parse_known_args = parse  # type: ignore[method-assign,assignment]


def query(options: argparse.Namespace) -> None:
    """Open or load, ask, print."""
    # The parser and DuckDB are loaded by those who query.
    from corollary.query.parse import check_syntax

    given, name, text = _asked(options)
    _check(options, given)
    progress = Progress(Limits.of(options), quiet=options.quiet)
    progress.state = "parsing the query"
    with progress.watched():
        if not is_pattern(text):
            check_syntax(text, name)  # before anything is loaded
        clock = Clock()
        progress.state = "opening" if given else "reading"
        if options.engine == "spark":
            asked = _on_spark(options, given)
            answering = asked.collect
        else:
            asked = _opened(options, given) if given else _loaded(options, progress)
            answering = asked.query
        clock.lap("load" if options.data else "open")
        progress.state = "answering the query"
        if options.explain_plan:
            print(asked.explain_query(text, name=name))
            return
        if options.out_folder:
            format_ = options.format or "parquet"
            rows = asked.write(text, options.out_folder, format_, name=name)
            clock.lap("query")
            _report(options, f"{rows:,} rows, ", clock)
            return
        answer = answering(text, name=name)
        clock.lap("query")
        _print(options, answer, asked.prefixes, progress)
    _report(options, "" if isinstance(answer, bool) else f"{len(answer):,} rows, ", clock)


def _print(
    options: argparse.Namespace, answer: Any, prefixes: Mapping[str, str], progress: Progress
) -> None:
    format_ = "json" if options.json else options.format
    if format_ is None:
        format_ = "ttl" if isinstance(answer, TripleTable) else "table"
    data = encoded(answer, format_, prefixes)
    if options.out:
        replace_file(Path(options.out), lambda path: _write(path, data))
        return
    if format_ == "parquet" and sys.stdout.isatty():
        raise InvalidInput("E562", "Parquet is not shown on a terminal", "use --out FILE")
    progress.outcome = lambda: "what was printed may be incomplete"
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def _report(options: argparse.Namespace, many: str, clock: Clock) -> None:
    if not options.quiet and not options.json:
        spent = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in clock.seconds.items())
        print(f"{many}seconds: {spent}", file=sys.stderr)


def _check(options: argparse.Namespace, given: str | None) -> None:
    """Refuse flags that do not fit together."""
    if options.engine == "spark" and given is None:
        raise InvalidInput(
            "E564", "--engine spark asks stores", "'corollary build STORE FILE…' makes one"
        )
    if options.engine != "spark":
        for flag, value in (("--master", options.master), ("--out-folder", options.out_folder)):
            if value is not None:
                raise InvalidInput("E564", f"{flag} is for --engine spark")
    if options.out_folder and (options.out or options.json):
        other = "--out" if options.out else "--json"
        raise InvalidInput("E564", f"--out-folder and {other} exclude each other")
    if given is not None:
        for flag, found in (("--rules", options.rules), ("--materialize", options.materialize)):
            if found:
                raise InvalidInput(
                    "E564", f"{flag} is for --data", "a store has rules and patterns of its own"
                )


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
        materialize=options.materialize,
        **_mode(options),
    )
    loaded = kb.load(
        *options.data,
        on_error=options.on_error,
        on_progress=progress.reading,
        limit_input_bytes=options.limit_input_bytes,
    )
    print_skipped(loaded.skipped, loaded.samples)
    return kb


def _opened(options: argparse.Namespace, store: str) -> KnowledgeBase:
    kb = KnowledgeBase.open(
        store,
        at_version=options.at_version,
        threads=options.threads,
        limit_memory=options.limit_memory,
    )
    _check_mode(options, kb.mode)
    return kb


def _on_spark(options: argparse.Namespace, store: str | None) -> Any:
    asked = spark_pipeline().open_store(store, at_version=options.at_version, master=options.master)
    _check_mode(options, asked.mode)
    return asked


def _check_mode(options: argparse.Namespace, mode: str) -> None:
    if options.mode not in (None, mode):
        raise InvalidInput(
            "E564",
            f"the store is {mode}, not {options.mode}",
            f"'corollary build --mode {options.mode}' makes one",
        )


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _mode(options: argparse.Namespace) -> dict[str, Any]:
    return {} if options.mode is None else {"mode": options.mode}
