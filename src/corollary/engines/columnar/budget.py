"""Memory and fact limits, and cooperative cancellation of worker threads.

Large allocations reserve memory first. Facts are counted where derived facts are collected
(`collector`). Work in pieces calls `checkpoint` before each piece, so that a thread ends soon after
another thread of the same caller has failed or was interrupted.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corollary.errors import LimitReached, OperationFailed

_STATUS = Path("/proc/self/statm")
_MEMORY = Path("/proc/meminfo")


class Cancelled(BaseException):
    """Another thread has failed, so the work of this one is no longer needed."""


class _Local(threading.local):
    stop: threading.Event | None = None


_local = _Local()


def checkpoint() -> None:
    """Raise `Cancelled` if another thread has ended the work that this thread belongs to."""
    stop = _local.stop
    if stop is not None and stop.is_set():
        raise Cancelled


@contextmanager
def cancelled_by(stop: threading.Event) -> Iterator[None]:
    """Cancel the work inside at its next checkpoint once an event is set."""
    before, _local.stop = _local.stop, stop
    try:
        yield
    finally:
        _local.stop = before


class Budget:
    """Limits on the bytes that the process uses and on the number of facts; None means no limit.

    >>> Budget(None).reserve(10**15, "a large join")
    """

    def __init__(self, limit: int | None, facts: int | None = None) -> None:
        self.limit = limit
        self.facts = facts

    def check_fact_limit(self, facts: int) -> None:
        """Fail if there are more facts than the limit allows."""
        if self.facts is not None and facts > self.facts:
            raise LimitReached(f"--limit-facts {self.facts}")

    def reserve(self, more: int, purpose: str) -> None:
        """Fail if `more` bytes would exceed the limit, or if the work is no longer needed."""
        checkpoint()
        if self.limit is None:
            return
        used = resident_memory()
        if used + more > self.limit:
            raise OperationFailed(
                "E406",
                f"{purpose} needs about {format_bytes(more)} more, but {format_bytes(used)} of the"
                f" {format_bytes(self.limit)} that --limit-memory allows are in use",
                "raise the limit, or use --engine spark",
            )

    def available(self) -> int:
        """Return the bytes that the process may still use, given the limit and the free memory.

        >>> Budget(0).available()
        0
        """
        free = available_memory()
        return free if self.limit is None else max(0, min(free, self.limit - resident_memory()))


def available_memory() -> int:
    """Return the bytes available without swapping; half of all memory if the system cannot say."""
    try:
        fields = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def resident_memory() -> int:
    """Return the resident bytes of the process; their peak if the system reports nothing else."""
    try:
        return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def format_bytes(size: float) -> str:
    """Format a number of bytes for display.

    >>> format_bytes(3 * 2**30)
    '3.0 GiB'
    """
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
