"""`corollary generate`: data to try and to measure with."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
from dataclasses import asdict
from typing import Any

from corollary.cli.arguments import natural
from corollary.cli.progress import Steps
from corollary.generate import DATASETS
from corollary.generate.write import COMPRESSIONS, Written, write

EXAMPLES = """\
examples:
  corollary generate lubm --scale 10 --out lubm-10
  corollary run lubm-10/rules.dl --facts lubm-10 --out result

  corollary generate dag --scale 0.1 --seed 7 --out dag
  corollary run dag/program.dl --facts dag --json

  corollary generate lubm --scale 100 --out lubm-100 --compress zstd --json
"""


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "generate",
        help="generate data to try and to measure with",
        description="Write a dataset into a folder: facts, and a program for 'corollary run'. The"
        " same scale and seed give the same files.",
        epilog=f"{_datasets()}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dataset", metavar="DATASET", choices=DATASETS, help=", ".join(DATASETS))
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the files")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        metavar="N",
        help="how much: see the datasets below (default: 1)",
    )
    parser.add_argument(
        "--seed",
        type=natural,
        default=0,
        metavar="S",
        help="another number draws other facts (default: 0)",
    )
    parser.add_argument(
        "--compress",
        choices=COMPRESSIONS,
        default="none",
        help="of the facts: none, gzip (.gz) or zstd (.zst) (default: none)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace what was generated into the folder before"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")
    parser.add_argument("--json", action="store_true", help="print files and sizes as JSON")
    parser.set_defaults(command=generate)


def _datasets() -> str:
    lines = ["datasets:"]
    for dataset in DATASETS.values():
        scale = f"Scale: {dataset.unit}." if dataset.whole else f"Scale 1: {dataset.unit}."
        text = f"{dataset.summary[0].upper()}{dataset.summary[1:]}. {scale}"
        lines += textwrap.wrap(
            text, 88, initial_indent=f"  {dataset.name:<8}", subsequent_indent=" " * 10
        )
    return "\n".join(lines)


def generate(options: argparse.Namespace) -> None:
    """Draw and write the facts, report."""
    started = time.perf_counter()
    # A number of universities is shown and kept without a point.
    scale = int(options.scale) if options.scale.is_integer() else options.scale
    with Steps(quiet=options.quiet) as steps:
        written = write(
            DATASETS[options.dataset],
            options.out,
            scale=scale,
            seed=options.seed,
            compress=options.compress,
            force=options.force,
            on_progress=lambda files, of, facts: steps(
                f"file {files + 1} of {of}, {facts:,} facts", files / of
            ),
        )
    spent = time.perf_counter() - started
    report = {
        "dataset": options.dataset,
        "scale": scale,
        "seed": options.seed,
        "out": options.out,
        "files": [asdict(file) for file in written],
        "facts": sum(file.facts for file in written),
        "bytes": sum(file.bytes for file in written),
        "seconds": round(spent, 6),
    }
    if options.json:
        print(json.dumps(report))
    elif not options.quiet:
        _print_files(written)
        size = report["bytes"] / 2**20
        print(f"{report['facts']:,} facts, {size:.1f} MiB, {spent:.2f} s", file=sys.stderr)


def _print_files(files: list[Written]) -> None:
    """A line for each file; of many, the first and the last ones."""
    shown = files if len(files) <= 12 else [*files[:5], None, *files[-5:]]
    width = max(len(file.name) for file in files)
    for file in shown:
        if file is None:
            print(f"… {len(files) - 10} more")
        else:
            what = "rules" if file.name.endswith(".dl") else f"{file.facts:,} facts"
            print(f"{file.name:<{width}}  {what}")
