"""List files at addresses that Spark opens, with their sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from corollary.engines.spark.failures import explain_failures
from corollary.engines.spark.remote import is_remote
from corollary.errors import InvalidInput


class RemoteFile(NamedTuple):
    """A file that matches a pattern."""

    path: str
    size: int


def find(session: SparkSession, pattern: str) -> list[RemoteFile]:
    """List the files that match a path, a folder or a pattern, sorted by name."""
    with explain_failures(f"looking for {pattern}"):
        if is_remote(session):
            return sorted(_list(session, pattern))
        path, system = _open(session, pattern)
        matches = system.globStatus(path)
        found: list[RemoteFile] = []
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
    """Whether a file or folder exists at an address."""
    with explain_failures(f"looking for {address}"):
        if is_remote(session):
            return _is_found(session, address)
        path, system = _open(session, address)
        return bool(system.exists(path))


def _list(session: SparkSession, pattern: str) -> list[RemoteFile]:
    """List files by a query, which opens none of them: Spark Connect has no Java here."""
    files = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(pattern)
    rows = files.select("path", "length").collect()
    return [RemoteFile(str(row["path"]), int(row["length"])) for row in rows]


def _is_found(session: SparkSession, address: str) -> bool:
    try:
        _list(session, address)
    except PySparkException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True


def _open(session: SparkSession, address: str) -> tuple[Any, Any]:
    """Return the path of an address and its file system, in Java."""
    context: Any = session.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(address)
    return path, path.getFileSystem(context._jsc.hadoopConfiguration())


def _keep(status: Any, found: list[RemoteFile]) -> None:
    name = str(status.getPath().getName())
    if not name.startswith((".", "_")):
        found.append(RemoteFile(str(status.getPath().toString()), int(status.getLen())))
