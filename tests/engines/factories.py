"""The engines that tests run on, by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from tests.engines.conformance import MakeEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cache
def session() -> SparkSession:
    """A session of its own beside that of the other tests, with settings for a handful of rows."""
    from corollary.engines.spark.session import build_session

    session = build_session("local[2]", application="corollary-tests").newSession()
    for key, value in {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",  # compiling a plan takes longer than running it
        "spark.sql.shuffle.partitions": "1",
    }.items():
        session.conf.set(key, value)
    return session


def columnar(dictionary: Dictionary) -> Engine[Any]:
    from corollary.engines.columnar.engine import ColumnarEngine

    return ColumnarEngine(dictionary)


def spark(dictionary: Dictionary, **options: Any) -> Engine[Any]:
    from corollary.engines.spark.engine import SparkEngine

    return SparkEngine(dictionary, session(), **options)


def spark_large(dictionary: Dictionary) -> Engine[Any]:
    """All but the smallest tables stay in Spark, as if they were large."""
    return spark(dictionary, small=3)


ENGINES: dict[str, MakeEngine] = {
    "columnar": columnar,
    "spark": spark,
    "spark-large": spark_large,
}


def marks(engine: str) -> tuple[pytest.MarkDecorator, ...]:
    """Tests on Spark share one session, and so one worker."""
    spark_only = (pytest.mark.spark, pytest.mark.xdist_group("spark"))
    return spark_only if engine.startswith("spark") else ()
