"""A standalone Spark cluster on this machine: a master and workers in separate processes.

Benchmarks and tests on it use the same sockets, shuffles and separate processes as on several
machines; only the network between them is missing.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.engines.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOST = "127.0.0.1"
_LONG = 60  # seconds until a master listens, and until all workers are registered


@contextmanager
def cluster(
    folder: Path,
    *,
    workers: int = 2,
    memory: str = "1g",
    prefix: Sequence[str] = (),
    prefixed: int | None = None,
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a master and workers with one core each; yields the address of the master.

    `prefix` is a command that starts the workers, for example in a mount namespace of their own:
    all of them, or the first `prefixed`.
    """
    import pyspark

    java = find_java()
    jars = Path(pyspark.__file__).parent / "jars"
    port = free_port()
    url = f"spark://{_HOST}:{port}"
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(jars.parent),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_SCALA_VERSION": "2.13",  # as bin/load-spark-env.sh sets it
    }

    def start(name: str, *arguments: str, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        command = [
            *prefix,
            str(java.home / "bin" / "java"),
            "-Xmx256m",
            "-cp",
            f"{jars}/*",
        ]
        command += [f"org.apache.spark.deploy.{name}", "--host", _HOST, "--webui-port", "0"]
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
        for number in range(workers):
            work = folder / f"work{number}"
            own = prefix if prefixed is None or number < prefixed else ()
            arguments = ("-c", "1", "-m", memory, "-d", str(work), url)
            started.append(start("worker.Worker", *arguments, prefix=own))
        yield url, started[1:]
    finally:
        for process in started:
            stop(process)


def session_at(url: str, *, workers: int = 2, memory: str = "512m") -> SparkSession:
    """A session on such a cluster, with the Python of this process."""
    from corollary.engines.spark.session import build_session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    config = {
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        "spark.executor.memory": memory,
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.sql.shuffle.partitions": str(workers),
        "spark.sql.adaptive.enabled": "false",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{_LONG}s",
        "spark.cores.max": str(workers),
    }
    return build_session(url, config=config)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    """A port that is not in use."""
    with socket.socket() as found:
        found.bind((_HOST, 0))
        return int(found.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _LONG
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((_HOST, port), 1):
            return
        time.sleep(0.1)
    raise TimeoutError("the master does not listen")
