"""Arguments that several commands share, and their types."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict

from corollary.errors import InvalidInput

if TYPE_CHECKING:
    from corollary.store.places import Place

OWL_RL = "owl-rl"  # the default for files without rules

Parser = argparse.ArgumentParser


def add_store(
    parser: Parser, help_: str = "the folder of a store, or its address (s3://…)"
) -> None:
    """Add the arguments for the place of a store."""
    parser.add_argument("store", metavar="STORE", help=help_)
    add_storage_options(parser)


def add_storage_options(parser: Parser) -> None:
    """Add the flag for the options of an object store."""
    parser.add_argument(
        "--storage-option",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the object store at an address, besides the environment, such as"
        " AWS_ENDPOINT_URL=https://…; may be given several times",
    )


def place_of(options: argparse.Namespace, store: str | None = None) -> Place:
    """Return the place of the command's store, or of another one, with the storage options."""
    from corollary.store.places import store_path  # loads PyArrow

    return store_path(store or options.store, dict(options.storage_option))


def add_version(parser: Parser) -> None:
    """Add the flag for an older version."""
    parser.add_argument(
        "--at-version", type=natural, metavar="N", help="an older version (default: the newest)"
    )


def add_sources(parser: Parser, before: str = "") -> None:
    """Add the argument for files of any kind."""
    files = "RDF files, .dl and .srl files, tables of facts, folders and patterns"
    parser.add_argument("sources", nargs="+", metavar="FILE", help=before + files)


def add_graph(parser: Parser, what: str) -> None:
    """Add the flag for a named graph."""
    parser.add_argument("--graph", metavar="IRI", help=what)


def add_reason_over(parser: Parser, default: str) -> None:
    """Add the flag for the graphs that rules read."""
    parser.add_argument(
        "--reason-over",
        nargs="+",
        action="extend",
        metavar="GRAPH",
        help="the graphs whose statements rules read: union (all), default (the default graph), or"
        f" IRIs of graphs (default: {default})",
    )


def add_default_graph(parser: Parser) -> None:
    """Add the flag for what patterns outside of GRAPH match."""
    parser.add_argument(
        "--default-graph",
        default="union",
        metavar="GRAPH",
        help="what patterns outside of GRAPH match without FROM: union (all graphs and what is"
        " derived), default (the default graph), or the IRI of a graph (default: union)",
    )


def add_engine(parser: Parser, default: str | None, *others: str, help_: str = "") -> None:
    """Add the flag for the engine; without a default, the command chooses."""
    from corollary.reasoning.engines import ENGINES  # loads the engines

    parser.add_argument("--engine", choices=(*ENGINES, *others), default=default, help=help_)


def add_spark(parser: Parser, default: str) -> None:
    """Add the flags for the engine, and for where Spark runs."""
    help_ = f"columnar (in process) or spark (default: {default})"
    add_engine(parser, None, help_=help_)
    add_session(parser)


def add_session(parser: Parser, default: str = "this machine, all cores") -> None:
    """Add the flags for where Spark runs and for its settings."""
    parser.add_argument("--master", metavar="URL", help=f"where Spark runs (default: {default})")
    parser.add_argument(
        "--conf",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark, such as spark.executor.memory=8g; may be given several times",
    )


class SessionOptions(TypedDict):
    """The options of Spark's session."""

    master: str | None
    config: dict[str, str]


def session_of(options: argparse.Namespace) -> SessionOptions:
    """Return the options of the session that the command asks for."""
    return {"master": options.master, "config": dict(options.conf)}


def refuse_session(options: argparse.Namespace, code: str = "E313") -> None:
    """Reject the flags of Spark's session where another engine is used."""
    for flag, value in (("--master", options.master), ("--conf", options.conf)):
        if value:
            raise InvalidInput(code, f"{flag} is for --engine spark")


def add_equality(parser: Parser) -> None:
    """Add the flag for the treatment of equal terms."""
    from corollary.reasoning.engines import EQUALITY  # loads the engines

    parser.add_argument(
        "--equality",
        choices=EQUALITY,
        default=EQUALITY[0],
        help="equal terms: by the rules, or by one representative (default: %(default)s)",
    )


def add_materialize(parser: Parser) -> None:
    """Add the flag for the patterns that a hybrid store materializes besides the schema."""
    parser.add_argument(
        "--materialize",
        action="append",
        default=[],
        metavar="PATTERN",
        help="with --mode hybrid: keep the answers to a pattern too, such as '[?x, <urn:p>, ?y]',"
        " 'path(1, ?y)' or the name of a relation; may be given several times",
    )


def add_algorithm(parser: Parser, what: str) -> None:
    """Add the flag for the maintenance algorithm."""
    from corollary.algorithms.registry import ALGORITHMS  # loads the algorithms

    parser.add_argument(
        "--algorithm", choices=ALGORITHMS, default="auto", help=f"{what} (default: auto)"
    )


def add_message(parser: Parser) -> None:
    """Add the flag for the message of a commit."""
    parser.add_argument("--message", default="", metavar="TEXT", help="for the log")


def add_trivial(parser: Parser) -> None:
    """Add `--trivial`, for commands that print changes."""
    parser.add_argument(
        "--trivial",
        action="store_true",
        help="print also derived facts that say little, such as [:a, owl:sameAs, :a] or membership"
        " of owl:Thing or an unnamed class; files, other formats and counts always have them",
    )


def add_proof_format(parser: Parser, flag: str, what: str) -> None:
    """Add the flag for the format of a proof."""
    parser.add_argument(
        flag, choices=("tree", "json", "dot"), default="tree", help=f"{what} (default: tree)"
    )


def add_resources(parser: Parser) -> None:
    """Add the flags for threads, time and memory."""
    parser.add_argument(
        "--threads",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="threads of the columnar engine (default: all cores)",
    )
    parser.add_argument(
        "--limit-seconds", type=seconds, metavar="S", help="stop after this many seconds"
    )
    parser.add_argument(
        "--limit-memory",
        type=bytes_,
        metavar="SIZE",
        help="fail rather than use more memory, such as 500M or 8G (columnar engine)",
    )


def add_rules(parser: Parser, default: str | None = None) -> None:
    """Add the flags for rules by name, and for malformed RDF."""
    from corollary.knowledge_base.rules import NO_RULES  # loads the engines
    from corollary.rdf.rulesets import RULE_SETS

    default = default or f"{OWL_RL}, or {NO_RULES} if a FILE is a .dl or .srl file"
    parser.add_argument(
        "--rules",
        action="append",
        metavar="NAME|FILE",
        help=f"a rule set ({', '.join((*RULE_SETS, NO_RULES))}) or a .dl or .srl file; may be given"
        f" several times (default: {default})",
    )
    add_on_error(parser)


def rules_of(options: argparse.Namespace) -> Sequence[str]:
    """Return the rules named by `--rules`, or the default for the sources."""
    from corollary.knowledge_base.rules import NO_RULES
    from corollary.lang.program import PROGRAM_SUFFIXES

    has_program = any(source.endswith(PROGRAM_SUFFIXES) for source in options.sources)
    return options.rules or [NO_RULES if has_program else OWL_RL]


def add_import_map(parser: Parser) -> None:
    """Add the flag for the documents of imports."""
    parser.add_argument(
        "--import-map",
        action="append",
        default=[],
        metavar="IRI=FILE",
        help="the file of an ontology that others import, or an XML catalog of such files; may be"
        " given several times (default: catalog-v001.xml and the files beside the importing one;"
        " in process, nothing is fetched)",
    )
    parser.add_argument(
        "--fetch-imports",
        action="store_true",
        help="fetch the documents of owl:imports from the web that no file has (in process)",
    )


def add_on_error(parser: Parser) -> None:
    """Add the flag for malformed RDF."""
    parser.add_argument(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="on RDF statements that cannot be parsed, and rows of tables that do not fit their"
        " declaration: fail, or skip and report them (default: fail)",
    )
    add_input_limit(parser)


def add_input_limit(parser: Parser) -> None:
    """Add the flag for the size of input files."""
    parser.add_argument(
        "--limit-input-bytes",
        type=bytes_,
        metavar="SIZE",
        help="reject an input file of more bytes after decompression, such as 500M or 8G"
        " (default: 64G, and 250 times its size, for a compressed file; none for others)",
    )


def add_output(
    parser: Parser,
    json: str = "print the report as JSON",
    quiet: str = "no progress and no statistics",
) -> None:
    """Add the flags for output."""
    parser.add_argument("--quiet", action="store_true", help=quiet)
    parser.add_argument("--json", action="store_true", help=json)


def key_value(text: str) -> tuple[str, str]:
    """Parse an option of an object store, or a setting of Spark.

    >>> key_value("AWS_REGION=eu-west-1")
    ('AWS_REGION', 'eu-west-1')
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, found {text}")
    return key, value


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text}")
    return number


def natural(text: str) -> int:
    """Parse a number of at least 0.

    >>> natural("0")
    0
    """
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, found {text}")
    return number


def seconds(text: str) -> float:
    """Parse a time above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a time above 0, found {text}")
    return number


def bytes_(text: str) -> int:
    """Parse a size such as 500M.

    >>> bytes_("2K")
    2048
    """
    units = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    digits, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    try:
        return int(float(digits) * unit)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a size such as 500M or 8G, found {text}"
        ) from None


def add_number(
    parser: Parser,
    flag: str,
    default: float,
    help_: str,
    parse: Callable[[str], float] = positive,
    metavar: str = "N",
) -> None:
    """Add a flag for a number, by default one of at least 1."""
    help_ += f" (default: {default:g})"
    parser.add_argument(flag, type=parse, default=default, metavar=metavar, help=help_)
