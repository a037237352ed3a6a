"""owlrl: RDFS with built-in rules over an rdflib graph; starts over at each commit."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.evolve.systems.fixed_rules import FixedRules
from benchmarks.evolve.systems.protocol import serve


class Owlrl(FixedRules):
    """A new graph for each commit, as derived triples cannot be told from explicit ones."""

    def commit(self) -> None:
        """Parse the explicit triples and expand the graph."""
        owlrl: Any = importlib.import_module("owlrl")
        graph: Any = importlib.import_module("rdflib").Graph()
        text = "".join(f"{s} {p} {o} .\n" for s, p, o in self.explicit)
        graph.parse(data=text, format="nt")
        owlrl.DeductiveClosure(owlrl.RDFS_Semantics).expand(graph)
        self.graph = graph


if __name__ == "__main__":
    serve(Owlrl())
