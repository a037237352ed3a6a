"""`corollary bench`: run the benchmarks of a source checkout."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from corollary.errors import OperationFailed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Forward all arguments, including flags such as `--help`, to the benchmarks."""
    parser.description = (
        "Run a benchmark of a source checkout; without a name, all at a small scale."
    )
    parser.prefix_chars = "\0"
    parser.add_argument("arguments", nargs="*", help="a benchmark and its options")
    parser.set_defaults(command=bench, json=False)


def bench(options: argparse.Namespace) -> None:
    """Run `python -m benchmarks` with the same arguments."""
    root = Path(__file__).resolve().parents[3]
    if (root / "benchmarks" / "__main__.py").exists() and str(root) not in sys.path:
        sys.path.insert(0, str(root))
    if importlib.util.find_spec("benchmarks") is None:
        raise OperationFailed(
            "E403",
            "the benchmarks are not part of the installed package",
            "run this in a checkout of the sources, after `make test` or `pip install -e .[bench]`",
        )
    from benchmarks.__main__ import main

    sys.exit(main(options.arguments))
