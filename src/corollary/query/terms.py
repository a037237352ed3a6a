"""What the translation asks of a dictionary."""

from __future__ import annotations

from typing import Protocol

from corollary.lang.syntax import Constant


class Terms(Protocol):
    """Terms with their ids."""

    def __len__(self) -> int: ...

    def find(self, term: Constant) -> int | None:
        """The id of a term, None if it has none."""
        ...
