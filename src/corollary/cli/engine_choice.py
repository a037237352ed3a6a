"""Choose the engine of a build that names none, and say which and why."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from corollary.core.inputs import is_compressed
from corollary.knowledge_base.data import paths_of

IN_PROCESS_BYTES = 200_000_000  # of text, which starting Spark takes longer than to build from

_RATIO = 8  # bytes of text per byte of a compressed or columnar file, roughly
_COLUMNAR = (".parquet", ".arrow", ".feather")


@dataclass(frozen=True)
class Choice:
    """An engine, and the reason for it."""

    engine: str
    reason: str

    def __str__(self) -> str:
        if self.engine == "columnar":
            return f"building in process: {self.reason} (--engine spark builds on Spark)"
        return f"building on Spark: {self.reason} (--engine columnar builds in process)"


def choose_engine(
    sources: Iterable[str],
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
) -> Choice:
    """Choose Spark, unless the sources are so small that starting it costs more than the work.

    >>> choose_engine([], master="local[2]").engine
    'spark'
    >>> choose_engine(["hdfs://namenode/data"]).reason
    'hdfs://namenode/data is remote'
    """
    if importlib.util.find_spec("pyspark") is None:
        return Choice("columnar", "Spark is not installed")
    if master is not None:
        return Choice("spark", f"--master is {master}")
    if config:
        return Choice("spark", f"--conf sets {next(iter(config))}")
    sources = list(sources)
    for source in sources:
        if "://" in source and not source.startswith("file:"):
            return Choice("spark", f"{source} is remote")
    if _has_session():
        return Choice("spark", "a session runs already")
    files = [path for source in sources for path in paths_of(source.removeprefix("file://"))]
    size = sum(map(_text_bytes, files))
    few = size <= IN_PROCESS_BYTES
    megabytes = f"{size / 1e6:,.1f} MB of text are {'at most' if few else 'more than'}"
    return Choice("columnar" if few else "spark", f"{megabytes} {IN_PROCESS_BYTES // 1_000_000} MB")


def print_choice(choice: Choice) -> None:
    """Print the choice as one line on stderr."""
    print(choice, file=sys.stderr, flush=True)


def _has_session() -> bool:
    """Whether this process has a Spark session, or was started by spark-submit."""
    sql = sys.modules.get("pyspark.sql")
    return "PYSPARK_GATEWAY_PORT" in os.environ or (
        sql is not None and sql.SparkSession.getActiveSession() is not None
    )


def _text_bytes(path: Path) -> int:
    """Estimate the bytes of text in a file; 0 if it is missing, which its reader reports."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size * (_RATIO if is_compressed(path) or path.suffix in _COLUMNAR else 1)
