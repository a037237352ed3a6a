"""Progress of long work on stderr, and limits on its resources."""

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
from typing import TYPE_CHECKING

from corollary.cli.bar import Bar, is_terminal
from corollary.cli.interrupts import REPEAT_SECONDS, Repeater, can_raise, leaving, silenced
from corollary.engines.columnar.budget import format_bytes, resident_memory
from corollary.errors import LimitReached, OperationFailed

if TYPE_CHECKING:
    from corollary.rdf.triples import Progress as Reading

LINE_SECONDS = 1.0  # seconds between two lines

_POLL_SECONDS = 0.05  # seconds between two checks of the process's memory
_BASE_MEMORY = (
    256 << 20
)  # bytes for Python and the libraries; smaller limits only apply to estimates


@dataclass
class Limits:
    """Resource limits of a run; None means no limit."""

    facts: int | None = None
    seconds: float | None = None
    rounds: int | None = None
    memory: int | None = None


class _Stopped(BaseException):
    """Raised by a signal handler at any point; handlers of `Exception` must not catch it."""

    def __init__(self, error: OperationFailed) -> None:
        super().__init__(error.message)
        self.error = error


class _Lines:
    """Prints at most one line a second on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.started = self.shown = time.perf_counter()

    def print(self, state: str) -> None:
        """Print a state and the elapsed time, at most once a second."""
        now = time.perf_counter()
        if now - self.shown >= LINE_SECONDS and not self.quiet:
            self.shown = now
            print(f"{state}, {now - self.started:.1f} s", file=sys.stderr, flush=True)


class Progress(_Lines):
    """Reports rounds, one line per second, and stops the run at a limit."""

    def __init__(self, limits: Limits, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self.limits = limits
        # Describes what an interrupted command leaves behind; called on an interrupt.
        self.outcome: Callable[[], str] = lambda: "nothing was written"
        self._rounds: dict[int, int] = {}
        self.state = "reading"

    @classmethod
    def of(cls, options: argparse.Namespace) -> Progress:
        """Create the progress of a command, with the limits from the command line."""
        limits = Limits(
            getattr(options, "limit_facts", None),
            options.limit_seconds,
            getattr(options, "limit_rounds", None),
            options.limit_memory,
        )
        return cls(limits, quiet=options.quiet)

    def __call__(self, stratum: int, strata: int, round_: int, facts: int) -> None:
        """Report that a round of a stratum is complete."""
        self._rounds[stratum] = round_  # an engine may report several rounds at once
        self.state = f"stratum {stratum} of {strata}, round {round_}, {facts:,} facts"
        self.print(self.state)
        if self.limits.facts is not None and facts > self.limits.facts:
            raise LimitReached(f"--limit-facts {self.limits.facts}")
        if self.limits.rounds is not None and sum(self._rounds.values()) > self.limits.rounds:
            raise LimitReached(f"--limit-rounds {self.limits.rounds}")

    def reading(self, at: Reading) -> None:
        """Report that a part of an RDF file has been read."""
        self.state = f"reading {at.file}, {at.statements:,} statements"
        self.print(self.state + (f", {at.done / at.total:.0%} of the file" if at.total else ""))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Stop the work inside at a limit, even in the middle of a round.

        In every case, the error says what the command leaves behind.
        """
        from corollary.core.jit import announcing  # loads numpy

        try:
            with (
                leaving(lambda: self.outcome()),
                self._interrupted_by_limits(),
                announcing(self._compiling),
            ):
                yield
        except _Stopped as stop:
            raise self._with_outcome(stop.error) from None
        except OperationFailed as error:
            if error.code not in ("E405", "E406"):
                raise
            raise self._with_outcome(error) from None

    def _compiling(self) -> None:
        from corollary.core.jit import unusual_cache

        if not self.quiet:
            place = unusual_cache()
            usual = "once on this machine ('corollary warm' does it ahead)"
            text = f"compiling loops for large inputs, {place or usual}"
            print(text, file=sys.stderr, flush=True)

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
        """Raise in the main thread when the time or memory limit is exceeded.

        Compiled code and libraries may turn the exception of the signal into one of their own.
        Any exception that leaves the block after the signal is therefore replaced by the stop.
        """
        seconds, memory = self.limits.seconds, self.limits.memory
        main = threading.main_thread()
        possible = hasattr(signal, "setitimer") and threading.current_thread() is main
        if (seconds is None and memory is None) or not possible:
            yield
            return
        is_over = False  # set by one instruction, which no signal interrupts
        ended = threading.Event()
        repeater = Repeater(signal.SIGALRM)
        grown: list[int] = []  # memory in use when it exceeded the limit
        stops: list[_Stopped] = []  # the exceptions raised so far

        def stop(number: int, frame: FrameType | None) -> None:
            if is_over or not can_raise(frame):
                return
            if grown and memory is not None:
                stops.append(_Stopped(_too_large(grown[0], memory)))
            else:
                stops.append(_Stopped(LimitReached(f"--limit-seconds {seconds:g}")))
            raise stops[-1]

        def watch(most: int) -> None:
            while not ended.wait(REPEAT_SECONDS if grown else _POLL_SECONDS):
                if grown or (used := resident_memory()) > most:
                    grown[:] = grown or [used]
                    repeater.send()

        before = signal.signal(signal.SIGALRM, stop)
        if memory is not None:
            most = max(memory, _BASE_MEMORY)
            threading.Thread(target=watch, args=(most,), daemon=True, name="memory").start()
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
        try:
            with silenced(_Stopped):
                yield
        except BaseException as error:
            if stops and not isinstance(error, _Stopped):
                raise stops[-1] from error
            raise
        finally:
            is_over = True
            ended.set()
            signal.setitimer(signal.ITIMER_REAL, 0)
            repeater.close()
            signal.signal(signal.SIGALRM, before)


def _too_large(used: int, limit: int) -> OperationFailed:
    return OperationFailed(
        "E406",
        f"the process uses {format_bytes(used)}, but --limit-memory allows {format_bytes(limit)}",
        "raise the limit, or use --engine spark",
    )


class Steps(_Lines):
    """Reports the steps of long work: a bar on a terminal once entered, else one line per second.

    `stages` are the known stages of the work.
    """

    def __init__(self, *, quiet: bool = False, stages: Sequence[str] = ()) -> None:
        super().__init__(quiet=quiet)
        self.stages = stages
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
        """Report a state of the work; `share` is the completed fraction, if known."""
        if self._bar is not None:
            self._bar.tell(state, share)
        else:
            self.print(state)


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def move(self, phase: str, seconds: float) -> None:
        """Reassign seconds of the last phase to another phase.

        >>> clock = Clock()
        >>> clock.seconds = {"read": 3.0}
        >>> clock.move("materialize", 1.0)
        >>> clock.seconds
        {'read': 2.0, 'materialize': 1.0}
        """
        self.seconds[list(self.seconds)[-1]] -= seconds
        self.seconds[phase] = seconds

    def lap(self, phase: str) -> None:
        """End a phase."""
        now = time.perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now
