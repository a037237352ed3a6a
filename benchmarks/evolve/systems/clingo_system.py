"""clingo: the rules as an answer set program over `t/3`; starts over at each commit."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from typing import Any

from benchmarks.evolve.systems.protocol import serve
from benchmarks.evolve.systems.restart import Pattern, Restart, Triple


class Clingo(Restart):
    """Terms are numbers in the program."""

    def commit(self) -> None:
        """Ground the program, which computes its only answer set."""
        clingo: Any = importlib.import_module("clingo")
        self.numbers: dict[str, int] = {}
        facts = "".join(f"t({','.join(map(self._number, triple))})." for triple in self.explicit)
        rules = "".join(
            f"{self._atom(rule.head)} :- {', '.join(map(self._atom, rule.body))}."
            for rule in self.rules.values()
        )
        self.control = clingo.Control(["--warn=none"])
        self.control.add("base", [], facts + rules)
        self.control.ground([("base", [])])

    def triples(self) -> Collection[Triple]:
        """Decode all triples."""
        texts = list(self.numbers)
        found = []
        for symbol in self.control.symbolic_atoms.by_signature("t", 3):
            s, p, o = (texts[argument.number] for argument in symbol.symbol.arguments)
            found.append((s, p, o))
        return found

    def _number(self, term: str) -> str:
        return str(self.numbers.setdefault(term, len(self.numbers)))

    def _atom(self, atom: Pattern) -> str:
        terms = (f"V{term[1:]}" if term.startswith("?") else self._number(term) for term in atom)
        return f"t({','.join(terms)})"


if __name__ == "__main__":
    serve(Clingo())
