"""What the commands about stores share."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corollary.cli.arguments import natural, print_rows, print_skipped
from corollary.cli.warned import describe_warnings
from corollary.errors import CorollaryError, OperationFailed
from corollary.knowledge_base.engines import ENGINES
from corollary.store import Store


def add_store(parser: argparse.ArgumentParser) -> None:
    """The argument for the folder of a store."""
    parser.add_argument("store", metavar="STORE", help="the folder of a store")


def add_version(parser: argparse.ArgumentParser) -> None:
    """The flag for an older version."""
    parser.add_argument(
        "--at-version", type=natural, metavar="N", help="an older version (default: the newest)"
    )


def add_engine(parser: argparse.ArgumentParser, default: str) -> None:
    """The flags for the engine."""
    parser.add_argument(
        "--engine", choices=ENGINES, help=f"columnar (in process) or spark (default: {default})"
    )
    parser.add_argument(
        "--master", metavar="URL", help="where Spark runs (default: this machine, all cores)"
    )


def add_materialize(parser: argparse.ArgumentParser) -> None:
    """The flag for what a hybrid store keeps beside the schema."""
    parser.add_argument(
        "--materialize",
        action="append",
        default=[],
        metavar="PATTERN",
        help="with --mode hybrid: keep the answers to a pattern too, such as '[?x, <urn:p>, ?y]',"
        " 'path(1, ?y)' or the name of a relation; may be given several times",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """The flags for what is printed."""
    parser.add_argument("--quiet", action="store_true", help="no progress and no statistics")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def spark_pipeline() -> Any:
    """The pipeline on Spark; an error tells what is missing."""
    try:
        return importlib.import_module("corollary.knowledge_base.spark")
    except ModuleNotFoundError as error:
        raise OperationFailed(
            "E403",
            f"the pipeline on Spark needs {error.name}, which is not installed",
            "pip install 'corollary[spark]' brings it; --engine columnar works without it",
        ) from None


def has_spark() -> bool:
    """Whether builds use Spark if nothing else is said: it is installed."""
    modules = ("pyspark", "corollary.knowledge_base.spark")
    return all(importlib.util.find_spec(module) is not None for module in modules)


def stored_outcome(path: str | Path) -> Callable[[], str]:
    """What a command that begins now will have left in a store if it is interrupted.

    The store is asked, because a limit or Ctrl-C may come after a commit was made and before
    the command knows of it.
    """
    before = _latest(path)

    def outcome() -> str:
        now = _latest(path)
        if now is None or now == before:
            return "nothing was written" if now is None else f"the store is still at version {now}"
        first = 0 if before is None else before + 1
        commits = now - first + 1
        many = "1 commit was" if commits == 1 else f"{commits} commits were"
        return f"{many} made: the store is at version {now}"

    return outcome


def _latest(path: str | Path) -> int | None:
    try:
        return Store.open(path).latest()
    except CorollaryError:
        return None


def print_report(report: dict[str, Any], options: argparse.Namespace) -> None:
    """What a build or an update did, as JSON on stdout or as a few lines on stderr."""
    report["warnings"] = describe_warnings()
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
    elif not options.quiet:
        derived = report["facts"] - report["explicit"]
        rows = [
            ("version", str(report["version"])),
            ("facts", f"{report['facts']:,}, {derived:,} derived"),
            ("changes", f"+{report['inserted']:,} -{report['deleted']:,}"),
            ("engine", f"{report['engine']}, {report['algorithm']} ({report['reason']})"),
            *((f"instances, {phase}", f"{n:,}") for phase, n in report["derivations"].items() if n),
            ("seconds", ", ".join(f"{p} {s:.2f}" for p, s in report["seconds"].items())),
        ]
        print_rows(rows)


def print_samples(report: dict[str, Any]) -> None:
    """What was skipped, on stderr."""
    from corollary.rdf.triples import Skipped

    samples = [Skipped(**sample) for sample in report.get("samples", ())]
    print_skipped(report.get("skipped", 0), samples)
