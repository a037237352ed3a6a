"""What went wrong on a cluster, in one sentence: Spark answers with the stacks of two languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from corollary.errors import CorollaryError, InvalidInput, OperationFailed

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
_LIMIT = 300  # characters of a cause that are shown


@contextmanager
def explained(stage: str) -> Iterator[None]:
    """Tell what made a stage fail as an error of ours."""
    try:
        yield
    except CorollaryError:
        raise
    except (PySparkException, Py4JError) as error:
        raise told(stage, said(error)) from None


def said(error: Any) -> str:
    """All that an exception of Spark says, with its causes in Java."""
    found = [str(error)]
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        found.append(str(java.toString()))
        java = java.getCause()
    return "\n".join(found)


def told(stage: str, text: str) -> CorollaryError:
    """The error that people see for what Spark says.

    >>> told("parse", "java.io.IOException: No space left on device").message
    'parse failed: there is no space left on a disk of the cluster'
    """
    if match := _MISSING.search(text):
        path = match[1] or match[2]
        return InvalidInput("E541", f"there is nothing at {path}", file=path)
    if "No space left on device" in text:
        return OperationFailed(
            "E542",
            f"{stage} failed: there is no space left on a disk of the cluster",
            "what Spark puts aside goes to spark.local.dir, and the store to its own folder;"
            " nothing was committed",
        )
    if match := _SCHEME.search(text):
        return InvalidInput(
            "E543",
            f"Spark has nothing to open {match[1] or match[2]} paths with",
            "give the session the connector, such as"
            " --packages org.apache.hadoop:hadoop-aws:<version of Hadoop> for s3a",
        )
    if match := _DENIED.search(text):
        return OperationFailed(
            "E544", f"{stage} failed: access denied {_short(match[1])}".rstrip(), None
        )
    if match := _HOST.search(text):
        what = f"the host {match[1]} is not known" if match[1] else "a connection was refused"
        return OperationFailed("E545", f"{stage} failed: {what}", "is the address right?")
    if "OutOfMemoryError" in text or "Java heap space" in text:
        return OperationFailed(
            "E406",
            f"{stage} failed: Spark ran out of memory",
            "give executors more (spark.executor.memory), or let there be more partitions",
        )
    return OperationFailed("E540", f"{stage} failed: {_cause(text)}", "nothing was committed")


def _cause(text: str) -> str:
    """The innermost cause that the stacks name."""
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
