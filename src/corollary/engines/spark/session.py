"""Build a Spark session that starts anywhere: without Java, without a network, and quietly.

Callers with a session of their own pass it to Corollary instead, and do not need this module.
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

# Adaptive execution is off: it runs each exchange as a job to inspect its output, but the exchanges
# of this engine already know their partitions.
STEADY = {"spark.sql.adaptive.enabled": "false"}


_PYTHON = "spark.pyspark.python"


class _Process:
    """Detects that Spark belongs to the process that this one was forked from.

    Both would share one connection to Java, and read each other's responses.
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
    """Start Spark, or return the session that already runs in this process.

    `config` overrides the settings made here.

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
    if SparkContext._gateway is None:  # the Java process, which outlives sessions, is not running
        _prepare_environment(master)
    _choose_python(master, config or {})
    builder = SparkSession.builder.master(master).appName(application)
    for key, value in (_settings(master) | dict(config or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _prepare_environment(master: str) -> None:
    """Set environment variables of Spark's launcher where its own defaults would be wrong."""
    java = find_java()
    spark_would_find_it = java.origin == "JAVA_HOME" or (
        java.origin == "PATH" and not os.environ.get("JAVA_HOME")
    )
    if not spark_would_find_it:
        os.environ["JAVA_HOME"] = str(java.home)
    if _cores(master) is not None:
        # Spark resolves the host's name, which fails on a machine without a network.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _choose_python(master: str, config: Mapping[str, str]) -> None:
    """Choose the Python of the workers, which PySpark reads from the environment only.

    By default it is the `python3` on the PATH, which may lack our packages. The machines of a
    standalone cluster have the environment of this process at the same path.
    """
    if chosen := config.get(_PYTHON):
        os.environ["PYSPARK_PYTHON"] = chosen
    elif _cores(master) is not None or master.startswith("spark://"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _settings(master: str) -> dict[str, str]:
    log_settings = Path(str(files("corollary.engines.spark") / "log4j2.properties"))
    settings = {
        # Java options of the user come after these "default" ones and override them.
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
    """Return the cores that a local master uses; None for a cluster, whose size is unknown."""
    if match := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return int(match[1]) * int(match[2])
    match = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?", master)
    if match is None:
        return None
    if match[1] == "*":
        # Java counts the processors available to this process; not every system exposes them.
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    return int(match[1] or 1)
