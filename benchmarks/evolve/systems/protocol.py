"""The system's side of the protocol."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol


class System(Protocol):
    """What an adapter does; paths are those of the requests."""

    def load(self, path: Path) -> None:
        """Stage the triples of the first commit."""

    def insert(self, path: Path) -> None:
        """Stage triples to insert."""

    def delete(self, path: Path) -> None:
        """Stage triples to delete."""

    def add_rules(self, path: Path) -> None:
        """Stage rules to add."""

    def remove_rules(self, path: Path) -> None:
        """Stage rules to remove."""

    def commit(self) -> None:
        """Apply the staged changes."""

    def count(self) -> int:
        """Count the triples, explicit and derived."""

    def hash(self) -> str:
        """Hash the triples, explicit and derived."""


def digest(lines: Iterable[str]) -> str:
    """The hash of N-Triples lines.

    >>> digest(["<urn:b> <urn:p> <urn:c> .", "<urn:a> <urn:p> <urn:c> ."])[:8]
    'd4f24cba'
    """
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def serve(system: System) -> None:
    """Answer requests until `quit` or the end of the input."""
    for line in sys.stdin:
        name, _, argument = line.rstrip("\n").partition(" ")
        if name == "quit":
            print("ok", flush=True)
            return
        try:
            answer = _answer(system, name, argument)
        except Exception as error:
            answer = f"error {type(error).__name__}: {error}".replace("\n", " ")
        print(answer, flush=True)


def _answer(system: System, name: str, argument: str) -> str:
    match name:
        case "load" | "insert" | "delete" | "add-rules" | "remove-rules":
            getattr(system, name.replace("-", "_"))(Path(argument))
        case "commit":
            system.commit()
        case "count" | "hash":
            state = getattr(system, "state", getattr(system, name))
            return f"ok {state()}"
        case _:
            return f"error unknown request {name!r}"
    return "ok"
