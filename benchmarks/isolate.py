"""Run a case in a separate process, so cases affect neither each other's memory nor time."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable

from benchmarks.report import ROOT, Row


def isolated(case: Callable[..., Row], *, timeout: float, **arguments: object) -> Row:
    """Call a function; returns its result, or a row with `failed` after an error or a timeout.

    The function is passed by name, its arguments and result as JSON.
    """
    name = f"{case.__module__}:{case.__qualname__}"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.isolate", name, json.dumps(arguments)],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {timeout:g} s"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        if last[0].startswith("TimeoutError: "):  # of one step, which is not a wrong result
            return {"failed": last[0].removeprefix("TimeoutError: ")}
        print(done.stderr, file=sys.stderr)
        return {"correct": False, "failed": f"exit status {done.returncode}: {last[0]}"}
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    """Run the case named on the command line."""
    module, _, function = sys.argv[1].partition(":")
    case: Callable[..., Row] = getattr(importlib.import_module(module), function)
    print(json.dumps(case(**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
