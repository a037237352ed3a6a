"""Systems that start over at each commit: they share the explicit triples and the rules."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.evolve.systems.protocol import digest

Triple: TypeAlias = tuple[str, str, str]
Pattern: TypeAlias = tuple[str, str, str]  # variables begin with `?`

_TERM = r'\?\w+|<[^>]*>|_:[^\s,\]]+|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?'
_TERMS = re.compile(_TERM)
_ATOM = re.compile(rf"\[\s*(?:{_TERM})(?:\s*,\s*(?:{_TERM})){{2}}\s*\]")
_OBJECT = re.compile(r"(\S+) (\S+) (.*) \.$")


@dataclass(frozen=True)
class Rule:
    """A rule over triple patterns."""

    head: Pattern
    body: Sequence[Pattern]

    @classmethod
    def parse(cls, line: str) -> Rule:
        """Parse one line.

        >>> Rule.parse("[?x, <urn:p>, ?z] :- [?x, <urn:q>, ?y], [?y, <urn:q>, ?z] .").head
        ('?x', '<urn:p>', '?z')
        """
        head, *body = (pattern(atom) for atom in _ATOM.findall(line))
        return cls(head, tuple(body))

    def variables(self) -> Mapping[str, tuple[int, int]]:
        """The first atom and position of each variable of the body."""
        places: dict[str, tuple[int, int]] = {}
        for number, atom in enumerate(self.body):
            for position, term in enumerate(atom):
                if term.startswith("?"):
                    places.setdefault(term, (number, position))
        return places


def pattern(atom: str) -> Pattern:
    """Split an atom into its terms."""
    subject, property_, object_ = _TERMS.findall(atom)
    return subject, property_, object_


def triples_of(path: Path) -> set[Triple]:
    """Read canonical N-Triples."""
    found = set()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            match = _OBJECT.match(line)
            assert match, f"not a triple: {line!r}"
            found.add((match[1], match[2], match[3]))
    return found


@dataclass
class Restart(ABC):
    """Keep explicit triples and rules; derive everything in `commit`."""

    explicit: set[Triple] = field(default_factory=set)
    rules: dict[str, Rule] = field(default_factory=dict)  # by line

    def load(self, path: Path) -> None:
        """Stage the triples of the first commit."""
        self.insert(path)

    def insert(self, path: Path) -> None:
        """Insert explicit triples."""
        self.explicit |= triples_of(path)

    def delete(self, path: Path) -> None:
        """Delete explicit triples."""
        self.explicit -= triples_of(path)

    def add_rules(self, path: Path) -> None:
        """Add rules."""
        self.rules |= {line: Rule.parse(line) for line in _lines(path)}

    def remove_rules(self, path: Path) -> None:
        """Remove rules."""
        for line in _lines(path):
            self.rules.pop(line, None)

    @abstractmethod
    def commit(self) -> None:
        """Derive all triples."""

    @abstractmethod
    def triples(self) -> Collection[Triple]:
        """Return all triples, without duplicates."""

    def count(self) -> int:
        """Count the triples."""
        return len(self.triples())

    def hash(self) -> str:
        """Hash the triples."""
        return digest(f"{s} {p} {o} ." for s, p, o in self.triples())


def _lines(path: Path) -> Iterable[str]:
    return path.read_text(encoding="utf-8").splitlines()
