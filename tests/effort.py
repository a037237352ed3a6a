"""How hard tests look: the fast lane tries a quarter of the random cases of the long lane.

A test that is scaled runs in both lanes. Hypothesis tests are scaled by `conftest.py`; other tests
call `scaled` and are marked so, or draw their parameters with `first`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

FAST = "fast"
# `fast` and `ci` find the same failures on every run; `long` looks further, at random.
PROFILES: dict[str, dict[str, Any]] = {
    FAST: {"max_examples": 25, "derandomize": True, "deadline": None},
    "ci": {"max_examples": 100, "derandomize": True, "deadline": None},
    "long": {"max_examples": 2000, "deadline": None, "print_blob": True},
}


def scaled(number: int) -> int:
    """This many cases, or a quarter of them in the fast lane."""
    return -(-number // 4) if settings.get_current_profile_name() == FAST else number


def first(number: int, parameters: Iterable[Any]) -> list[Any]:
    """Parameters of which only the first so many run in the fast lane."""
    return [
        parameter if at < number else pytest.param(*_values(parameter), marks=pytest.mark.long)
        for at, parameter in enumerate(parameters)
    ]


def _values(parameter: Any) -> tuple[Any, ...]:
    return parameter if isinstance(parameter, tuple) else (parameter,)
