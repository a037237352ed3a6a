"""Shared code of the commands for stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from corollary.errors import CorollaryError

if TYPE_CHECKING:
    from corollary.store.places import Place


def stored_outcome(path: Place) -> Callable[[], str]:
    """Describe what a command that starts now leaves in a store if it is interrupted.

    This reads the store, because a limit or Ctrl-C may strike after a commit, before the command
    knows of it.
    """
    before = _latest(path)

    def outcome() -> str:
        now = _latest(path)
        if now is None or now == before:
            return "nothing was written" if now is None else f"the store is still at version {now}"
        first = 0 if before is None else before + 1
        commits = now - first + 1
        many = "1 commit was" if commits == 1 else f"{commits} commits were"
        return f"{many} made: the store is at version {now}"

    return outcome


def _latest(path: Place) -> int | None:
    from corollary.store import Store  # loads PyArrow

    try:
        return Store.open(path).latest()
    except CorollaryError:
        return None
