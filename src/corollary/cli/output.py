"""Output of commands: reports, proofs and skipped statements, as JSON or as text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from corollary.cli.warning_lines import describe_warnings
from corollary.core.trivial import hidden_changes

if TYPE_CHECKING:
    from corollary.core.proof import Proof
    from corollary.knowledge_base.differences import Differences
    from corollary.knowledge_base.report import Report
    from corollary.rdf.triples import Skipped

_SAMPLES = 3  # skipped statements whose place is shown


def print_json(value: object, file: TextIO | None = None) -> None:
    """Print a value as JSON on one line, by default on stdout."""
    print(json.dumps(value, ensure_ascii=False), file=file, flush=True)


def print_report(report: Report, options: argparse.Namespace, **more: object) -> None:
    """Print a report as a table on stderr; with --json, as JSON with the fields of `more`."""
    if options.json:
        print_json(report.to_json() | more | {"warnings": describe_warnings()})
    elif not options.quiet:
        print_rows(_rows(report))


def _rows(report: Report) -> list[tuple[str, str]]:
    stored = report.version is not None
    derived = report.facts - report.explicit
    engine = f"{report.engine}, {report.algorithm}"
    rows = [("facts", f"{report.facts:,}, {derived:,} derived")]
    if stored:
        changes = f"+{report.inserted:,} -{report.deleted:,}"
        rows = [("version", str(report.version)), *rows, ("changes", changes)]
        rows.append(("engine", f"{engine} ({report.reason})"))
    else:
        rows += [("engine", engine), ("rounds", str(report.rounds))]
    instances = report.derivations.items()
    rows += [(f"instances, {phase}", f"{n:,}") for phase, n in instances if n or not stored]
    return [*rows, ("seconds", format_seconds(report.seconds))]


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns, on stderr."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}", file=sys.stderr)


def format_seconds(seconds: Mapping[str, float]) -> str:
    """Format the seconds of each phase.

    >>> format_seconds({"read": 1, "commit": 0.125})
    'read 1.00, commit 0.12'
    """
    return ", ".join(f"{phase} {spent:.2f}" for phase, spent in seconds.items())


def describe_skipped(skipped: int, samples: Sequence[Skipped]) -> dict[str, object]:
    """Describe skipped statements as JSON: their number, and the places of the first ones."""
    return {"skipped": skipped, "samples": [sample._asdict() for sample in samples]}


def print_skipped(skipped: int, samples: Sequence[Skipped]) -> None:
    """Print skipped statements on stderr."""
    if skipped:
        many = "statements" if skipped > 1 else "statement"
        print(f"skipped: {skipped:,} {many} that cannot be read", file=sys.stderr)
        for sample in samples[:_SAMPLES]:
            print(f"  {sample}", file=sys.stderr)
        if skipped > _SAMPLES:
            print("  …", file=sys.stderr)


def print_changes(found: Differences, options: argparse.Namespace, which: str = "all") -> None:
    """Print changes as text; without --trivial, only count derived facts that are trivial."""
    lines = [*found.lines(which, trivial=options.trivial)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    hidden = 0 if options.trivial else found.count(which) - len(lines)
    if hidden and not options.quiet:
        print(f"{hidden_changes(hidden)}; --trivial shows them", file=sys.stderr)


def print_proof(proof: Proof, format_: str) -> None:
    """Print a proof as a tree, as JSON, or as a graph for Graphviz."""
    if format_ == "json":
        print_json(proof.to_json())
    else:
        print(proof.to_dot() if format_ == "dot" else proof)
