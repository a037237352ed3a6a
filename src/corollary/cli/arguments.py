"""What arguments of several commands look like, and what they mean."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from corollary.knowledge_base.rules import NO_RULES
from corollary.rdf.rulesets import RULE_SETS
from corollary.rdf.triples import Skipped

_SAMPLES = 3  # statements that were skipped, of which a terminal shows the place


def add_resources(parser: argparse.ArgumentParser) -> None:
    """The flags for threads, time and memory."""
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


def add_rules(parser: argparse.ArgumentParser, default: str) -> None:
    """The flags for rules by name, and for RDF with mistakes."""
    parser.add_argument(
        "--rules",
        action="append",
        metavar="NAME|FILE",
        help=f"a rule set ({', '.join((*RULE_SETS, NO_RULES))}) or a .dl file; may be given several"
        f" times (default: {default})",
    )
    add_on_error(parser)


def add_on_error(parser: argparse.ArgumentParser) -> None:
    """The flag for RDF with mistakes."""
    parser.add_argument(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="what to do with RDF statements that cannot be read: fail, or skip and report them"
        " (default: fail)",
    )
    add_input_limit(parser)


def add_input_limit(parser: argparse.ArgumentParser) -> None:
    """The flag for the size of input files."""
    parser.add_argument(
        "--limit-input-bytes",
        type=bytes_,
        metavar="SIZE",
        help="refuse an input file that holds more bytes after decompression, such as 500M or 8G"
        " (default: 64G, and 250 times its size, for a compressed file; none for others)",
    )


def positive(text: str) -> int:
    """A number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text}")
    return number


def natural(text: str) -> int:
    """A number of at least 0.

    >>> natural("0")
    0
    """
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, found {text}")
    return number


def seconds(text: str) -> float:
    """A time above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a time above 0, found {text}")
    return number


def bytes_(text: str) -> int:
    """A size such as 500M.

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


def describe_skipped(skipped: int, samples: Sequence[Skipped]) -> dict[str, Any]:
    """What was skipped, as JSON has it: how many statements, and where the first ones are."""
    return {"skipped": skipped, "samples": [sample._asdict() for sample in samples]}


def print_skipped(skipped: int, samples: Sequence[Skipped]) -> None:
    """The same on stderr."""
    if skipped:
        many = "statements" if skipped > 1 else "statement"
        print(f"skipped: {skipped:,} {many} that cannot be read", file=sys.stderr)
        for sample in samples[:_SAMPLES]:
            print(f"  {sample}", file=sys.stderr)
        if skipped > _SAMPLES:
            print("  …", file=sys.stderr)


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Names and values in two columns, on stderr."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}", file=sys.stderr)
