"""A progress bar in the last line of a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from typing import TextIO

_EVERY = 0.2  # seconds between two repaints
_WIDTH = 24  # characters of the bar, if the terminal is wide enough
_CLEAR = "\r\033[K"


def is_terminal(stream: TextIO) -> bool:
    """Test whether the stream is a terminal whose lines can be repainted."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colors(stream: TextIO) -> bool:
    """Test whether to use colors: on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def painted(code: str, text: str, stream: TextIO) -> str:
    """Color a text with an ANSI code, if colors are enabled."""
    return f"\033[{code}m{text}\033[0m" if has_colors(stream) else text


class Bar:
    """A bar of the stages of some work and their completion; it disappears at the end.

    A state that begins with the name of a stage and a colon completes this stage, and remains on
    the terminal as a line. All other states are shown only next to the bar.
    """

    def __init__(self, stages: Sequence[str] = ()) -> None:
        self.stream = sys.stderr
        self.stages = list(stages)
        self.done = 0
        self.share: float | None = None
        self.state = ""
        self._started = time.perf_counter()
        self._ended = threading.Event()
        self._painting = threading.Lock()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Bar:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self._write(_CLEAR)

    def tell(self, state: str, share: float | None = None) -> None:
        """Report a state of the work; `share` is the completed fraction, if known."""
        name = state.partition(":")[0]
        with self._painting:
            self.share = share
            if name in self.stages:
                self.done, self.state = self.stages.index(name) + 1, ""
                self._write(f"{_CLEAR}{painted('2', self._cut(f'  {state}'), self.stream)}\n")
            else:
                self.state = state
        self.paint()

    def paint(self) -> None:
        """Paint the line."""
        with self._painting:
            self._write(f"{_CLEAR}{self.line()}")

    def line(self) -> str:
        """Format the bar, the stage and the state to the width of the terminal.

        >>> bar = Bar(["parse", "encode"])
        >>> bar.done = 1
        >>> bar.line().startswith("━━━━━━━━━━━━──────────── encode (2 of 2), 0 s")
        True
        """
        spent = f"{time.perf_counter() - self._started:.0f} s"
        share = self.share
        parts = [spent, self.state]
        if self.stages:
            share = self.done / len(self.stages) if share is None else share
            if self.done < len(self.stages):
                number = f"{self.done + 1} of {len(self.stages)}"
                parts.insert(0, f"{self.stages[self.done]} ({number})")
        text = ", ".join(filter(None, parts))
        if share is None:
            return self._cut(f"  {text}")
        width = min(_WIDTH, shutil.get_terminal_size().columns // 3)
        filled = round(share * width)
        text = self._cut(" " + text, width)
        return painted("36", "━" * filled, self.stream) + "─" * (width - filled) + text

    def _cut(self, text: str, used: int = 0) -> str:
        room = max(shutil.get_terminal_size().columns - used - 1, 1)
        return text if len(text) <= room else text[: room - 1] + "…"

    def _repeat(self) -> None:
        while not self._ended.wait(_EVERY):
            self.paint()

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
