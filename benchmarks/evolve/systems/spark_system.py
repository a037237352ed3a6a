"""Corollary on Spark: a store that is built by the first commit and updated by the others."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import corollary as co
from benchmarks.evolve.systems.protocol import digest, serve
from corollary import spark

_MASTER = "local[1]"  # its session starts with the first commit


class OnSpark:
    """Changes are staged until `commit`."""

    def __init__(self, folder: Path) -> None:
        self._store = folder / "evolve.store"
        self._staged: dict[str, list[Any]] = {}

    def load(self, path: Path) -> None:
        """Stage the triples of the first commit."""
        self.insert(path)

    def insert(self, path: Path) -> None:
        """Stage triples to insert."""
        self._staged.setdefault("insert", []).append(str(path))

    def delete(self, path: Path) -> None:
        """Stage triples to delete."""
        self._staged.setdefault("delete", []).append(str(path))

    def add_rules(self, path: Path) -> None:
        """Stage rules to add."""
        self._staged.setdefault("add_rules", []).append(_program(path))

    def remove_rules(self, path: Path) -> None:
        """Stage rules to remove."""
        self._staged.setdefault("remove_rules", []).append(_program(path))

    def commit(self) -> None:
        """Build the store, or update it."""
        staged, self._staged = self._staged, {}
        if not self._store.exists():
            rules = staged.get("add_rules", [])
            spark.build(self._store, staged.get("insert", []), rules=rules, master=_MASTER)
        else:
            spark.update(
                self._store,
                insert=staged.get("insert", []),
                delete=staged.get("delete", []),
                add_rules=staged.get("add_rules", []),
                remove_rules=staged.get("remove_rules", []),
                master=_MASTER,
            )

    def count(self) -> int:
        """Count the triples."""
        return co.KnowledgeBase.open(self._store).count("[?s, ?p, ?o]")

    def hash(self) -> str:
        """Hash the triples."""
        table = co.KnowledgeBase.open(self._store).facts("[?s, ?p, ?o]")
        columns = (table[name].to_pylist() for name in ("subject", "predicate", "object"))
        return digest(f"{s} {p} {o} ." for s, p, o in zip(*columns, strict=True))


def _program(path: Path) -> co.Program:
    return co.Program.parse(path.read_text("utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        serve(OnSpark(Path(name)))
