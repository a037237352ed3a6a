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
    from corollary.engines.columnar.engine import ColumnarEngine
    from corollary.engines.spark.engine import SparkEngine

    return SparkEngine(dictionary, ColumnarEngine, session(), **options)


def spark_large(dictionary: Dictionary) -> Engine[Any]:
    """All but the smallest sets stay in Spark, as if they were large."""
    return spark(dictionary, small=3, partitions=3, tiny=1)


def spark_inline(dictionary: Dictionary) -> Engine[Any]:
    """The driver finishes, and relations of some facts are sent everywhere."""
    from tests.engines.spark.inline import inline

    return inline(dictionary, small=3, finish=4, tiny=2)


def spark_rounds(dictionary: Dictionary) -> Engine[Any]:
    """Nothing is small: whatever is sent waits for a round."""
    from tests.engines.spark.inline import inline

    return inline(dictionary, small=0, finish=0, tiny=0, edges=0)


ENGINES: dict[str, MakeEngine] = {
    "columnar": columnar,
    "inline": spark_inline,
    "inline-rounds": spark_rounds,
    "spark": spark,
    "spark-large": spark_large,
}


def marks(engine: str) -> tuple[pytest.MarkDecorator, ...]:
    """Tests on Spark share one session, and so one worker."""
    spark_only = (pytest.mark.spark, pytest.mark.xdist_group("spark"))
    return spark_only if engine.startswith("spark") else ()
