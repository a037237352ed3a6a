"""Spark: DataFrames in, DataFrames out; build, update and query stores on a cluster.

    from corollary import spark

PySpark is imported when a function is called.
"""

from corollary.knowledge_base.spark import (
    Stage,
    build,
    materialize,
    open_store,
    query,
    register,
    update,
)
from corollary.knowledge_base.spark.publishing import publish
from corollary.knowledge_base.spark.streaming import stream

__all__ = [
    "Stage",
    "build",
    "materialize",
    "open_store",
    "publish",
    "query",
    "register",
    "stream",
    "update",
]
