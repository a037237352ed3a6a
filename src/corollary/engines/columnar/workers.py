"""Threads for independent work: kernels release the lock, so that two cores do twice as much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Workers:
    """A pool of threads, or none if there is only one.

    >>> Workers(1).map(len, ["a", "bc"])
    [1, 2]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, "corollary") if threads > 1 else None

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """The function of each item, in order. Must not be called from inside a job."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))
