"""A standalone cluster on this machine: a master and two workers, each a process of its own.

Run as a program, it materializes on the cluster, kills one worker after the first round if asked
to, and prints what it found. It is no test itself: a process can have one Spark, and the tests have
one already.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.evaluate import RoundReport
from corollary.engines.spark.java import find_java
from corollary.engines.spark.session import build_session
from corollary.lang.program import Program

PROGRAM = Program.parse(
    "near(?x, ?y) :- edge(?x, ?y) . near(?x, ?z) :- near(?x, ?y), back(?y, ?w), edge(?w, ?z) ."
    "back(?y, ?x) :- edge(?x, ?y) ."
    + "".join(f"edge({n}, {(n * 7 + 3) % 60}) ." for n in range(60))
    + "".join(f"edge({n}, {n + 1}) ." for n in range(60))
)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a master, and its two workers."""
    java = find_java()
    jars = Path(pyspark.__file__).parent / "jars"
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(jars.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # as bin/load-spark-env.sh sets it
    }

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(java.home / "bin" / "java"), "-Xmx256m", "-cp", f"{jars}/*"]
        command += [f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0"]
        with (folder / f"{name}-{len(started)}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, *arguments],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(start("master.Master", "--port", str(port)))
        _wait_for(port)
        for number in range(2):
            work = folder / f"work{number}"
            started.append(start("worker.Worker", "-c", "1", "-m", "1g", "-d", str(work), url))
        yield url, started[1:]
    finally:
        for process in started:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise TimeoutError("the master does not listen")


def main(folder: str, kill: str) -> None:
    """Materialize on a cluster, and print what was derived and by how many executors."""
    with cluster(Path(folder)) as (url, workers):
        session = build_session(
            url,
            config={
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.executor.memory": "512m",
                "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
                "spark.pyspark.python": sys.executable,
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.adaptive.enabled": "false",
                "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
                "spark.cores.max": "2",
            },
        )
        context = session.sparkContext
        executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1
        killed = 0

        def on_report(report: RoundReport) -> None:
            nonlocal killed
            if kill == "kill" and not killed and report.number == 1:
                stop(workers[0])
                killed = report.number

        dictionary = Dictionary()
        engine = SparkEngine(
            dictionary,
            ColumnarEngine,
            session,
            small=3,
            partitions=4,
            finish=0,
            tiny=0,
            on_report=on_report,
        )
        from corollary.algorithms.seminaive import materialize

        facts = engine.facts(encode(PROGRAM.facts, dictionary))
        done = materialize(PROGRAM, facts, engine)
        rows = {p.relation: len(done.facts.rows(p)) for p in done.facts.predicates()}
        print(json.dumps({"rows": rows, "executors": executors, "killed": killed}))
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
