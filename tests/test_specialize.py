"""Rules written out for a schema give what the rules give as they were written."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import corollary as co
from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.knowledge_base.ontology import Specialized
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from tests.ontologies import Commit, stream

MORE = Program.parse("""
    [?y, ?p, ?x] :- [?p, a, owl:SymmetricProperty], [?x, ?p, ?y] .
    [?x, ?p, ?z] :- [?p, a, owl:TransitiveProperty], [?x, ?p, ?y], [?y, ?p, ?z] .
    [?y, ?q, ?x] :- [?p, owl:inverseOf, ?q], [?x, ?p, ?y] .
    [?y, ?p, ?x] :- [?p, owl:inverseOf, ?q], [?x, ?q, ?y] .
""")
RULES = {
    "rhodf": co.rules("rhodf"),
    "rhodf+": co.rules("rhodf") | MORE,
    "rdfs": co.rules("rdfs"),
    "owl-horst": co.rules("owl-horst"),
    "owl-rl": co.rules("owl-rl"),
}


class Both:
    """The same facts kept by `Specialized` and by `Maintainer`."""

    def __init__(self, program: Program, facts: Iterable[Atom], algorithm: str = "auto") -> None:
        self.engine = ColumnarEngine(Dictionary())
        rules = Program.of(program.rules, prefixes=program.prefixes)
        start = self.facts([*program.facts, *facts])
        self.special = Specialized(rules, start, self.engine, algorithm=algorithm)
        self.plain = Maintainer(rules, start, self.engine)
        self.same()

    def facts(self, atoms: Iterable[Atom]) -> ColumnarFacts:
        return self.engine.facts(encode(atoms, self.engine.dictionary))

    def atoms(self, facts: ColumnarFacts) -> set[str]:
        return {Printer().atom(atom) for atom in decode(facts, self.engine.dictionary)}

    def same(self) -> None:
        assert self.atoms(self.special.facts) == self.atoms(self.plain.facts)

    def commit(self, commit: Commit) -> None:
        changes = Changes(self.facts(commit.inserted), self.facts(commit.deleted))
        ours, theirs = self.special.update(changes), self.plain.update(changes)
        self.same()
        assert self.atoms(ours.inserted) == self.atoms(theirs.inserted)
        assert self.atoms(ours.deleted) == self.atoms(theirs.deleted)


@pytest.mark.parametrize(("name", "number"), [("rhodf", 60), ("rhodf+", 60), ("rdfs", 12)])
def test_streams(name: str, number: int) -> None:
    for seed in range(number):
        facts, commits = stream(seed)
        both = Both(RULES[name], facts)
        for commit in commits:
            both.commit(commit)
