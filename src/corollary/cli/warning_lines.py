"""Warnings on the command line: one line each on stderr, and a list for `--json`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from corollary.errors import CorollaryWarning

_raised: list[CorollaryWarning] = []  # warnings of the running command


@contextmanager
def reported() -> Iterator[None]:
    """Print the warnings of a command as it raises them."""
    _raised.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("always", CorollaryWarning)
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if isinstance(message, CorollaryWarning):
                _raised.append(message)
                print(f"warning: {message}", file=sys.stderr, flush=True)
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def describe_warnings() -> list[dict[str, Any]]:
    """Describe the warnings so far as JSON for `--json`."""
    return [warning.as_json() for warning in _raised]
