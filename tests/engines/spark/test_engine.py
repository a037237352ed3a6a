"""What is particular to the Spark engine; what it shares with others is in `test_conformance`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark import engine as spark_engine
from corollary.engines.spark.engine import SparkEngine
from corollary.lang.program import Program
from tests.engines.conformance import decode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHAIN = Program.parse(
    "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    + "".join(f"edge({n}, {n + 1}) . path({n}, {n + 1}) ." for n in range(6))
)


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **settings: Any) -> None:
        raise AssertionError("a session was built")

    monkeypatch.setattr(spark_engine, "build_session", fail)


@pytest.mark.usefixtures("no_session")
def test_starts_no_session_before_it_needs_one() -> None:
    dictionary = Dictionary()
    engine = SparkEngine(dictionary, ColumnarEngine)
    rules = [compile_rule(rule, dictionary) for rule in CHAIN.rules]
    facts = engine.facts(encode(CHAIN.facts, dictionary))
    assert len(facts.union(facts)) == 12
    assert len(engine.derive(rules, facts).facts) == 5, "few facts are for the driver"
    with pytest.raises(AssertionError, match="a session was built"):
        SparkEngine(dictionary, ColumnarEngine, small=3).facts(encode(CHAIN.facts, dictionary))


@pytest.mark.usefixtures("no_session")
def test_takes_the_session_of_the_user(spark: SparkSession) -> None:
    dictionary = Dictionary()
    engine = SparkEngine(dictionary, ColumnarEngine, spark, small=3)
    facts = engine.facts(encode(CHAIN.facts, dictionary))
    derived = engine.derive([compile_rule(rule, dictionary) for rule in CHAIN.rules], facts)
    assert len(decode(derived.facts, dictionary)) == 5


@pytest.mark.parametrize("small", [0, 2, 100])
def test_plans_do_not_grow_from_round_to_round(spark: SparkSession, small: int) -> None:
    dictionary = Dictionary()
    engine = SparkEngine(dictionary, ColumnarEngine, spark, small=small, finish=0)
    rules = [compile_rule(rule, dictionary) for rule in CHAIN.rules]
    facts = engine.facts(encode(CHAIN.facts, dictionary))
    closed = engine.close(rules, facts, facts)
    everything = facts.union(closed.facts)
    assert len(decode(everything, dictionary)) == 6 + 21
    assert everything.base is not None or small == 100
    for frame in [] if everything.base is None else [everything.base.chunks()]:
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
        assert len(plan.splitlines()) <= 8, plan
