"""A DuckDB connection that signals can interrupt, and that is safe to fork.

Python runs signal handlers in the main thread, between two instructions, so a query on the main
thread would block them. A worker thread runs the query instead; the main thread waits, and calls
`interrupt` when an exception (Ctrl-C, a limit) is raised in it. DuckDB checks for interrupts while
it executes, but not while it plans, which can take hours for hundreds of nested subqueries. A
connection that does not stop in time is left to its thread and not used again.

After `fork`, DuckDB's threads do not exist in the child, and the parent's connection would wait for
them forever. `is_usable` detects both, and `abandon` drops such a connection without closing it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

import duckdb

from corollary.query.spill import SpillFolder

R = TypeVar("R")

_INTERRUPT_INTERVAL = 0.05  # seconds between interrupts of a query that keeps running
INTERRUPT_GRACE = 2.0  # seconds until a connection that keeps running is given up
_MIN_MEMORY = 32 << 20  # bytes that DuckDB may always use


class Connection:
    """An in-memory database with a thread count, a memory limit and a private spill folder."""

    def __init__(self, threads: int, memory: int | None) -> None:
        folder = SpillFolder()
        config: dict[str, Any] = {"threads": threads, "temp_directory": str(folder.path / "files")}
        if memory is not None:
            config["memory_limit"] = f"{max(memory, _MIN_MEMORY)}B"
        self.duckdb = duckdb.connect(":memory:", config=config)
        self._process = os.getpid()
        self._status = _Status()
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        weakref.finalize(self, _close, self.duckdb, self._status, self._jobs, folder, self._process)
        threading.Thread(
            target=_run_jobs, args=(self._jobs,), name="corollary-query", daemon=True
        ).start()

    def is_usable(self) -> bool:
        """Whether the connection belongs to this process, and stopped when it was interrupted."""
        return self._process == os.getpid() and not self._status.is_stuck

    def abandon(self) -> None:
        """Drop the connection; its destructor must not wait for threads that do not exist."""
        if self._process == os.getpid():
            return  # the thread that it is left to releases it
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.duckdb))

    def execute(self, sql: str) -> None:
        """Run a statement and discard its result."""
        self.run(lambda: self.duckdb.execute(sql))

    def run(self, work: Callable[[], R]) -> R:
        """Call a function on the connection; an exception in the main thread interrupts it."""
        if threading.current_thread() is not threading.main_thread():
            return work()  # signals arrive in the main thread only
        results: list[R] = []
        errors: list[BaseException] = []
        finished = threading.Event()

        def target() -> None:
            try:
                results.append(work())
            except BaseException as error:
                errors.append(error)
            finally:
                finished.set()

        try:
            self._jobs.put(target)
            finished.wait()
        except BaseException:
            self._status.is_stuck = True  # until it is known to have ended
            self._interrupt()
            raise
        if errors:
            raise errors[0]
        return results[0]

    def _interrupt(self) -> None:
        """Interrupt the query of the worker thread until it ends, ignoring further signals.

        A query that does not end in time leaves the connection stuck.
        """
        status, end = self._status, time.monotonic() + INTERRUPT_GRACE

        def ended() -> None:
            status.is_stuck = False

        queued = False
        while status.is_stuck:
            try:
                if not queued:
                    self._jobs.put(ended)  # runs when the worker has finished its query
                    queued = True
                if time.monotonic() > end:
                    return
                self.duckdb.interrupt()
                time.sleep(_INTERRUPT_INTERVAL)
            except BaseException:
                continue


class _Status:
    """Whether a connection still runs a query that was interrupted."""

    is_stuck = False


def _run_jobs(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    """The loop of the worker thread: run one query after another."""
    while (job := jobs.get()) is not None:
        job()
        del job  # release what the query refers to


def _close(
    connection: duckdb.DuckDBPyConnection,
    status: _Status,
    jobs: SimpleQueue[Callable[[], None] | None],
    folder: SpillFolder,
    process: int,
) -> None:
    if process == os.getpid():
        jobs.put(None)
        if not status.is_stuck:  # closing would wait for the query; its thread releases it
            connection.close()
        folder.remove()
