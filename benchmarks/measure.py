"""Clocks and memory of this process."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss


class Time(NamedTuple):
    """Wall time, and the processor time of all threads."""

    seconds: float
    cpu_seconds: float


def timed(action: Callable[[], T]) -> tuple[T, Time]:
    """What the action gives, and how long it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, Time(time.perf_counter() - wall, time.process_time() - cpu)


def least(times: Iterable[Time]) -> Time:
    """The least of each clock."""
    return Time(*map(min, zip(*times, strict=True)))


def peak_bytes() -> int:
    """The most memory that the process has held so far, or since `forget_peak`."""
    # Not `ru_maxrss` where it can be helped: on Linux it begins with the peak of the parent.
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_peak() -> None:
    """Let the peak begin at what is held now, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        return
