"""Values that tasks compute equal those of the driver and of the embedded engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corollary import spark as co
from corollary.lang.program import Program
from corollary.store import Store
from corollary.testing import recorded_crossings, thresholds
from tests.spark.data import embedded, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

IN_TASKS = {"driver_facts_limit": 0, "driver_finish_facts_limit": 0}

RULES = """
@prefix : <urn:> .
[?x, :twice, ?m] :- [?x, :size, ?n], BIND(?n * 2 AS ?m) .
[?x, :next, ?m], [?x, :more, ?m] :- [?x, :next, ?k], FILTER(?k < 4), BIND(?k + 2 AS ?m) .
[?x, :next, 0] :- [?x, :size, ?n] .
[?x, :name, ?s] :- [?x, :size, ?n], [?y, :size, ?n], BIND(CONCAT("size ", STR(?n)) AS ?s),
    FILTER(STRLEN(?s) > 6 && ?x != ?y) .
[?g, :of, ?x], [?g, :top, ?m] :- [?x, :twice, ?m], BIND(SKOLEM("g", ?m) AS ?g) .
[?x, :half, ?h] :- [?x, :size, ?n], BIND(?n / 2 AS ?h) .
"""


def _data(path: Path, numbers: range) -> Path:
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    lines = [f'<urn:x{n}> <urn:size> "{n % 5}"^^{integer} .' for n in numbers]
    path.write_text("\n".join([*lines, '<urn:text> <urn:size> "text" .', ""]))
    return path


@pytest.mark.long
@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_builds_and_updates(spark: SparkSession, tmp_path: Path, limit: int) -> None:
    rules = tmp_path / "rules.dl"
    rules.write_text(RULES)
    first, second = _data(tmp_path / "a.nt", range(12)), _data(tmp_path / "b.nt", range(10, 40))
    store, everything = tmp_path / "store", tmp_path / "all.nt"
    with thresholds(**IN_TASKS, driver_values_limit=limit), recorded_crossings() as crossings:
        co.build(store, first, rules=rules, session=spark, partitions=3)
        assert stored(store) == embedded([first], rules)
        co.update(store, insert=[second], session=spark)
        everything.write_text(first.read_text() + second.read_text())
        assert stored(store) == embedded([everything], rules)
    assert crossings["driver_values_limit"] == {limit == 0}
    texts = Store.open(store).snapshot().terms()["term"].to_pylist()
    assert len(texts) == len({*texts})


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_frames(spark: SparkSession, limit: int) -> None:
    frame = spark.createDataFrame([(n, n % 5) for n in range(30)], "x long, y long")
    program = Program.parse(
        "@relation sum(x: integer, s: integer) ."
        "sum(?x, ?s) :- pair(?x, ?y), BIND(?x * 100 + ?y AS ?s) ."
    )
    with thresholds(**IN_TASKS, driver_values_limit=limit), recorded_crossings() as crossings:
        found = co.materialize({"pair": frame}, program)["sum"].toArrow().to_pylist()
    assert {(row["x"], row["s"]) for row in found} == {(n, 100 * n + n % 5) for n in range(30)}
    assert crossings["driver_values_limit"] == {limit == 0}
