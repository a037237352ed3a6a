"""`corollary stream`: apply files of changes to a store as they arrive in a folder."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from corollary.cli import arguments
from corollary.cli.interrupts import leaving
from corollary.cli.loading import read_options
from corollary.cli.output import print_json
from corollary.cli.stores import stored_outcome
from corollary.knowledge_base.spark.streaming import Applied, stream

if TYPE_CHECKING:
    from corollary.engines.spark.stream import BatchStream


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Watch a folder and apply each file of changes to a store exactly once, also"
        " after restarts. A file is known by its name: *.insert.nt, *.delete.nt (or another syntax"
        " of RDF), *.rdfp (RDF Patch), each also with .gz or .zst. Write it under a hidden"
        " name first, which begins with a dot, and rename it when it is complete."
    )
    arguments.add_store(parser, "the store that is changed")
    parser.add_argument("--watch", required=True, metavar="DIR", help="the folder to watch")
    arguments.add_engine(
        parser, "columnar", help_="the engine that derives consequences (default: %(default)s)"
    )
    arguments.add_session(parser, "this machine, two cores")
    parser.add_argument(
        "--interval",
        type=arguments.seconds,
        default=1.0,
        metavar="S",
        help="seconds between two scans of the folder (default: 1)",
    )
    parser.add_argument("--once", action="store_true", help="apply the existing files and exit")
    parser.add_argument(
        "--files-per-batch",
        type=arguments.positive,
        default=1000,
        metavar="N",
        help="maximum number of files in a batch (default: 1000)",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="where Spark records the files that it has read (default: in the store)",
    )
    arguments.add_on_error(parser)
    arguments.add_output(
        parser, json="a JSON object for each commit", quiet="no line for each commit"
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Watch the folder until the process is terminated."""

    def print_start(watch: BatchStream) -> None:
        def stop(number: int, frame: FrameType | None) -> None:
            watch.stop()

        signal.signal(signal.SIGTERM, stop)
        if not options.quiet:
            print(f"watching {options.watch}", file=sys.stderr, flush=True)

    def committed(applied: Applied) -> None:
        if options.json:
            print_json(applied.to_json())
        elif not options.quiet:
            files = ", ".join(applied.files[:3]) + (" …" if len(applied.files) > 3 else "")
            print(
                f"version {applied.version}: +{applied.inserted:,} -{applied.deleted:,} ({files})",
                flush=True,
            )
        for name in applied.ignored:
            print(f"ignored: {name} is neither an insertion nor a deletion", file=sys.stderr)

    place = arguments.place_of(options)
    with leaving(stored_outcome(place)):
        stream(
            place,
            options.watch,
            engine=options.engine,
            **arguments.session_of(options),
            checkpoint=options.checkpoint,
            seconds=options.interval,
            once=options.once,
            most=options.files_per_batch,
            **read_options(options),
            on_commit=committed,
            on_begin=print_start,
        )
    return 0
