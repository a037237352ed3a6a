"""Builds a Spark session that starts anywhere: without Java installed, without a network, quietly.

Who has a session already passes it to Corollary instead; nothing here is needed then.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.engines.spark.java import find_java
from corollary.errors import OperationFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Plans are run as they are: adaptive execution makes a job of each exchange, to look at what it
# wrote, and the exchanges of this engine know their partitions.
STEADY = {"spark.sql.adaptive.enabled": "false"}


class _Process:
    """Whether Spark belongs to the process that this one was forked from.

    Both would talk over the same connection to Java, and read each other's answers.
    """

    inherited = False

    def after_fork(self) -> None:
        context = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
        self.inherited = context is not None and context.SparkContext._gateway is not None


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.after_fork)


def build_session(
    master: str = "local[*]",
    *,
    application: str = "corollary",
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or return the session that runs in this process already.

    `config` has the last word over the settings made here.

    >>> session = build_session("local[1]")
    >>> session.range(10).count()
    10
    >>> session.stop()
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise OperationFailed(
            "E403",
            f"Spark is not installed ({error})",
            hint='run `pip install "corollary[spark]"`',
        ) from error

    if _process.inherited:
        raise OperationFailed(
            "E408",
            "the parent of this process has started Spark, which a forked child cannot use",
            "start Spark in the child only, or start children by spawn instead of fork",
        )
    if SparkContext._gateway is None:  # the Java process that outlives a session is not there yet
        _prepare_environment(master)
    builder = SparkSession.builder.master(master).appName(application)
    for key, value in (_settings(master) | dict(config or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _prepare_environment(master: str) -> None:
    """Set what Spark's launcher reads from the environment, where its own choice would be wrong."""
    java = find_java()
    spark_would_find_it = java.origin == "JAVA_HOME" or (
        java.origin == "PATH" and not os.environ.get("JAVA_HOME")
    )
    if not spark_would_find_it:
        os.environ["JAVA_HOME"] = str(java.home)
    if _cores(master) is not None:
        # Else workers run whatever `python3` is on the PATH, which may lack our packages ...
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # ... and Spark looks up the host's name, which fails on a machine without a network.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _settings(master: str) -> dict[str, str]:
    log_settings = Path(str(files("corollary.engines.spark") / "log4j2.properties"))
    settings = {
        # Java options of the user come after these "default" ones, and win.
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={log_settings.as_uri()}",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    cores = _cores(master)
    if cores is not None:
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(cores),
        }
    return settings


def _cores(master: str) -> int | None:
    """Cores that a master on this machine uses; None for a cluster, which may be anything."""
    if match := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return int(match[1]) * int(match[2])
    match = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?", master)
    if match is None:
        return None
    if match[1] == "*":
        # Java counts the processors that this process may use; not every system tells them.
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    return int(match[1] or 1)
