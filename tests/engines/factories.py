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


# A virtual machine that lives for minutes: it compiles fast rather than well, and collects alone.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Compiling a plan over a handful of rows takes longer than interpreting it.
_INTERPRETED = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}


@cache
def main_session() -> SparkSession:
    """The session that a process of tests starts."""
    from corollary.engines.spark.session import build_session

    config = {"spark.driver.extraJavaOptions": _JAVA, **_INTERPRETED}
    return build_session("local[2]", application="corollary-tests", config=config)


@cache
def session() -> SparkSession:
    """A session of its own beside the main one, with settings for a handful of rows."""
    session = main_session().newSession()
    for key, value in {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        **_INTERPRETED,
    }.items():
        session.conf.set(key, value)
    return session


def columnar(dictionary: Dictionary) -> Engine[Any]:
    from corollary.engines.columnar.engine import ColumnarEngine

    return ColumnarEngine(dictionary)


def toy(dictionary: Dictionary) -> Engine[Any]:
    """The least that an engine must do, and what stands in for the rest."""
    from tests.engines.toy import ToyEngine

    return ToyEngine(dictionary)


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


def spark_values(_: Dictionary) -> Engine[Any]:
    """Tasks compute values and number new terms, with a dictionary of its own."""
    from tests.engines.spark.inline import inline_values

    return inline_values(small=0, finish=0, tiny=0, edges=0)


ENGINES: dict[str, MakeEngine] = {
    "columnar": columnar,
    "inline": spark_inline,
    "inline-rounds": spark_rounds,
    "spark": spark,
    "spark-large": spark_large,
}

# Every engine, and the smallest one, which is too slow for other tests.
LAWFUL: dict[str, MakeEngine] = {**ENGINES, "toy": toy}


def marks(engine: str, *, jobs: pytest.MarkDecorator | None = None) -> list[pytest.MarkDecorator]:
    """The marker of tests on Spark, which share a session; `jobs` marks those with many jobs."""
    found = [pytest.mark.spark] if engine.startswith("spark") else []
    return [*found, jobs] if engine == "spark-large" and jobs else found
