"""Systems whose rules are built in: they take part in streams that ask for ρdf only.

They derive more than ρdf, so their states are not compared: `count` and `hash` answer `?`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from pathlib import Path

from benchmarks.evolve.streams import RHODF
from benchmarks.evolve.systems.restart import Restart, Triple


class FixedRules(Restart):
    """Accepts the rules of ρdf, which its own rules contain, and no others."""

    def add_rules(self, path: Path) -> None:
        """Check that the rules are those of ρdf."""
        if {*path.read_text("utf-8").splitlines()} != {*RHODF}:
            raise ValueError("the rules of this system are built in")

    def remove_rules(self, path: Path) -> None:
        """Fail: the rules cannot change."""
        raise ValueError("the rules of this system are built in")

    @abstractmethod
    def commit(self) -> None:
        """Derive all triples."""

    def triples(self) -> Collection[Triple]:
        """Return the explicit triples: the others are never decoded."""
        return self.explicit

    def state(self) -> str:
        """Answer that the state is not comparable."""
        return "?"
