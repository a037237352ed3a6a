"""The steps of a commit, by name: whoever watches is told after each one.

A test that ends the process at every step of a commit sets `watch`; nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable

watch: Callable[[str], None] | None = None


def passed(step: str) -> None:
    """A step is done."""
    if watch is not None:
        watch(step)
