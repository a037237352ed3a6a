"""How many jobs builds and small updates take, which is most of what small ones cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corollary import spark as co
from corollary.cli.main import main
from corollary.testing import thresholds
from tests.spark.data import embedded, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
STUDENT = "<http://swat.cse.lehigh.edu/onto/univ-bench.owl#GraduateStudent>"


def jobs(spark: SparkSession) -> int:
    """The jobs so far."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().statusStore().jobsList(None).size())


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    """LUBM's ontology, and some of its departments."""
    assert main(["generate", "lubm", "--out", str(tmp_path / "lubm"), "--quiet"]) == 0
    some = tmp_path / "some.nt"
    lines = (tmp_path / "lubm" / "University0.nt").read_text().splitlines()[:3000]
    some.write_text("\n".join(lines) + "\n")
    return [tmp_path / "lubm" / "univ-bench.nt", some]


@pytest.mark.parametrize(("small", "most"), [(250_000, 12), (6_000, 20)])
def test_builds_and_updates(
    spark: SparkSession, tmp_path: Path, data: list[Path], small: int, most: int
) -> None:
    """With all facts on the driver, and with most of them in tasks."""
    store, more = tmp_path / "store", tmp_path / "more.nt"
    more.write_text(f"<urn:x> {TYPE} {STUDENT} .\n")
    with thresholds(driver_facts_limit=small):
        before = jobs(spark)
        co.build(store, data, rules="owl-rl", session=spark)
        built = jobs(spark)
        assert built - before <= most
        co.update(store, insert=[more], session=spark)
        inserted = jobs(spark)
        assert inserted - built <= 8
        assert stored(store) == embedded([*data, more], "owl-rl")
        co.update(store, delete=[more], session=spark)
        assert jobs(spark) - inserted <= 8
    assert stored(store) == embedded(data, "owl-rl")
