"""Clocks and memory of this process."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss


class Time(NamedTuple):
    """Wall time, and CPU time of all threads."""

    seconds: float
    cpu_seconds: float


def timed(action: Callable[[], T]) -> tuple[T, Time]:
    """Run an action; return its result and its time."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, Time(time.perf_counter() - wall, time.process_time() - cpu)


@contextmanager
def limited(seconds: float, step: str) -> Iterator[None]:
    """Stop a step of a case after some time; compiled code is interrupted when it returns.

    >>> with limited(0.01, "a sleep"):
    ...     time.sleep(5)
    Traceback (most recent call last):
    TimeoutError: a sleep: stopped after 0.01 s
    """

    def stop(*_: object) -> None:
        raise TimeoutError(f"{step}: stopped after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def least(times: Iterable[Time]) -> Time:
    """The minimum of each clock."""
    return Time(*map(min, zip(*times, strict=True)))


def peak_bytes() -> int:
    """Peak memory of the process since its start, or since `forget_peak`."""
    # Avoid `ru_maxrss`: on Linux it starts at the peak of the parent.
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_peak() -> None:
    """Reset the peak to the memory in use, where the system supports it (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        return


def tree_cpu_seconds() -> float:
    """CPU time of this process and its descendants, read from `/proc` (Linux).

    Includes terminated processes whose parent has waited for them.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # the process has terminated
            continue
        process = int(path.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))  # own and waited-for, user and system
    tree = [os.getpid()]
    for process in tree:  # the loop appends to it
        tree += [child for child, parent in parents.items() if parent == process]
    return sum(ticks[process] for process in tree) / os.sysconf("SC_CLK_TCK")
