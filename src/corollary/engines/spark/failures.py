"""Explain Spark's failures in one sentence, in place of the stack traces of two languages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from corollary.errors import CorollaryError, InvalidInput, OperationFailed

SPARK_ERRORS = (PySparkException, Py4JError)

_MISSING = re.compile(
    r"PATH_NOT_FOUND\]\s*Path does not exist: (\S+?)\.?(?:\s|$)"
    r"|(?:FileNotFoundException|Input path does not exist): (?:File )?(\S+?)(?:\s|$)"
)
_SCHEME = re.compile(
    r'No FileSystem for scheme "?([\w+-]+)"?|Class \S*?\.(\w+FileSystem) not found'
)
_DENIED = re.compile(
    r"(?:AccessDeniedException|AccessControlException|Permission denied|403 Forbidden)[: ]*([^\n]*)"
)
_HOST = re.compile(r"UnknownHostException:? ([\w.-]+)|Connection refused[^\n]*")
_CAUSE = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+(\w*(?:Exception|Error)):? ?([^\n]*)", re.M)
_RAISED = re.compile(r"^((?:[\w.]+\.)?\w*(?:Error|Exception)): ([^\n]*)$", re.M)
_UNSEEN = re.compile(r"FileNotFoundError: E549: ([^\n]*)")  # raised by `parquet.WriteParquet`
_DAMAGED = re.compile(r"ValueError: E503: ([^\n]*): ([^\n:]*)")  # by `parquet.ReadObjects`
_REFUSED = re.compile(r"the object store does not serve [^\n]*")  # by `core.object_store`
_PYTHON = re.compile(
    r"No module named '(?P<module>corollary|numpy|pyarrow|numba|pandas|pyoxigraph)[\w.]*'"
    r"|PYTHON_VERSION_MISMATCH\] (?P<versions>Python in worker has different version: \S+ than that"
    r" in driver: [\d.]*\d)"
    r'|Cannot run program "(?P<program>[^"]*python[^"]*)"'
)
# The operating system kills workers that use too much memory; a bounded one raises an error.
_MEMORY = re.compile(r"\w*MemoryError\b|Java heap space|Python worker exited unexpectedly")
_CHANGE = re.compile(r"neither an insertion nor a deletion: (\S{0,80})")  # by `stream`
_LIMIT = 300  # characters of a cause in a message


@contextmanager
def explain_failures(stage: str) -> Iterator[None]:
    """Translate exceptions of Spark within a stage to errors of Corollary."""
    try:
        yield
    except CorollaryError:
        raise
    except SPARK_ERRORS as error:
        raise user_error(stage, java_messages(error)) from None


def java_messages(error: Any) -> str:
    """Concatenate the messages of a Spark exception and of its causes in Java."""
    found = [str(error)]
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        found.append(str(java.toString()))
        java = java.getCause()
    return "\n".join(found)


def user_error(stage: str, text: str) -> CorollaryError:
    """Create the error that users see for a message of Spark.

    >>> user_error("parse", "java.io.IOException: No space left on device").message
    'parse failed: there is no space left on a disk of the cluster'
    """
    if match := _UNSEEN.search(text):
        return incomplete_table(f"{stage} failed: {_short(match[1])}")
    if match := _CHANGE.search(text):
        return InvalidInput(
            "E554",
            f"a change of the stream is neither an insertion nor a deletion: {match[1]}",
            "changes are insert or delete, as in Delta's change data feed",
        )
    if match := _DAMAGED.search(text):
        return OperationFailed(
            "E503",
            f"the store is damaged: {match[1].rpartition('/')[2]}: {_short(match[2])}",
            "run 'corollary verify' to list the affected files; other versions may be intact",
            file=match[1],
        )
    if match := _REFUSED.search(text):
        return OperationFailed(
            "E512",
            f"{stage} failed: {_short(match[0])}",
            "tasks use the options of the store and the environment of the executors",
        )
    if match := _PYTHON.search(text):
        return OperationFailed(
            "E551",
            f"{stage} failed: {_python_problem(match)}",
            "set PYSPARK_PYTHON, or --conf spark.pyspark.python=…, to the interpreter of an"
            " environment that has corollary, on every machine, before the session starts"
            f" (here: {sys.executable})",
        )
    if match := _MISSING.search(text):
        path = match[1] or match[2]
        return InvalidInput("E541", f"there is nothing at {path}", file=path)
    if "No space left on device" in text:
        return OperationFailed(
            "E542",
            f"{stage} failed: there is no space left on a disk of the cluster",
            "Spark's temporary files go to spark.local.dir, the store to its own folder;"
            " nothing was committed",
        )
    if match := _SCHEME.search(text):
        return InvalidInput(
            "E543",
            f"Spark has no connector for {match[1] or match[2]} paths",
            "start the session with the connector, such as"
            " --packages org.apache.hadoop:hadoop-aws:<version of Hadoop> for s3a",
        )
    if match := _DENIED.search(text):
        return OperationFailed(
            "E544", f"{stage} failed: access denied {_short(match[1])}".rstrip(), None
        )
    if match := _HOST.search(text):
        what = f"the host {match[1]} is not known" if match[1] else "a connection was refused"
        return OperationFailed("E545", f"{stage} failed: {what}", "check the address")
    if match := _MEMORY.search(text):
        if match[0] in ("OutOfMemoryError", "Java heap space"):
            what, setting = "Spark ran out of memory", "spark.executor.memory"
        else:
            what = "a Python worker was killed, or could not get more memory"
            setting = "spark.executor.memoryOverhead"
        return OperationFailed(
            "E406",
            f"{stage} failed: {what}",
            f"raise {setting}, use fewer cores per executor, or more partitions;"
            " nothing was committed",
        )
    return OperationFailed("E540", f"{stage} failed: {_cause(text)}", "nothing was committed")


def _python_problem(match: re.Match[str]) -> str:
    if match["module"]:
        return f"the Python of Spark's workers lacks {match['module']}"
    if match["versions"]:
        return match["versions"].replace(":", "")
    return f"Spark's workers cannot start {match['program']}"


def incomplete_table(message: str) -> OperationFailed:
    """Create the error for a table without the rows that tasks were to write."""
    return OperationFailed(
        "E549",
        message,
        "every machine of the cluster must see the folder of the store under the same path;"
        " nothing was committed",
    )


def _cause(text: str) -> str:
    """Extract the innermost cause from the stack traces."""
    raised = _RAISED.findall(text)
    if raised and "Python worker" in text:
        kind, message = raised[-1]
        return _short(f"{kind.split('.')[-1]}: {message}")
    causes = [(kind, message) for kind, message in _CAUSE.findall(text) if message]
    if causes:
        kind, message = causes[-1]
        return _short(f"{kind}: {message}")
    return _short(text.strip().splitlines()[0] if text.strip() else "Spark does not say why")


def _short(text: str) -> str:
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"
