"""reasonable: OWL 2 RL with built-in rules; starts over at each commit."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.evolve.systems.fixed_rules import FixedRules
from benchmarks.evolve.systems.protocol import serve


class Reasonable(FixedRules):
    """A new reasoner for each commit, as it has no deletions."""

    def commit(self) -> None:
        """Load the explicit triples from a file, which is what it reads fastest, and reason."""
        reasoner: Any = importlib.import_module("reasonable").PyReasoner()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "explicit.ttl"
            text = "".join(f"{s} {p} {o} .\n" for s, p, o in self.explicit)
            path.write_text(text, encoding="utf-8")
            reasoner.load_file(str(path))
        self.derived = reasoner.reason()


if __name__ == "__main__":
    serve(Reasonable())
