"""`corollary stream`: apply files of changes to a store as they come into a folder."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from corollary.cli.arguments import add_on_error, positive, seconds
from corollary.cli.interrupts import leaving
from corollary.cli.stores import stored_outcome
from corollary.knowledge_base.engines import ENGINES
from corollary.knowledge_base.spark.streaming import Applied, stream


def add_arguments(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "stream",
        help="apply files of changes as they come into a folder (Spark Structured Streaming)",
        description="Watch a folder and apply each file of changes to a store exactly once, also"
        " after restarts. A file is known by its name: *.insert.nt, *.delete.nt (or another syntax"
        " of RDF), *.rdfp (RDF Patch), each also with .gz or .zst. Write it under another name"
        " first, beginning with a full stop, and rename it when it is whole.",
    )
    parser.add_argument("store", metavar="STORE", help="the store that is changed")
    parser.add_argument("--watch", required=True, metavar="DIR", help="the folder to watch")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="columnar",
        help="where consequences are derived (default: %(default)s)",
    )
    parser.add_argument("--master", metavar="URL", help="the Spark master (default: local[2])")
    parser.add_argument(
        "--interval",
        type=seconds,
        default=1.0,
        metavar="S",
        help="seconds between two looks at the folder (default: 1)",
    )
    parser.add_argument(
        "--once", action="store_true", help="apply what is there, and end instead of waiting"
    )
    parser.add_argument(
        "--files-per-batch",
        type=positive,
        default=1000,
        metavar="N",
        help="files that are read together at most (default: 1000)",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="where Spark remembers which files it has seen (default: in the store)",
    )
    add_on_error(parser)
    parser.add_argument("--quiet", action="store_true", help="no line for each commit")
    parser.add_argument("--json", action="store_true", help="a JSON object for each commit")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Watch until the process is told to end."""

    def begun(watch: Any) -> None:
        def stop(number: int, frame: FrameType | None) -> None:
            watch.stop()

        signal.signal(signal.SIGTERM, stop)
        if not options.quiet:
            print(f"watching {options.watch}", file=sys.stderr, flush=True)

    def committed(applied: Applied) -> None:
        if options.json:
            print(json.dumps(applied.to_json(), ensure_ascii=False), flush=True)
        elif not options.quiet:
            files = ", ".join(applied.files[:3]) + (" …" if len(applied.files) > 3 else "")
            print(
                f"version {applied.version}: +{applied.inserted:,} -{applied.deleted:,} ({files})",
                flush=True,
            )
        for name in applied.ignored:
            print(f"ignored: {name} is neither an insertion nor a deletion", file=sys.stderr)

    with leaving(stored_outcome(options.store)):
        stream(
            options.store,
            options.watch,
            engine=options.engine,
            master=options.master,
            checkpoint=options.checkpoint,
            seconds=options.interval,
            once=options.once,
            most=options.files_per_batch,
            on_error=options.on_error,
            limit_input_bytes=options.limit_input_bytes,
            on_commit=committed,
            on_begin=begun,
        )
    return 0
