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
from corollary.knowledge_base import ontology
from corollary.knowledge_base.ontology import Specialized
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference import materialize as oracle
from corollary.lang.syntax import Atom
from corollary.rdf import plan
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


@pytest.mark.parametrize(
    ("name", "number"), [("rhodf", 40), ("rhodf+", 40), ("rdfs", 3), ("owl-rl", 3)]
)
def test_streams(name: str, number: int) -> None:
    for seed in range(number):
        facts, commits = stream(seed, owl=name == "owl-rl")
        both = Both(RULES[name], facts)
        for commit in commits:
            both.commit(commit)


@pytest.mark.parametrize("algorithm", ["bf", "dred", "dred-c", "bf-c", "fp", "rematerialize"])
def test_streams_by_algorithm(algorithm: str) -> None:
    for seed in range(1000, 1008):
        facts, commits = stream(seed)
        both = Both(RULES["rhodf+"], facts, algorithm)
        for commit in commits:
            both.commit(commit)


def test_oracle() -> None:
    """The same by the reference evaluator, after every commit."""
    for seed in range(2000, 2012):
        facts, commits = stream(seed, commits=4)
        both = Both(RULES["rhodf+"], facts)
        for commit in commits:
            both.commit(commit)
            facts = (facts - commit.deleted) | commit.inserted
            found = oracle(Program.of(RULES["rhodf+"].rules, facts))
            assert both.atoms(both.special.facts) == {Printer().atom(atom) for atom in found}


def _commit(inserted: str = "", deleted: str = "") -> Commit:
    return Commit(frozenset(Program.parse(inserted).facts), frozenset(Program.parse(deleted).facts))


def test_axiom_does_not_support_itself() -> None:
    """Data derive an axiom, whose rule derives those data: when the reason goes, so does all."""
    both = Both(
        RULES["rhodf"],
        Program.parse("""
            [<below>, rdfs:subPropertyOf, rdfs:subPropertyOf] .
            [<p>, rdfs:subPropertyOf, <below>] .
            [<p>, <below>, <below>] .
            [<below>, <p>, rdfs:subPropertyOf] .
        """).facts,
    )
    both.commit(_commit(deleted="[<below>, rdfs:subPropertyOf, rdfs:subPropertyOf] ."))
    both.commit(_commit(deleted="[<p>, rdfs:subPropertyOf, <below>] ."))
    assert len(both.special.facts) == 2


def test_properties_below_vocabulary() -> None:
    both = Both(
        RULES["rhodf"],
        Program.parse("""
            [<kindOf>, rdfs:subPropertyOf, rdfs:subClassOf] . [<is>, rdfs:subPropertyOf, rdf:type] .
            [<Cat>, <kindOf>, <Animal>] . [<tom>, <is>, <Cat>] .
        """).facts,
    )
    assert "[<tom>, a, <Animal>]" in both.atoms(both.special.facts)
    both.commit(_commit("[<Animal>, <kindOf>, <Being>] ."))
    assert "[<tom>, a, <Being>]" in both.atoms(both.special.facts)
    both.commit(_commit(deleted="[<kindOf>, rdfs:subPropertyOf, rdfs:subClassOf] ."))
    assert "[<tom>, a, <Animal>]" not in both.atoms(both.special.facts)


def test_rules_change() -> None:
    """Rules come and go as they are written, with facts in the same update."""
    both = Both(RULES["rhodf"], stream(5)[0])
    added, removed = tuple(MORE.rules), tuple(RULES["rhodf"].rules[:2])
    for seed in range(6):
        facts, _ = stream(seed)
        inserted = both.facts(facts)
        deleted = both.facts(stream(seed - 1)[0])
        changes = Changes(inserted, deleted, added, removed)
        ours, theirs = both.special.update(changes), both.plain.update(changes)
        both.same()
        assert set(ours.added_rules) == set(theirs.added_rules) == set(added)
        assert set(ours.removed_rules) == set(theirs.removed_rules) == set(removed)
        assert both.special.program == both.plain.program
        added, removed = removed, added


def test_many_cases_stay_general(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ontology, "MANY", 2)
    monkeypatch.setattr(ontology, "GUARDED", 1)
    monkeypatch.setattr(plan, "NARROW", 4)
    for name, number in (("rhodf+", 20), ("rdfs", 2)):
        for seed in range(number):
            facts, commits = stream(seed)
            both = Both(RULES[name], facts)
            for commit in commits:
                both.commit(commit)


def test_failed_update_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(RULES["rhodf+"], stream(7)[0])
    before = both.atoms(both.special.facts)
    settle = Specialized._settle

    def fail(*_: object) -> None:
        raise RuntimeError("stopped")

    _, commits = stream(8)
    monkeypatch.setattr(Specialized, "_settle", fail)
    with pytest.raises(RuntimeError):
        both.special.update(Changes(both.facts(commits[0].inserted), both.facts(stream(7)[0])))
    monkeypatch.setattr(Specialized, "_settle", settle)
    assert both.atoms(both.special.facts) == before
    for commit in commits:
        both.commit(commit)
    both.special.verify()


def test_rules_are_written_out() -> None:
    """Nothing but constants is left in the places of properties and classes."""
    facts = Program.parse("""
        [<Student>, rdfs:subClassOf, <Person>] . [<knows>, a, owl:SymmetricProperty] .
        [<Empty>, rdfs:subClassOf, <Person>] .
        [<ann>, a, <Student>] . [<ann>, <knows>, <bob>] .
    """).facts
    both = Both(RULES["owl-rl"], facts)
    rules = [Printer().rule(rule) for rule in both.special.specialized.rules]
    assert "[cax-sco] [?x, a, <Person>] :- [?x, a, <Student>] ." in rules
    assert "[prp-symp] [?y, <knows>, ?x] :- [?x, <knows>, ?y] ." in rules
    assert not any("<Empty>]" in rule and "cax-sco" in rule for rule in rules), "it has no members"
    assert not any("eq-rep" in rule and "?p" in rule for rule in rules), "nothing is equal"
    both.commit(_commit("[<ann>, owl:sameAs, <anne>] ."))
    assert "[<anne>, a, <Person>]" in both.atoms(both.special.facts)
    both.commit(_commit(deleted="[<ann>, owl:sameAs, <anne>] ."))
    assert len(both.special.specialized.rules) == len(rules)


@pytest.mark.parametrize("specialize", [True, False])
def test_knowledge_base(specialize: bool) -> None:
    kb = co.KnowledgeBase(co.rules("owl-rl"), specialize=specialize)
    with kb.transaction() as tx:
        tx.insert("""
            @prefix : <http://example.org/> .
            :headOf rdfs:subPropertyOf :worksFor . :ann :headOf :lab .
        """)
    works = "[<http://example.org/ann>, <http://example.org/worksFor>, <http://example.org/lab>]"
    assert works in kb
    proof = kb.explain(works)
    assert len(proof.premises) == 2, "the axiom is a premise"
    with kb.transaction() as tx:
        tx.delete(
            "[<http://example.org/headOf>, rdfs:subPropertyOf, <http://example.org/worksFor>] ."
        )
    assert works not in kb
    assert kb.program == co.rules("owl-rl").without_facts()
