"""The pool of worker processes: admits jobs, and stops those that take too long or too much."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_longlong
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from corollary.errors import LimitReached, OperationFailed
from corollary.service.settings import Settings

GRACE = 2.0  # seconds from a signal until the worker is killed
_WATCH = 0.25  # seconds between looks at the memory of busy workers
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NO_JOB = -1


Start = Callable[[c_longlong], tuple[ForkServerProcess, Connection]]


@dataclass
class PoolCounters:
    """What has happened in a pool, for the metrics."""

    jobs: int = 0
    stopped: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("time", "memory", "client"), 0)
    )
    started: int = 0  # processes
    running: int = 0
    waiting: int = 0


class Worker:
    """A worker process, started when it is first needed and again after it was killed."""

    def __init__(self, context: ForkServerContext, start: Start) -> None:
        self._start = start
        self._cancelled: c_longlong = context.Value("q", _NO_JOB, lock=False)
        self._process: ForkServerProcess | None = None
        self._connection: Connection | None = None
        self.killed_by: str | None = None

    def call(self, job: Any, counters: PoolCounters) -> Any:
        """Run a job; blocks. Raises EOFError if the process ends."""
        self.killed_by = None
        if self._process is None or not self._process.is_alive():
            self._process, self._connection = self._start(self._cancelled)
            counters.started += 1
        assert self._connection is not None, "a process has a connection"
        try:
            self._connection.send(job)
            return self._connection.recv()
        except (EOFError, OSError):
            # A killed process may seem alive for a moment; the next job needs a new one.
            self._process.join(GRACE)
            self._process = None
            self._connection.close()
            raise

    def cancel(self, number: int) -> None:
        """Interrupt a job if it is still running."""
        self._cancelled.value = number
        if self._process is not None and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGUSR1)

    def kill(self, reason: str) -> None:
        """End the process at once."""
        self.killed_by = reason
        if self._process is not None:
            self._process.kill()

    def memory(self) -> int:
        """The resident memory of the process in bytes; 0 where it cannot be known."""
        if self._process is None:
            return 0
        try:
            with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return 0

    def close(self) -> None:
        """End the process when its job is done, or after a grace time."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.join(GRACE)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()


class Pool:
    """Runs jobs on worker processes, each at most one at a time."""

    def __init__(self, settings: Settings, size: int) -> None:
        self._settings = settings
        self.counters = PoolCounters()
        self.newest = 0  # the newest version that jobs have to see
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["corollary.service.worker", "duckdb"])
        self._context = context
        self._workers = [Worker(context, self._start) for _ in range(size)]
        self._free = deque(self._workers)
        self._busy: set[Worker] = set()
        self._waiters: deque[asyncio.Future[Worker]] = deque()
        self._threads = ThreadPoolExecutor(size + 1, "corollary-pool")
        self._numbers = itertools.count()
        self._watcher: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self.log: Callable[..., None] = lambda event, **values: None

    async def run(
        self, name: str, /, *, seconds: float | None = None, keep: bool = False, **arguments: Any
    ) -> Any:
        """Run a job and return its value.

        With `keep`, the job goes on if the caller is cancelled: a commit is not interrupted.
        """
        from corollary.service.worker import Job  # loads the engines, which only workers need

        seconds = self._settings.limits.seconds if seconds is None else seconds
        started = time.monotonic()
        worker = await self._acquire(seconds)
        left = seconds - (time.monotonic() - started)
        job = Job(next(self._numbers), name, arguments, self.newest, left)
        self.counters.jobs += 1
        call = asyncio.get_running_loop().run_in_executor(
            self._threads, worker.call, job, self.counters
        )
        try:
            reply = await asyncio.wait_for(asyncio.shield(call), left + GRACE)
        except TimeoutError:
            worker.kill("time")
            self._settle(worker, call)
            self.counters.stopped["time"] += 1
            raise LimitReached(f"the time limit of {seconds:g} s") from None
        except asyncio.CancelledError:
            if not keep:
                worker.cancel(job.number)
                self.counters.stopped["client"] += 1
            self._settle(worker, call, GRACE if not keep else left + GRACE)
            raise
        except (EOFError, OSError):
            self._release(worker)
            raise self._ended(worker) from None
        self._release(worker)
        if reply.error is not None:
            if isinstance(reply.error, LimitReached):
                self.counters.stopped["time"] += 1
            if reply.cause:
                self.log("failure", job=name, cause=reply.cause)
            raise reply.error
        return reply.value

    def _ended(self, worker: Worker) -> OperationFailed:
        if worker.killed_by == "memory":
            self.counters.stopped["memory"] += 1
            return OperationFailed(
                "E406",
                "the request needs more memory than it may use",
                "narrow the request, or raise --limit-memory",
            )
        return OperationFailed("E614", "the process that ran the request ended unexpectedly")

    async def _acquire(self, seconds: float) -> Worker:
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())
        if self._free:
            worker = self._free.popleft()
        else:
            if len(self._waiters) >= self._settings.limits.waiting:
                raise OperationFailed(
                    "E608",
                    f"{len(self._waiters)} requests are waiting already",
                    "try again later",
                )
            future: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
            self._waiters.append(future)
            try:
                worker = await asyncio.wait_for(future, seconds)
            except TimeoutError:
                raise OperationFailed(
                    "E608", f"no worker was free for {seconds:g} s", "try again later"
                ) from None
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._release(future.result())
                raise
            finally:
                with contextlib.suppress(ValueError):
                    self._waiters.remove(future)
        self._busy.add(worker)
        self.counters.running, self.counters.waiting = len(self._busy), len(self._waiters)
        return worker

    def _release(self, worker: Worker) -> None:
        self._busy.discard(worker)
        while self._waiters:
            future = self._waiters.popleft()
            if not future.done():
                future.set_result(worker)
                break
        else:
            self._free.appendleft(worker)  # the one whose tables are loaded
        self.counters.running, self.counters.waiting = len(self._busy), len(self._waiters)

    def _settle(self, worker: Worker, call: asyncio.Future[Any], seconds: float = GRACE) -> None:
        """Release a worker when its job has ended, killing it if it does not."""

        async def settle() -> None:
            _, pending = await asyncio.wait([call], timeout=seconds)
            if pending:
                worker.kill("time")
                await asyncio.wait([call])
            call.exception()  # seen
            self._release(worker)

        task = asyncio.create_task(settle())
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _watch(self) -> None:
        """Kill workers that exceed the memory limit: the limit inside bounds engines only."""
        while True:
            await asyncio.sleep(_WATCH)
            for worker in tuple(self._busy):
                if worker.memory() > self._settings.limits.memory:
                    worker.kill("memory")

    def _start(self, cancelled: Any) -> tuple[ForkServerProcess, Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_main, args=(theirs, cancelled, self._settings), daemon=True
        )
        process.start()
        theirs.close()
        return process, ours

    def memory(self) -> int:
        """The resident memory of all workers in bytes."""
        return sum(worker.memory() for worker in self._workers)

    async def close(self) -> None:
        """Wait for running jobs for a grace time, then end all processes."""
        if self._watcher is not None:
            self._watcher.cancel()
        await asyncio.gather(*(asyncio.to_thread(worker.close) for worker in self._workers))
        self._threads.shutdown(wait=False)


def _main(connection: Connection, cancelled: c_longlong, settings: Settings) -> None:
    """The main function of a worker process."""
    from corollary.service.jobs import Session
    from corollary.service.worker import serve_jobs

    session = Session(settings.store, settings.storage_options, settings.limits, settings.threads)
    serve_jobs(connection, cancelled, session)
