"""Send rows to the partition whose number is in a column.

PySpark 4.1 and later have `repartitionById`. Before, rows can only be sent by the hash of a value:
so a partition number is replaced by a value whose hash Spark sends there.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

_SEED = 42  # of Spark's hash partitioning


def repartition_by_id(frame: DataFrame, count: int, partition: Column) -> DataFrame:
    """Send each row to one of `count` partitions, by number."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, partition)
    return repartition_by_hash(frame, count, partition)


def repartition_by_hash(frame: DataFrame, count: int, partition: Column) -> DataFrame:
    """Send each row to one of `count` partitions, by the hash of a value for its number."""
    values = f.array(*map(f.lit, values_of_partitions(count)))
    return frame.repartition(count, f.element_at(values, partition.cast("int") + 1))


@lru_cache(maxsize=16)
def values_of_partitions(count: int) -> list[int]:
    """Return an integer for each of `count` partitions that Spark's hash sends there.

    >>> hash_of(np.array(values_of_partitions(5), np.uint32)) % 5
    array([0, 1, 2, 3, 4])
    """
    found = np.full(count, -1, np.int64)
    start, step = 0, 4 * count
    while (found < 0).any():
        values = np.arange(start, start + step, dtype=np.uint32)
        places = hash_of(values) % count
        missing = found[places] < 0
        found[places[missing]] = values[missing]
        start += step
    numbers: list[int] = found.tolist()
    return numbers


def hash_of(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Hash integers like `hash` of Spark SQL: Murmur3 of 32 bits.

    >>> hash_of(np.array([0, 1, 2], np.uint32)).tolist()
    [933211791, -559580957, 1765031574]
    """
    mixed = _rotated(values.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    found = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    found ^= np.uint32(4)  # the bytes of an integer
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        found ^= found >> np.uint32(shift)
        found *= np.uint32(factor)
    return found.view(np.int32).astype(np.int64)


def _rotated(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return values << np.uint32(bits) | values >> np.uint32(32 - bits)
