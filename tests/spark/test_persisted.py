"""Frames that operations persist are released when they end, also when they fail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corollary import spark as co
from corollary.engines.spark import tuning as _tuning  # noqa: F401 - registers the thresholds
from corollary.errors import InvalidInput
from corollary.testing import thresholds
from tests.effort import scaled
from tests.spark.data import embedded, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."


def persistent(spark: SparkSession) -> set[int]:
    """The ids of the frames that Spark holds; those of earlier tests may be released meanwhile."""
    context: Any = spark.sparkContext
    return {int(number) for number in context._jsc.getPersistentRDDs().keySet()}


@pytest.mark.scaled
def test_updates_leave_no_persistent_frames(spark: SparkSession, tmp_path: Path) -> None:
    """Also with facts that stay in Spark, in chunks of the store and in checkpoints."""
    before = persistent(spark)
    path, program = tmp_path / "store", tmp_path / "p.dl"
    edges = [(n, n + 1) for n in range(12)]
    program.write_text(RULES + "".join(f"edge({a}, {b}) ." for a, b in edges))
    updates = scaled(10)
    with thresholds(driver_facts_limit=4, driver_finish_facts_limit=0):
        co.build(path, program, rules="none", session=spark)
        for number in range(updates):
            more, less = tmp_path / "more.dl", tmp_path / "less.dl"
            more.write_text(f"edge({100 + number}, 0) .")
            less.write_text(f"edge({number}, {number + 1}) .")
            co.update(path, insert=[more], delete=[less], session=spark)
            assert persistent(spark) <= before
    edges = [*edges[updates:], *((100 + number, 0) for number in range(updates))]
    program.write_text(RULES + "".join(f"edge({a}, {b}) ." for a, b in edges))
    assert stored(path) == embedded([program], "none")


def test_operations_that_fail_leave_no_persistent_frames(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = persistent(spark)
    path = tmp_path / "bad.nt"
    path.write_text("<urn:a> <urn:p> <urn:b> .\noops\n")
    with pytest.raises(InvalidInput):
        co.build(tmp_path / "store", path, rules="none", session=spark)
    assert persistent(spark) <= before


def test_closing_a_store_releases_what_queries_keep(spark: SparkSession, tmp_path: Path) -> None:
    path, data = tmp_path / "store", tmp_path / "a.ttl"
    sub = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    members = "".join(f"<urn:{n}> a <urn:C> ." for n in range(9))
    data.write_text(f"<urn:C> {sub} <urn:D> . {members}")
    co.build(path, data, rules="rhodf", mode="hybrid", session=spark)
    before = persistent(spark)
    with thresholds(driver_facts_limit=2):
        asked = co.open_store(path, session=spark)
        assert len(list(asked.collect("[?x, a, <urn:D>]"))) == 9  # type: ignore[arg-type]
        assert persistent(spark) - before
        asked.close()
    assert persistent(spark) <= before
