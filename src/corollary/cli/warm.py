"""`corollary warm`: compile the loops for large inputs ahead of their first use."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import deque

from corollary.cli import arguments
from corollary.cli.output import print_json
from corollary.cli.warm_work import WORK
from corollary.errors import OperationFailed


def add_arguments(parser: arguments.Parser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Compile the loops for large inputs, which otherwise happens when they are first needed."
        " Compiled loops are kept beside the package, or in your cache folder."
    )
    parser.add_argument(
        "--threads",
        type=arguments.positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes that compile (default: all cores)",
    )
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    parser.set_defaults(command=warm)


def warm(options: argparse.Namespace) -> None:
    """Compile in several processes, each with loops of its own as far as possible."""
    started = time.perf_counter()
    waiting = deque(WORK)
    running: list[tuple[str, subprocess.Popen[str]]] = []
    seconds: dict[str, float] = {}
    try:
        while waiting or running:
            while waiting and len(running) < options.threads:
                name = waiting.popleft()
                running.append((name, _start(name)))
            name, process = running.pop(0)
            _, message = process.communicate()
            if process.returncode:
                reason = (message.strip() or f"exit status {process.returncode}").splitlines()[-1]
                raise OperationFailed(
                    "E410",
                    f"compiling the loops of '{name}' failed: {reason}",
                    "free disk space, or do without: loops are compiled when they are needed",
                )
            seconds[name] = round(time.perf_counter() - started, 1)
    finally:
        for _, process in running:
            process.kill()
            process.communicate()
    if options.json:
        print_json({"seconds": seconds})
    else:
        print(f"compiled in {time.perf_counter() - started:.1f} s")


def _start(name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "corollary.cli.warm_work", name],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
