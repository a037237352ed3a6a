"""The position of an evaluation: its stratum, for the labels of an engine's jobs."""

from __future__ import annotations

from contextvars import ContextVar

_stratum: ContextVar[str] = ContextVar("stratum", default="")


def enter_stratum(number: int, count: int) -> None:
    """Record that a stratum is evaluated now; strata are numbered from 1.

    >>> enter_stratum(2, 3)
    >>> current_stratum()
    'stratum 2 of 3'
    >>> leave_strata()
    """
    _stratum.set(f"stratum {number} of {count}")


def leave_strata() -> None:
    """Record that no stratum is evaluated any more."""
    _stratum.set("")


def current_stratum() -> str:
    """Describe the stratum that is evaluated; empty outside of strata."""
    return _stratum.get()
