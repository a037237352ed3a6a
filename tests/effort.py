"""How hard tests look: the long lane tries twice as many random cases as the fast one.

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
    "ci": {"max_examples": 50, "derandomize": True, "deadline": None},
    "long": {"max_examples": 2000, "deadline": None, "print_blob": True},
}


_SHARES = {FAST: 4, "ci": 2}  # of the cases that the profile `long` tries


def scaled(number: int) -> int:
    """This many cases; half of them in the long lane, and a quarter in the fast one."""
    return -(-number // _SHARES.get(str(settings.get_current_profile_name()), 1))


def first(number: int, parameters: Iterable[Any]) -> list[Any]:
    """Parameters of which only the first so many run in the fast lane."""
    return [
        parameter if at < number else pytest.param(*_values(parameter), marks=pytest.mark.long)
        for at, parameter in enumerate(parameters)
    ]


def _values(parameter: Any) -> tuple[Any, ...]:
    return parameter if isinstance(parameter, tuple) else (parameter,)
