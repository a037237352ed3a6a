"""`corollary generate`: synthetic data for experiments and benchmarks."""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from dataclasses import asdict

from corollary.cli import arguments
from corollary.cli.output import print_json
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


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Write a dataset into a folder: facts, and a program for 'corollary run'. The"
        " same scale and seed give the same files."
    )
    parser.epilog = f"{_datasets()}\n\n{EXAMPLES}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("dataset", metavar="DATASET", choices=DATASETS, help=", ".join(DATASETS))
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the files")
    arguments.add_number(parser, "--scale", 1.0, "how much: see the datasets below", float)
    arguments.add_number(parser, "--seed", 0, "seed of the random numbers", arguments.natural, "S")
    parser.add_argument(
        "--compress",
        choices=COMPRESSIONS,
        default="none",
        help="of the facts: none, gzip (.gz) or zstd (.zst) (default: none)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace what was generated into the folder before"
    )
    arguments.add_output(
        parser, json="print files and sizes as JSON", quiet="no progress and no summary"
    )
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
    """Generate and write the facts, and report."""
    started = time.perf_counter()
    # A number of universities is printed and stored without a decimal point.
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
        print_json(report)
    elif not options.quiet:
        _print_files(written)
        size = report["bytes"] / 2**20
        print(f"{report['facts']:,} facts, {size:.1f} MiB, {spent:.2f} s", file=sys.stderr)


def _print_files(files: list[Written]) -> None:
    """Print a line per file; if there are many, only the first and last ones."""
    shown = files if len(files) <= 12 else [*files[:5], None, *files[-5:]]
    width = max(len(file.name) for file in files)
    for file in shown:
        if file is None:
            print(f"… {len(files) - 10} more")
        else:
            what = "rules" if file.name.endswith(".dl") else f"{file.facts:,} facts"
            print(f"{file.name:<{width}}  {what}")
