"""A build on a small cluster that loses an executor: `python -m tests.spark.cluster FILE STORE`.

The master, the workers and the executors are processes of their own on this machine. When the
parsing is done, one executor is killed, with all that it has kept; the build must go on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from corollary import spark
from corollary.engines.spark.session import build_session


def main() -> None:
    """Build, and print what was done."""
    source, store = sys.argv[1:]
    config = {
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.executor.memory": "512m",
        "spark.python.worker.reuse": "true",
    }
    session = build_session("local-cluster[2,1,1024]", config=config)
    killed: list[int] = []

    def on_progress(line: str) -> None:
        if line.startswith("parse:"):
            killed.append(executors()[0])
            os.kill(killed[0], signal.SIGKILL)

    built = spark.build(store, source, rules="owl-rl", session=session, on_progress=on_progress)
    print(json.dumps({"killed": killed, "facts": built.facts}))
    session.stop()


def executors() -> list[int]:
    """The executors among the descendants of this process."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
                commands[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    found = []
    for process, command in commands.items():
        if b"CoarseGrainedExecutorBackend" in command:
            ancestor = process
            while ancestor > 1 and ancestor != os.getpid():
                ancestor = parents.get(ancestor, 0)
            if ancestor == os.getpid():
                found.append(process)
    return sorted(found)


if __name__ == "__main__":
    main()
