"""Files at addresses that Spark opens: which there are, and how large."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from corollary.engines.spark.failures import explained
from corollary.errors import InvalidInput


class Found(NamedTuple):
    """A file."""

    path: str
    size: int


def find(session: SparkSession, pattern: str) -> list[Found]:
    """The files that a path, a folder or a pattern stands for, in the order of their names."""
    with explained(f"looking for {pattern}"):
        context: Any = session.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(pattern)
        system = path.getFileSystem(context._jsc.hadoopConfiguration())
        matches = system.globStatus(path)
        found: list[Found] = []
        for status in matches or []:
            if status.isDirectory():
                inside = system.listFiles(status.getPath(), True)
                while inside.hasNext():
                    _keep(inside.next(), found)
            else:
                _keep(status, found)
    if not found:
        raise InvalidInput("E541", f"there is nothing at {pattern}", file=pattern)
    return sorted(found)


def exists(session: SparkSession, address: str) -> bool:
    """Whether there is something at an address."""
    with explained(f"looking for {address}"):
        context: Any = session.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(address)
        system = path.getFileSystem(context._jsc.hadoopConfiguration())
        return bool(system.exists(path))


def _keep(status: Any, found: list[Found]) -> None:
    name = str(status.getPath().getName())
    if not name.startswith((".", "_")):
        found.append(Found(str(status.getPath().toString()), int(status.getLen())))
