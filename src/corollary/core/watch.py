"""Progress of long work in notebooks: a bar below the cell, which ends as a line of text.

Only work that takes more than a second is shown, and only in a notebook: elsewhere, or if the
variable COROLLARY_PROGRESS is 0, `watching` does nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from typing import Any

from corollary.core.jit import announcing

DELAY = 1.0  # seconds before anything is shown
_EVERY = 0.5  # seconds between two changes of the display
_COMPILING = "compiling loops, once on this machine ('corollary warm' does it ahead)"


def in_notebook() -> bool:
    """Test whether a kernel of Jupyter runs this process.

    >>> in_notebook()
    False
    """
    module = sys.modules.get("IPython")
    if module is None or os.environ.get("COROLLARY_PROGRESS") == "0":
        return False
    return getattr(module.get_ipython(), "kernel", None) is not None


class Watch:
    """The display of some work, repainted by a thread.

    >>> watch = Watch("loading")
    >>> watch.tell("reading pets.ttl, 5 statements", 0.5)
    >>> "50" in watch.html(), watch.text()
    (True, 'reading pets.ttl, 5 statements, 0 s')
    """

    def __init__(self, what: str) -> None:
        self.state, self.share = what, None
        self.notes: list[str] = []  # lines that stay
        self.is_shown = False
        self._started = time.perf_counter()
        self._over = threading.Event()
        self._name = uuid.uuid4().hex
        self._thread = threading.Thread(target=self._repeat, daemon=True, name="corollary-watch")

    state: str
    share: float | None

    def tell(self, state: str, share: float | None = None) -> None:
        """Say what the work does now, and which share of it is done, if that is known."""
        self.state, self.share = state, share

    def round(self, stratum: int, strata: int, round_: int, facts: int) -> None:
        """Say that a round of a materialization is complete."""
        self.tell(f"deriving, stratum {stratum} of {strata}, {facts:,} facts")

    def read(self, at: Any) -> None:
        """Say how much of a file is read (`rdf.triples.Progress`)."""
        share = min(at.done / at.total, 1.0) if at.total else None
        self.tell(f"reading {at.file}, {at.statements:,} statements", share)

    def compiling(self) -> None:
        """Say that the first loop is being compiled."""
        if not _announced:
            _announced.append(True)
            self.notes.append(_COMPILING)

    def text(self) -> str:
        """The display as text."""
        seconds = time.perf_counter() - self._started
        return "\n".join([*self.notes, f"{self.state}, {seconds:.0f} s"])

    def html(self) -> str:
        """The display with a bar, which moves on its own if the share is unknown."""
        value = "" if self.share is None else f' value="{100 * self.share:.0f}" max="100"'
        lines = "<br/>".join(escape(line) for line in self.text().splitlines())
        return f'<div style="font-size:90%"><progress{value}></progress> {lines}</div>'

    def start(self) -> None:
        """Begin to show the display, after a delay."""
        self._thread.start()

    def end(self) -> None:
        """Replace the bar by text, if it was ever shown."""
        self._over.set()
        self._thread.join()
        if self.is_shown:
            self._show(f'<div style="font-size:90%">{escape(self.text())}</div>')

    def _repeat(self) -> None:
        wait = DELAY
        while not self._over.wait(wait):
            self._show(self.html())
            wait = _EVERY

    def _show(self, html: str) -> None:
        from IPython import display

        data = {"text/html": html, "text/plain": self.text()}
        publish: Any = display.display
        publish(data, raw=True, display_id=self._name, update=self.is_shown)
        self.is_shown = True


_current: Watch | None = None
_announced: list[bool] = []  # whether a display has said that loops are compiled


def current() -> Watch | None:
    """The watch of the work that runs now, in a notebook.

    >>> current()
    """
    return _current


def report_round(stratum: int, strata: int, round_: int, facts: int) -> None:
    """Tell the current watch that a round of a materialization is complete.

    >>> report_round(1, 2, 1, 10)
    """
    if _current is not None:
        _current.round(stratum, strata, round_, facts)


def watching(what: str) -> AbstractContextManager[None]:
    """Show the progress of a block, unless an outer block does.

    >>> with watching("loading"):
    ...     pass
    """
    if _current is not None or not in_notebook():
        return nullcontext()
    return _displayed(Watch(what))


@contextmanager
def _displayed(watch: Watch) -> Iterator[None]:
    global _current
    _current = watch
    watch.start()
    try:
        with announcing(watch.compiling):
            yield
    finally:
        _current = None
        watch.end()
