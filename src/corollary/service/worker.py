"""Worker processes: each opens the store, and runs one job after another.

A process, not a thread, runs a query: it sees one version from beginning to end, has a memory limit
of its own, and can be stopped for certain. The main thread of the process runs the job, so that a
signal interrupts it: `SIGALRM` at the time limit, `SIGUSR1` when its client has gone away. If the
job does not end soon after that, the parent kills the process.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Mapping
from ctypes import c_longlong
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from corollary.errors import CorollaryError, CorollaryWarning, LimitReached, OperationFailed
from corollary.service.jobs import Session
from corollary.service.writing import ALL_JOBS


@dataclass(frozen=True)
class Job:
    """A function of `ALL_JOBS` with its arguments."""

    number: int  # unique in the service
    name: str
    arguments: Mapping[str, Any]
    newest: int  # the newest version that the service knows
    seconds: float


@dataclass(frozen=True)
class Reply:
    """The outcome of a job."""

    value: Any = None
    error: CorollaryError | None = None
    cause: str = ""  # an unexpected exception, for the log


class _Stopped(BaseException):
    """Raised by a signal; derived from BaseException so that nothing takes it for a failure."""


class _Signals:
    """Raises `_Stopped` in the running job when a signal arrives."""

    def __init__(self, cancelled: c_longlong) -> None:
        self._cancelled = cancelled
        self._running: int | None = None
        self.stopped_by: str | None = None
        signal.signal(signal.SIGALRM, self._alarm)
        signal.signal(signal.SIGUSR1, self._cancel)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent

    def start(self, job: Job) -> None:
        """Let signals stop the job from now on."""
        self.stopped_by, self._running = None, job.number
        signal.setitimer(signal.ITIMER_REAL, max(job.seconds, 0.001))
        self._cancel(signal.SIGUSR1, None)  # it may have been cancelled before

    def end(self) -> None:
        """Let signals stop nothing."""
        self._running = None
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _alarm(self, number: int, frame: FrameType | None) -> None:
        self._stop("time")

    def _cancel(self, number: int, frame: FrameType | None) -> None:
        if self._cancelled.value == self._running:
            self._stop("client")

    def _stop(self, reason: str) -> None:
        if self._running is not None and self.stopped_by is None:
            self.stopped_by = reason
            raise _Stopped


def serve_jobs(connection: Connection, cancelled: c_longlong, session: Session) -> None:
    """Run jobs until the parent closes the connection; the main function of a worker process."""
    signals = _Signals(cancelled)
    warnings.simplefilter("ignore", CorollaryWarning)
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        reply = _run(session, job, signals)
        try:
            connection.send(reply)
        except BrokenPipeError:
            return


def _run(session: Session, job: Job, signals: _Signals) -> Reply:
    try:
        try:
            signals.start(job)
            session.newest, session.base = job.newest, None
            return Reply(ALL_JOBS[job.name](session, **job.arguments))
        finally:
            signals.end()
    except CorollaryError as error:
        if signals.stopped_by is None:
            return Reply(error=error)
    except MemoryError:
        session.close()
        return Reply(error=OperationFailed("E406", "the request needs more memory than it may use"))
    except BaseException as error:
        if signals.stopped_by is None:
            session.close()
            return Reply(
                error=OperationFailed("E614", "the request failed unexpectedly"), cause=repr(error)
            )
    outcome = session.outcome()
    session.close()  # an interrupted load may be incomplete
    return Reply(error=LimitReached(f"the time limit of {job.seconds:g} s", outcome))
