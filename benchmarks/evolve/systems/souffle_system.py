"""Soufflé: the rules as a program over `t(s, p, o)`, interpreted; starts over at each commit."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

from benchmarks.evolve.systems.protocol import serve
from benchmarks.evolve.systems.restart import Pattern, Restart, Triple


class Souffle(Restart):
    """Terms are numbers in the files that Soufflé reads and writes."""

    def commit(self) -> None:
        """Write program and facts, and run the interpreter."""
        self.numbers: dict[str, int] = {}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows = ("\t".join(map(self._number, triple)) for triple in self.explicit)
            (folder / "e.facts").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
            (folder / "program.dl").write_text(self.program(), encoding="utf-8")
            subprocess.run(
                ["souffle", "--jobs=1", f"-F{folder}", f"-D{folder}", str(folder / "program.dl")],
                check=True,
                capture_output=True,
            )
            lines = (folder / "t.csv").read_text("utf-8").splitlines()
        self._rows = [tuple(map(int, line.split("\t"))) for line in lines]

    def program(self) -> str:
        """The rules as Soufflé writes them."""
        rules = (
            f"{self._atom(rule.head)} :- {', '.join(map(self._atom, rule.body))}.\n"
            for rule in self.rules.values()
        )
        return (
            ".decl e(s: number, p: number, o: number)\n.input e\n"
            ".decl t(s: number, p: number, o: number)\n.output t\n"
            "t(s, p, o) :- e(s, p, o).\n" + "".join(rules)
        )

    def triples(self) -> Collection[Triple]:
        """Decode all triples."""
        texts = list(self.numbers)
        return [(texts[s], texts[p], texts[o]) for s, p, o in self._rows]

    def count(self) -> int:
        """Count the triples without decoding them."""
        return len(self._rows)

    def _number(self, term: str) -> str:
        return str(self.numbers.setdefault(term, len(self.numbers)))

    def _atom(self, atom: Pattern) -> str:
        terms = (f"v{term[1:]}" if term.startswith("?") else self._number(term) for term in atom)
        return f"t({', '.join(terms)})"


if __name__ == "__main__":
    serve(Souffle())
