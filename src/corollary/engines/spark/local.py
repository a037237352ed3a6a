"""Convert local paths to addresses of Spark."""

from __future__ import annotations

import os
from pathlib import Path

from corollary.errors import InvalidInput

_PATTERN = "{}[]*?\\"


def address(path: Path) -> str:
    """Return the address of a path; Hadoop does not decode percent signs, so nothing is quoted.

    Spark interprets some characters as patterns. If they are escaped or globbing is disabled, it
    lists files twice, so paths with such characters are rejected.

    >>> address(Path("/tmp/a b%20c#d"))
    'file:///tmp/a b%20c#d'
    """
    full = os.path.realpath(path)
    if any(character in full for character in _PATTERN):
        raise InvalidInput(
            "E510",
            f"Spark cannot use {full}: it takes {' '.join(_PATTERN)} in a path for a pattern",
            "choose another folder, or use --engine columnar",
            file=str(path),
        )
    return f"file://{full}"
