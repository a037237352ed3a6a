"""Threads for independent work: kernels release the lock, so that two cores do twice as much.

The engine and its sets of facts are `assisted`: what they call may cut long work into parts for the
`current` threads, those of the engine. Work that is a part itself finds one thread only.

What is a function of Python goes to a pool, which takes 50 µs; single kernels over ranges of keys
go to threads that wait awake for a moment (`together`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from corollary.engines.columnar.together import Crew, crew

A = TypeVar("A")
B = TypeVar("B")
P = ParamSpec("P")


class Workers:
    """A pool of threads, or none if there is only one.

    >>> Workers(2).map(len, ["a", "bc"])
    [1, 2]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        # The thread that asks for the work takes part in it.
        self._pool = ThreadPoolExecutor(threads - 1, "corollary") if threads > 1 else None

    @property
    def crew(self) -> Crew | None:
        """Those who take parts of set operations; a child process has its own."""
        return crew(self.threads - 1)

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """The function of each item, in order."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: dict[int, B] = {}
        numbers = iter(range(len(items)))

        def work() -> None:
            for at in numbers:  # every thread takes the next one
                results[at] = function(items[at])

        others = [self._pool.submit(work) for _ in range(min(self.threads, len(items)) - 1)]
        before, _local.workers = current(), ALONE
        try:
            work()
        finally:
            _local.workers = before
            wait(others)
        for other in others:
            other.result()
        return [results[at] for at in range(len(items))]


ALONE = Workers(1)
_local = threading.local()


def current() -> Workers:
    """The threads that work of this thread may be cut up for."""
    workers: Workers = getattr(_local, "workers", ALONE)
    return workers


class Assisted(Protocol):
    """Something with threads."""

    @property
    def workers(self) -> Workers: ...


S = TypeVar("S", bound=Assisted)


def assisted(method: Callable[Concatenate[S, P], B]) -> Callable[Concatenate[S, P], B]:
    """Let a method use the threads of its object."""

    @wraps(method)
    def run(self: S, /, *arguments: P.args, **named: P.kwargs) -> B:
        workers = self.workers
        if workers.threads == 1 or (before := current()) is workers:
            return method(self, *arguments, **named)
        _local.workers = workers
        try:
            return method(self, *arguments, **named)
        finally:
            _local.workers = before

    return run
