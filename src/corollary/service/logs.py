"""Structured logs: one JSON object per line on stderr, without texts of requests."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import IO


class Log:
    """Writes events as lines of JSON.

    JSON escapes line breaks and control characters, so no value can forge a line.

    >>> import io
    >>> out = io.StringIO()
    >>> Log(out).write("request", path="/a\\nb")
    >>> out.getvalue().count("\\n"), "a\\\\nb" in out.getvalue()
    (1, True)
    """

    def __init__(self, out: IO[str] | None = None, *, quiet: bool = False) -> None:
        self._out = out
        self._quiet = quiet

    def write(self, event: str, **values: object) -> None:
        """Write an event; values that are None are left out."""
        if self._quiet and event == "request":
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        shown = {name: value for name, value in values.items() if value is not None}
        line = json.dumps({"time": now, "event": event, **shown}, default=str)
        print(line, file=self._out or sys.stderr, flush=True)
