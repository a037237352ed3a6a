"""Every engine keeps the laws of `conformance`, for random programs and facts."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.session import build_session
from tests.engines.conformance import LAWS, Law, MakeEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cache
def session() -> SparkSession:
    """A session of its own beside that of the other tests, with settings for a handful of rows."""
    session = build_session("local[2]", application="corollary-tests").newSession()
    for key, value in {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",  # compiling a plan takes longer than running it
        "spark.sql.shuffle.partitions": "1",
    }.items():
        session.conf.set(key, value)
    return session


def spark(dictionary: Dictionary) -> Engine[Any]:
    return SparkEngine(dictionary, session())


def spark_without_driver(dictionary: Dictionary) -> Engine[Any]:
    """No table is small: all rows stay in Spark."""
    return SparkEngine(dictionary, session(), small=0)


ENGINES: dict[str, MakeEngine] = {
    "columnar": ColumnarEngine,
    "spark": spark,
    "spark-without-driver": spark_without_driver,
}
_SPARK = (pytest.mark.spark, pytest.mark.xdist_group("spark"))


@pytest.mark.parametrize("law", LAWS, ids=[law.check.__name__ for law in LAWS])
@pytest.mark.parametrize(
    "engine",
    [pytest.param(e, marks=_SPARK if e.startswith("spark") else ()) for e in ENGINES],
)
def test_keeps(engine: str, law: Law) -> None:
    number = {"spark": law.spark, "spark-without-driver": law.spark // 2}

    @settings(max_examples=number.get(engine, settings().max_examples))
    @given(law.examples)
    def check(example: Any) -> None:
        law.check(ENGINES[engine], example)

    check()
