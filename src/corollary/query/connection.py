"""A DuckDB connection that signals can interrupt, and that is safe to fork.

Python runs signal handlers in the main thread, between two instructions, so a query on the main
thread would block them. A worker thread runs the query instead; the main thread waits, and calls
`interrupt` when an exception (Ctrl-C, a limit) is raised in it.

After `fork`, DuckDB's threads do not exist in the child, and the parent's connection would wait for
them forever. `is_usable` detects this, and `abandon` drops such a connection without closing it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

import duckdb

from corollary.query.spill import SpillFolder

R = TypeVar("R")

_INTERRUPT_INTERVAL = 0.05  # seconds between interrupts of a query that keeps running
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
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        weakref.finalize(self, _close, self.duckdb, self._jobs, folder, self._process)
        threading.Thread(
            target=_run_jobs, args=(self._jobs,), name="corollary-query", daemon=True
        ).start()

    def is_usable(self) -> bool:
        """Whether the connection belongs to this process."""
        return self._process == os.getpid()

    def abandon(self) -> None:
        """Never close the connection: its destructor would wait for threads that do not exist."""
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
            self._interrupt()
            raise
        if errors:
            raise errors[0]
        return results[0]

    def _interrupt(self) -> None:
        """Interrupt the query of the worker thread until it ends, ignoring further signals."""
        idle = threading.Event()
        queued = False
        while not idle.is_set():
            try:
                if not queued:
                    self._jobs.put(idle.set)  # runs when the worker has finished its query
                    queued = True
                self.duckdb.interrupt()
                idle.wait(_INTERRUPT_INTERVAL)
            except BaseException:
                continue


def _run_jobs(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    """The loop of the worker thread: run one query after another."""
    while (job := jobs.get()) is not None:
        job()
        del job  # release what the query refers to


def _close(
    connection: duckdb.DuckDBPyConnection,
    jobs: SimpleQueue[Callable[[], None] | None],
    folder: SpillFolder,
    process: int,
) -> None:
    if process == os.getpid():
        jobs.put(None)
        connection.close()
        folder.remove()
