"""What differs between a session in this process and one of Spark Connect, which has no context."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def is_remote(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect: it has no context and no Java in this process."""
    return not hasattr(session, "_jsparkSession")


def master_of(session: SparkSession) -> str:
    """Return the master of a session; a server of Spark Connect may not say."""
    return str(session.conf.get("spark.master", "") or "")


def parallelism(session: SparkSession) -> int:
    """Return the number of tasks that run in parallel."""
    if not is_remote(session):
        context: Any = session.sparkContext
        return max(1, int(context.defaultParallelism))
    # A range has as many partitions as tasks run in parallel.
    counted = session.range(1 << 10).selectExpr("spark_partition_id() AS part").distinct().count()
    return max(1, counted)
