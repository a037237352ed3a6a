"""What arguments of several commands look like, and what they mean."""

from __future__ import annotations

import argparse
import os


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
