"""Builds and updates on a small cluster, with faults: `python -m tests.spark.faulty FOLDER`.

The folder has `data.dl`, `more.dl` and, afterwards, a store for each fault. A few facts are the
most that the driver takes, so that tasks do the work. Processes are killed while a job runs
whose description has the given words. Slow tasks are started twice (speculation). Then the first
task of every job throws once, and is killed once, as the kernel does when memory runs out; at last
it is killed whenever it is tried.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from corollary import spark
from corollary.engines.spark.base import SparkRun
from corollary.engines.spark.session import build_session
from corollary.errors import CorollaryError
from corollary.testing import thresholds
from tests.spark.cluster import executors

# The name of the store, the words of the job during which a process is killed, and which one.
FAULTS = (
    ("rounds", "round 1", "executor"),
    ("write", "commit", "executor"),
    ("worker", "round", "python"),
)


def main() -> None:
    """Build with each fault, update with another one, and print what was killed."""
    folder = Path(sys.argv[1])
    config = {
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
    }
    session = build_session("local-cluster[2,1,1024]", config=config)
    killed: dict[str, int | str] = {}
    with thresholds(driver_facts_limit=20, driver_finish_facts_limit=0):
        for name, words, kind in FAULTS:
            with killing(session, words, kind) as found:
                spark.build(folder / name, folder / "data.dl", rules="none", session=session)
            killed[name] = len(found)
        with killing(session, "update", "executor") as found:
            spark.update(folder / "rounds", insert=[folder / "more.dl"], session=session)
        killed["update"] = len(found)
        for how in ("throws", "dies"):
            with failing(Failing(how, attempts=1)):
                spark.build(folder / how, folder / "data.dl", rules="none", session=session)
        with failing(Failing("dies", attempts=100)):
            try:
                spark.build(folder / "never", folder / "data.dl", rules="none", session=session)
            except CorollaryError as error:
                killed["never"] = error.code
    print(json.dumps(killed))
    session.stop()


@contextmanager
def killing(session: Any, words: str, kind: str) -> Iterator[list[int]]:
    """Kill one process while a job with these words in its description runs."""
    killed: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set() and not killed:
            if any(words in text for text in active(session)):
                processes = executors() if kind == "executor" else python_workers()
                if processes:
                    os.kill(processes[-1], signal.SIGKILL)
                    killed.append(processes[-1])
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield killed
    finally:
        over.set()
        watcher.join()


@dataclass(frozen=True)
class Failing:
    """Makes the first task of each job of the engine fail, in its first attempts."""

    how: str
    attempts: int
    function: Any = None

    def __call__(self, batches: Any) -> Iterator[Any]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        if context.partitionId() == 0 and context.attemptNumber() < self.attempts:
            if self.how == "throws":
                raise RuntimeError("this task fails once")
            os.kill(os.getpid(), signal.SIGKILL)
        yield from self.function(batches)


@contextmanager
def failing(fault: Failing) -> Iterator[None]:
    """Let tasks that work on chunks fail."""
    map_chunks = SparkRun.map_chunks

    def mapped(run: SparkRun, frame: Any, function: Any) -> Any:
        return map_chunks(run, frame, replace(fault, function=function))

    with patch.object(SparkRun, "map_chunks", mapped):
        yield


def active(session: Any) -> list[str]:
    """The descriptions of the jobs that run now."""
    jobs = session.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(number) for number in range(jobs.size())]
    running = [job for job in found if str(job.status()) == "RUNNING"]
    return [job.description().get() for job in running if job.description().isDefined()]


def python_workers() -> list[int]:
    """The Python workers of the executors: children of Spark's daemons."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
                commands[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    daemons = {
        p for p, command in commands.items() if b"daemon" in command and b"python" in command
    }
    mine = {*executors()}
    return sorted(
        p for p, parent in parents.items() if parent in daemons and parents.get(parent) in mine
    )


if __name__ == "__main__":
    main()
