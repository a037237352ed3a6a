"""A limit for memory, asked before anything large is allocated."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from corollary.errors import OperationFailed

_STATUS = Path("/proc/self/statm")


class Budget:
    """How many bytes the process may use; None is no limit.

    >>> Budget(None).reserve(10**15, "a large join")
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit

    def reserve(self, more: int, purpose: str) -> None:
        """Fail if `more` bytes would go beyond the limit."""
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
