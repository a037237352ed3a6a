"""Engines by the names that the command line gives them."""

from __future__ import annotations

from typing import Any

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from corollary.errors import OperationFailed

ENGINES = ("columnar", "spark")


def make_engine(
    name: str, dictionary: Dictionary, *, threads: int = 1, limit_memory: int | None = None
) -> Engine[Any]:
    """An engine; only the one asked for is imported.

    >>> type(make_engine("columnar", Dictionary())).__name__
    'ColumnarEngine'
    """
    if name == "spark":
        try:
            from corollary.engines.spark.engine import SparkEngine
        except ModuleNotFoundError as error:
            raise OperationFailed(
                "E403",
                f"the Spark engine needs {error.name}, which is not installed",
                "pip install 'corollary[spark]' brings it, and a Java",
            ) from None
        return SparkEngine(dictionary)
    from corollary.engines.columnar.engine import ColumnarEngine

    return ColumnarEngine(dictionary, threads=threads, limit_memory=limit_memory)
