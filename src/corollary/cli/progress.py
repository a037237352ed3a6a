"""Progress of long work on stderr, and the limits that stop it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from corollary.cli.bar import Bar, is_terminal
from corollary.errors import OperationFailed
from corollary.rdf.triples import Progress as Reading

_EVERY = 1.0  # seconds between two lines

# Seconds after which an interruption is repeated that did not arrive: Python drops what a signal
# raises while it runs the callback of a weak reference, or frees an object.
_AGAIN = 0.5


@dataclass
class Limits:
    """What a run may use; None is no limit."""

    facts: int | None = None
    seconds: float | None = None
    rounds: int | None = None


class Progress:
    """Told of every round: prints a line a second, and stops the run at a limit."""

    def __init__(self, limits: Limits, *, quiet: bool = False) -> None:
        self.limits = limits
        self.quiet = quiet
        self._rounds: dict[int, int] = {}
        self.started = self.shown = time.perf_counter()
        self.state = "reading"

    def __call__(self, stratum: int, strata: int, round_: int, facts: int) -> None:
        """One round of a stratum is done."""
        self._rounds[stratum] = round_  # an engine may tell of several rounds at once
        now = time.perf_counter()
        self.state = f"stratum {stratum} of {strata}, round {round_}, {facts:,} facts"
        if now - self.shown >= _EVERY and not self.quiet:
            self.shown = now
            print(f"{self.state}, {now - self.started:.1f} s", file=sys.stderr, flush=True)
        if self.limits.facts is not None and facts > self.limits.facts:
            self.stop(f"--limit-facts {self.limits.facts}")
        if self.limits.rounds is not None and sum(self._rounds.values()) > self.limits.rounds:
            self.stop(f"--limit-rounds {self.limits.rounds}")

    def reading(self, at: Reading) -> None:
        """A part of an RDF file is read."""
        now = time.perf_counter()
        self.state = f"reading {at.file}, {at.statements:,} statements"
        if now - self.shown >= _EVERY and not self.quiet:
            self.shown = now
            share = f", {at.done / at.total:.0%} of the file" if at.total else ""
            print(f"{self.state}{share}, {now - self.started:.1f} s", file=sys.stderr, flush=True)

    def stop(self, limit: str) -> None:
        """Give up, saying how far the run came."""
        spent = time.perf_counter() - self.started
        raise OperationFailed(
            "E405",
            f"stopped by {limit}: the result is incomplete, and nothing was written"
            f" ({self.state}, after {spent:.1f} s)",
        )

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Stop the work inside when its time is over, even in the middle of a round."""
        limit = self.limits.seconds
        if limit is None or not hasattr(signal, "setitimer"):
            yield
            return

        def over(number: int, frame: FrameType | None) -> None:
            self.stop(f"--limit-seconds {limit:g}")

        before = signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, limit, _AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


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


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the work inside, wherever it is."""
    ended = threading.Event()

    def again() -> None:
        if not ended.wait(_AGAIN):
            os.kill(os.getpid(), signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=again, daemon=True).start()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        ended.set()
        signal.signal(signal.SIGINT, before)


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
