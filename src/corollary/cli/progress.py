"""Progress of long work on stderr, and the limits that stop it."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from corollary.cli.bar import Bar, is_terminal
from corollary.cli.interrupts import AGAIN, Repeater, leaving, silenced
from corollary.engines.columnar.budget import readable, resident
from corollary.errors import LimitReached, OperationFailed
from corollary.rdf.triples import Progress as Reading

_EVERY = 1.0  # seconds between two lines

_POLL = 0.05  # seconds between two looks at the memory of the process
_OWN = 256 << 20  # bytes that Python and the libraries may need: a smaller limit is for estimates


@dataclass
class Limits:
    """What a run may use; None is no limit."""

    facts: int | None = None
    seconds: float | None = None
    rounds: int | None = None
    memory: int | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> Limits:
        """The limits that the command line sets."""
        return cls(
            getattr(options, "limit_facts", None),
            options.limit_seconds,
            getattr(options, "limit_rounds", None),
            options.limit_memory,
        )


class _Stopped(BaseException):
    """Raised by a signal handler, anywhere: code that handles `Exception` must not see it."""

    def __init__(self, error: OperationFailed) -> None:
        super().__init__(error.message)
        self.error = error


class Progress:
    """Reports rounds, a line a second, and stops the run at a limit."""

    def __init__(self, limits: Limits, *, quiet: bool = False) -> None:
        self.limits = limits
        self.quiet = quiet
        # What an interrupted command leaves behind, asked for when it is interrupted.
        self.outcome: Callable[[], str] = lambda: "nothing was written"
        self._rounds: dict[int, int] = {}
        self.started = self.shown = time.perf_counter()
        self.state = "reading"

    def __call__(self, stratum: int, strata: int, round_: int, facts: int) -> None:
        """One round of a stratum is done."""
        self._rounds[stratum] = round_  # an engine may report several rounds at once
        now = time.perf_counter()
        self.state = f"stratum {stratum} of {strata}, round {round_}, {facts:,} facts"
        if now - self.shown >= _EVERY and not self.quiet:
            self.shown = now
            print(f"{self.state}, {now - self.started:.1f} s", file=sys.stderr, flush=True)
        if self.limits.facts is not None and facts > self.limits.facts:
            raise LimitReached(f"--limit-facts {self.limits.facts}")
        if self.limits.rounds is not None and sum(self._rounds.values()) > self.limits.rounds:
            raise LimitReached(f"--limit-rounds {self.limits.rounds}")

    def reading(self, at: Reading) -> None:
        """A part of an RDF file is read."""
        now = time.perf_counter()
        self.state = f"reading {at.file}, {at.statements:,} statements"
        if now - self.shown >= _EVERY and not self.quiet:
            self.shown = now
            share = f", {at.done / at.total:.0%} of the file" if at.total else ""
            print(f"{self.state}{share}, {now - self.started:.1f} s", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Stop the work inside at a limit, even in the middle of a round.

        However it is stopped, the error says what the command leaves behind.
        """
        try:
            with leaving(lambda: self.outcome()), self._interrupted_by_limits():
                yield
        except _Stopped as stop:
            raise self._with_outcome(stop.error) from None
        except OperationFailed as error:
            if error.code not in ("E405", "E406"):
                raise
            raise self._with_outcome(error) from None

    def _with_outcome(self, error: OperationFailed) -> OperationFailed:
        outcome = self.outcome()
        if isinstance(error, LimitReached):
            spent = time.perf_counter() - self.started
            return LimitReached(
                error.limit,
                f"the result is incomplete, and {outcome} ({self.state}, after {spent:.1f} s)",
            )
        return OperationFailed(error.code, f"{error.message}; {outcome}", error.hint)

    @contextlib.contextmanager
    def _interrupted_by_limits(self) -> Iterator[None]:
        """Raise in the main thread when time is over, or the process has grown too large.

        Compiled code and libraries may turn the exception of the signal into one of their own.
        Whatever leaves the block after the signal is therefore the stop itself.
        """
        seconds, memory = self.limits.seconds, self.limits.memory
        main = threading.main_thread()
        possible = hasattr(signal, "setitimer") and threading.current_thread() is main
        if (seconds is None and memory is None) or not possible:
            yield
            return
        ended = threading.Event()
        repeater = Repeater(signal.SIGALRM)
        grown: list[int] = []  # what the process used when that was too much
        stops: list[_Stopped] = []  # the exceptions raised so far

        def stop(number: int, frame: FrameType | None) -> None:
            if ended.is_set():
                return
            if grown and memory is not None:
                stops.append(_Stopped(_too_large(grown[0], memory)))
            else:
                stops.append(_Stopped(LimitReached(f"--limit-seconds {seconds:g}")))
            raise stops[-1]

        def watch(most: int) -> None:
            while not ended.wait(AGAIN if grown else _POLL):
                if grown or (used := resident()) > most:
                    grown[:] = grown or [used]
                    repeater.send()

        before = signal.signal(signal.SIGALRM, stop)
        if memory is not None:
            most = max(memory, _OWN)
            threading.Thread(target=watch, args=(most,), daemon=True, name="memory").start()
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        try:
            with silenced(_Stopped):
                yield
        except BaseException as error:
            if stops and not isinstance(error, _Stopped):
                raise stops[-1] from error
            raise
        finally:
            ended.set()
            signal.setitimer(signal.ITIMER_REAL, 0)
            repeater.close()
            signal.signal(signal.SIGALRM, before)


def _too_large(used: int, limit: int) -> OperationFailed:
    return OperationFailed(
        "E406",
        f"the process uses {readable(used)}, but --limit-memory allows {readable(limit)}",
        "raise the limit, or use --engine spark",
    )


class Steps:
    """Told of every step of long work: a bar on a terminal once entered, else a line a second.

    `stages` are those that the work is known to have.
    """

    def __init__(self, *, quiet: bool = False, stages: Sequence[str] = ()) -> None:
        self.quiet = quiet
        self.stages = stages
        self.started = self.shown = time.perf_counter()
        self._bar: Bar | None = None

    def __enter__(self) -> Steps:
        if not self.quiet and is_terminal(sys.stderr):
            self._bar = Bar(self.stages).__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)
            self._bar = None

    def __call__(self, state: str, share: float | None = None) -> None:
        """The work has come this far; `share` of it is done, if that is known."""
        if self._bar is not None:
            self._bar.tell(state, share)
            return
        now = time.perf_counter()
        if now - self.shown >= _EVERY and not self.quiet:
            self.shown = now
            print(f"{state}, {now - self.started:.1f} s", file=sys.stderr, flush=True)


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """End a phase."""
        now = time.perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now
