"""Corollary: one transaction per commit."""

from __future__ import annotations

import argparse
from pathlib import Path

import corollary as co
from benchmarks.evolve.systems.protocol import digest, serve
from corollary.algorithms.registry import ALGORITHMS


class Corollary:
    """A knowledge base in memory; changes are staged until `commit`."""

    def __init__(self, algorithm: str) -> None:
        self._kb = co.KnowledgeBase(algorithm=algorithm, threads=1)
        self._staged: list[tuple[str, Path]] = []

    def load(self, path: Path) -> None:
        """Stage the triples of the first commit."""
        self._staged.append(("insert", path))

    def insert(self, path: Path) -> None:
        """Stage triples to insert."""
        self._staged.append(("insert", path))

    def delete(self, path: Path) -> None:
        """Stage triples to delete."""
        self._staged.append(("delete", path))

    def add_rules(self, path: Path) -> None:
        """Stage rules to add."""
        self._staged.append(("add_rules", path))

    def remove_rules(self, path: Path) -> None:
        """Stage rules to remove."""
        self._staged.append(("remove_rules", path))

    def commit(self) -> None:
        """Apply the staged changes as one transaction."""
        with self._kb.transaction() as tx:
            for change, path in self._staged:
                getattr(tx, change)(path.read_text(encoding="utf-8"))
        self._staged.clear()

    def count(self) -> int:
        """Count the triples."""
        return self._kb.count("[?s, ?p, ?o]")

    def hash(self) -> str:
        """Hash the triples."""
        table = self._kb.facts("[?s, ?p, ?o]")
        columns = (table[name].to_pylist() for name in ("subject", "predicate", "object"))
        return digest(f"{s} {p} {o} ." for s, p, o in zip(*columns, strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="auto")
    serve(Corollary(parser.parse_args().algorithm))
