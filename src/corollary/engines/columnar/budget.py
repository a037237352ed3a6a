"""Limits for memory and facts, and how threads that work for others are stopped.

Memory is asked for before anything large is allocated. Facts are counted where derived facts are
collected (`sink`). Work in pieces calls `checkpoint` before each piece, so that a thread ends soon
after another one that works for the same caller has failed or was interrupted.
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
    """Another thread has failed, so that the work of this one is no longer needed."""


class _Local(threading.local):
    stop: threading.Event | None = None


_local = _Local()


def checkpoint() -> None:
    """Raise `Cancelled` if the work that this thread takes part in has ended elsewhere."""
    stop = _local.stop
    if stop is not None and stop.is_set():
        raise Cancelled


@contextmanager
def cancelled_by(stop: threading.Event) -> Iterator[None]:
    """Let an event end the work inside at its next checkpoint."""
    before, _local.stop = _local.stop, stop
    try:
        yield
    finally:
        _local.stop = before


class Budget:
    """How many bytes the process may use, and how many facts there may be; None is no limit.

    >>> Budget(None).reserve(10**15, "a large join")
    """

    def __init__(self, limit: int | None, facts: int | None = None) -> None:
        self.limit = limit
        self.facts = facts

    def refuse_more(self, facts: int) -> None:
        """Fail if there are more facts than the limit allows."""
        if self.facts is not None and facts > self.facts:
            raise LimitReached(f"--limit-facts {self.facts}")

    def reserve(self, more: int, purpose: str) -> None:
        """Fail if `more` bytes would go beyond the limit, or if the work is no longer needed."""
        checkpoint()
        if self.limit is None:
            return
        used = resident()
        if used + more > self.limit:
            raise OperationFailed(
                "E406",
                f"{purpose} needs about {readable(more)} more, but {readable(used)} of the"
                f" {readable(self.limit)} that --limit-memory allows are in use",
                "raise the limit, or use --engine spark",
            )

    def available(self) -> int:
        """The bytes that the process may still use, by the limit and by what the system has.

        >>> Budget(0).available()
        0
        """
        free = available_memory()
        return free if self.limit is None else max(0, min(free, self.limit - resident()))


def available_memory() -> int:
    """The bytes that the system can give without swapping (where it does not tell: half of all)."""
    try:
        fields = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def resident() -> int:
    """The bytes of memory that the process uses now (where the system does not tell: at most)."""
    try:
        return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def readable(size: float) -> str:
    """Bytes for people.

    >>> readable(3 * 2**30)
    '3.0 GiB'
    """
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
