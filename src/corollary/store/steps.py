"""Named steps of a commit, reported to a watcher.

Only tests set `watch`: they kill the process at every step of a commit.
"""

from __future__ import annotations

from collections.abc import Callable

watch: Callable[[str], None] | None = None


def passed(step: str) -> None:
    """Report a completed step."""
    if watch is not None:
        watch(step)
