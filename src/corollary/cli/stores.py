"""What the commands about stores share."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
from typing import Any

from corollary.cli.arguments import natural, print_rows, print_skipped
from corollary.errors import OperationFailed
from corollary.knowledge_base.engines import ENGINES


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


def print_report(report: dict[str, Any], options: argparse.Namespace) -> None:
    """What a build or an update did, as JSON on stdout or as a few lines on stderr."""
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
