"""Threads for independent work: kernels release the lock, so that two cores do twice as much.

The engine and its sets of facts are `assisted`: what they call may cut long work into parts for the
`current` threads, those of the engine. Work that is a part itself finds one thread only.

What is a function of Python goes to a pool, which takes 50 µs; single kernels over ranges of keys
go to threads that wait awake for a moment (`together`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from corollary.engines.columnar.budget import Cancelled, cancelled_by, checkpoint
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
        self._pool: ThreadPoolExecutor | None = None
        _started.add(self)

    @property
    def crew(self) -> Crew | None:
        """Those who take parts of set operations; a child process has its own."""
        return crew(self.threads - 1)

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """The function of each item, in order.

        When a thread fails, or the caller is interrupted, the others end at their next
        `checkpoint`; none works on when this returns.
        """
        if self.threads == 1 or len(items) < 2:
            return [function(item) for item in items]
        if self._pool is None:  # the thread that asks for the work takes part in it
            self._pool = ThreadPoolExecutor(self.threads - 1, "corollary")
        results: dict[int, B] = {}
        numbers = iter(range(len(items)))
        stop = threading.Event()

        def work() -> None:
            try:
                with cancelled_by(stop):
                    for at in numbers:  # every thread takes the next one
                        checkpoint()
                        results[at] = function(items[at])
            except BaseException:
                stop.set()
                raise

        others: list[Future[None]] = []
        before, _local.workers = current(), ALONE
        try:
            others += [self._pool.submit(work) for _ in range(min(self.threads, len(items)) - 1)]
            work()
            wait(others)
        except BaseException as error:
            stop.set()
            _wait_for_end(others)
            if isinstance(error, Cancelled):
                _raise_cause(others)
            raise
        finally:
            _local.workers = before
        _raise_cause(others)
        return [results[at] for at in range(len(items))]


def _wait_for_end(others: Sequence[Future[None]]) -> None:
    """Wait for threads that were told to stop, whatever signals arrive meanwhile."""
    while True:
        try:
            wait(others)
        except BaseException:
            continue
        return


def _raise_cause(others: Sequence[Future[None]]) -> None:
    """Raise the error with which another thread ended; that it was stopped is none."""
    errors = [error for other in others if (error := other.exception()) is not None]
    for error in errors:
        if not isinstance(error, Cancelled):
            raise error
    if errors:  # the work around this one has ended
        raise errors[0]


_started: weakref.WeakSet[Workers] = weakref.WeakSet()


def _forget_pools() -> None:
    """A child process has none of its parent's threads: it starts its own."""
    for workers in _started:
        workers._pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)

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
