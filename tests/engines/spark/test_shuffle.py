"""Rows reach the partition whose number they carry, with every version of PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyspark.sql import functions as f

from corollary.engines.spark.shuffle import (
    hash_of,
    repartition_by_hash,
    repartition_by_id,
    values_of_partitions,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("count", [1, 2, 7, 1000, 70_000])
def test_each_partition_has_a_value(count: int) -> None:
    values = np.array(values_of_partitions(count), np.uint32)
    assert (hash_of(values) % count).tolist() == [*range(count)]


def test_rows_go_to_their_partition(spark: SparkSession) -> None:
    """Also where some partitions get no rows."""
    frame = spark.range(60).select((f.col("id") % 9 + 1).cast("int").alias("partition"))
    for repartition in (repartition_by_id, repartition_by_hash):
        sent = repartition(frame, 11, frame["partition"])
        places = sent.select("partition", f.spark_partition_id().alias("at")).collect()
        assert len(places) == 60
        assert all(row["partition"] == row["at"] for row in places)
        assert sent.rdd.getNumPartitions() == 11
