"""A thread pool for data-parallel work: kernels release the GIL, so two cores do twice the work.

Methods of the engine and its sets of facts are decorated `with_workers`: the functions that they
call may split long work into parts for the `current_workers`, the threads of the engine. There is
no nested parallelism: a part sees a single thread. Handing work to another thread takes some 50 µs,
so only work of a millisecond or more is split.

The threads belong to the process. The caller processes items like any thread, and at the end waits
only for threads that have started: no thread has to join in.

Invariant: no thread works for a call that has returned, whenever a signal interrupted it. A thread
adds itself to the set of running threads before it takes an item, and removes itself at the end;
the caller waits until the set is empty, and can do so again after an interrupt.
`concurrent.futures` cannot: an interrupt while it acquires the locks of several futures leaves some
of them locked.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import wraps
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from corollary.engines.columnar.budget import Cancelled, cancelled_by, checkpoint

A = TypeVar("A")
B = TypeVar("B")
P = ParamSpec("P")

_POLL_SECONDS = 0.05  # only an interrupted caller can miss the message of a thread


class _Call(Generic[A, B]):
    """A function and a queue of items that several threads process."""

    def __init__(self, function: Callable[[A], B], items: Sequence[A]) -> None:
        self.results: dict[int, B] = {}
        self.errors: list[BaseException] = []
        self.stop = threading.Event()
        self._function = function
        self._items = items
        self._places: Iterator[int] = iter(range(len(items)))
        self._running: set[int] = set()
        self._leaving: SimpleQueue[None] = SimpleQueue()

    def work(self) -> None:
        """Process items until none are left."""
        with cancelled_by(self.stop):
            for at in self._places:
                checkpoint()
                self.results[at] = self._function(self._items[at])

    def help(self) -> None:
        """Run `work` in another thread and record its error."""
        self._running.add(threading.get_ident())
        try:
            self.work()
        except BaseException as error:
            self.stop.set()
            self.errors.append(error)
        finally:
            self._running.discard(threading.get_ident())
            self._leaving.put(None)

    def wait(self) -> None:
        """Wait until no other thread is running."""
        while self._running:
            with suppress(Empty):
                self._leaving.get(timeout=_POLL_SECONDS)

    def end(self) -> None:
        """Stop the other threads and wait for them, even if signals arrive meanwhile."""
        while True:
            try:
                self.stop.set()
                self.wait()
            except BaseException:
                continue
            return

    def raise_error(self) -> None:
        """Raise the error of another thread; prefer errors to cancellations."""
        for error in self.errors:
            if not isinstance(error, Cancelled):
                raise error
        if self.errors:  # the enclosing work was cancelled
            raise self.errors[0]


class Workers:
    """A number of threads, including the calling one.

    >>> Workers(2).map(len, ["a", "bc"])
    [1, 2]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """Apply the function to each item in parallel; results are in the order of items.

        If a thread fails or the caller is interrupted, the other threads end at their next
        `checkpoint`; none of them is running when this returns.
        """
        if self.threads == 1 or len(items) < 2:
            return [function(item) for item in items]
        call = _Call(function, items)
        before, _local.workers = current_workers(), SINGLE_THREAD
        try:
            _pool.call(call.help, min(self.threads, len(items)) - 1)
            call.work()
            call.wait()
        except BaseException as error:
            call.end()
            if isinstance(error, Cancelled):
                call.raise_error()
            raise
        finally:
            _local.workers = before
        call.raise_error()
        return [call.results[at] for at in range(len(items))]


class _Pool:
    """The threads of this process other than the callers."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def call(self, help_: Callable[[], None], threads: int) -> None:
        """Enlist a number of threads, each as soon as it is idle."""
        while len(self._threads) < threads:
            thread = threading.Thread(target=self._serve, name="corollary", daemon=True)
            self._threads.append(thread)
            thread.start()
        for _ in range(threads):
            self._calls.put(help_)

    def _serve(self) -> None:
        while True:
            self._calls.get()()


_pool = _Pool()


def _forget_threads() -> None:
    """Reset the pool in a child process, which has none of its parent's threads."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)

SINGLE_THREAD = Workers(1)
_local = threading.local()


def current_workers() -> Workers:
    """Return the workers between which this thread may split its work."""
    workers: Workers = getattr(_local, "workers", SINGLE_THREAD)
    return workers


class HasWorkers(Protocol):
    """An object with workers."""

    @property
    def workers(self) -> Workers: ...


S = TypeVar("S", bound=HasWorkers)


def with_workers(method: Callable[Concatenate[S, P], B]) -> Callable[Concatenate[S, P], B]:
    """Decorate a method so that it runs with the workers of its object."""

    @wraps(method)
    def run(self: S, /, *arguments: P.args, **named: P.kwargs) -> B:
        workers = self.workers
        if workers.threads == 1 or (before := current_workers()) is workers:
            return method(self, *arguments, **named)
        _local.workers = workers
        try:
            return method(self, *arguments, **named)
        finally:
            _local.workers = before

    return run
