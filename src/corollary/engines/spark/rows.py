"""Rows of facts in DataFrames: `relation`, `arg0`, `arg1`, …; missing arguments are null."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def arguments(width: int) -> list[str]:
    """Return the names of the argument columns."""
    return [f"arg{place}" for place in range(width)]


def fact_columns(columns: Iterable[str]) -> list[str]:
    """Select the columns of the relation and its arguments, in order.

    >>> fact_columns(["arg10", "explicit", "relation", "arg2"])
    ['relation', 'arg2', 'arg10']
    """
    found = (column for column in columns if column.startswith("arg"))
    return ["relation", *sorted(found, key=lambda column: int(column.removeprefix("arg")))]


def schema(width: int) -> str:
    """Return the schema of facts in Spark."""
    return ", ".join(["relation string", *(f"{name} long" for name in arguments(width))])


def arrow_schema(width: int) -> pa.Schema:
    """Return the schema of facts in Arrow."""
    return pa.schema([("relation", pa.string()), *((n, pa.int64()) for n in arguments(width))])


def batch(relation: str, columns: Sequence[Any], count: int, width: int) -> pa.RecordBatch:
    """Create the rows of `count` facts of a relation."""
    names = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(count, np.int32)), pa.array([relation])
    ).cast(pa.string())
    filled = [pa.array(column, pa.int64()) for column in columns]
    missing = [pa.nulls(count, pa.int64())] * (width - len(columns))
    return pa.record_batch([names, *filled, *missing], schema=arrow_schema(width))
