"""SUM, AVG and GROUP_CONCAT over the values of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corollary.query.functions import arithmetic, check_length, text_of_value
from corollary.query.values import Value, number


def _sum(values: Sequence[Value], separator: str) -> Value:
    numbers: list[Value] = [number(value) for value in values]
    if all(type(found) is int for found in numbers):
        return sum(found for found in numbers if isinstance(found, int))
    total: Value = 0
    for found in numbers:
        total = arithmetic("+", total, found)
    return total


def _average(values: Sequence[Value], separator: str) -> Value:
    return arithmetic("/", _sum(values, separator), len(values)) if values else 0


def _concatenated(values: Sequence[Value], separator: str) -> Value:
    texts = [text_of_value(value) for value in values]
    check_length(sum(map(len, texts)) + len(separator) * max(0, len(texts) - 1))
    return separator.join(texts)


AGGREGATES: dict[str, Callable[[Sequence[Value], str], Value]] = {
    "SUM": _sum,
    "AVG": _average,
    "GROUP_CONCAT": _concatenated,
}
