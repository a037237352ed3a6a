"""A connection to DuckDB that signals can interrupt, and that survives a fork.

Python handles signals in the main thread, between two instructions; a query that runs there would
have to end first. So the main thread waits while another thread runs the query, and calls
`interrupt` when something (Ctrl-C, a limit) raises in it.

DuckDB's threads do not exist in a child process after `fork`, where the parent's connection would
wait for them forever: `is_usable` says so, and `abandon` drops such a connection without closing
it.
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

_AGAIN = 0.05  # seconds after which a query that goes on is interrupted again
_LEAST = 32 << 20  # bytes that DuckDB may always use


class Connection:
    """One database in memory, with threads, a limit for memory, and a private spill folder."""

    def __init__(self, threads: int, memory: int | None) -> None:
        folder = SpillFolder()
        config: dict[str, Any] = {"threads": threads, "temp_directory": str(folder.path / "files")}
        if memory is not None:
            config["memory_limit"] = f"{max(memory, _LEAST)}B"
        self.duckdb = duckdb.connect(":memory:", config=config)
        self._process = os.getpid()
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        weakref.finalize(self, _close, self.duckdb, self._jobs, folder, self._process)
        threading.Thread(
            target=_serve, args=(self._jobs,), name="corollary-query", daemon=True
        ).start()

    def is_usable(self) -> bool:
        """Whether the connection belongs to this process."""
        return self._process == os.getpid()

    def abandon(self) -> None:
        """Never close the connection: its destructor would wait for threads that do not exist."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.duckdb))

    def execute(self, sql: str) -> None:
        """Run a statement that has no result."""
        self.run(lambda: self.duckdb.execute(sql))

    def run(self, work: Callable[[], R]) -> R:
        """Call a function that uses the connection; an exception in this thread interrupts it."""
        if threading.current_thread() is not threading.main_thread():
            return work()  # no signal arrives here
        results: list[R] = []
        errors: list[BaseException] = []
        ended = threading.Event()

        def target() -> None:
            try:
                results.append(work())
            except BaseException as error:
                errors.append(error)
            finally:
                ended.set()

        try:
            self._jobs.put(target)
            ended.wait()
        except BaseException:
            self._interrupt()
            raise
        if errors:
            raise errors[0]
        return results[0]

    def _interrupt(self) -> None:
        """End the query of the other thread, if it has begun, whatever signals arrive meanwhile."""
        idle = threading.Event()
        asked = False
        while not idle.is_set():
            try:
                if not asked:
                    self._jobs.put(idle.set)  # runs when the other thread has ended its query
                    asked = True
                self.duckdb.interrupt()
                idle.wait(_AGAIN)
            except BaseException:
                continue


def _serve(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    """What the other thread does: one query after the other."""
    while (job := jobs.get()) is not None:
        job()
        del job  # and what its query refers to


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
