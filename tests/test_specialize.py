"""Rules written out for a schema give what the rules give as they were written."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary as co
from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference import materialize as oracle
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import IRI, TRIPLE, TYPE, Atom
from corollary.reasoning.specialization import SpecializedReasoner
from corollary.reasoning.templates import split
from corollary.testing import random_thresholds, thresholds
from tests.algorithms.replay import states
from tests.effort import first, scaled
from tests.ontologies import Commit, Stream, streams
from tests.streams import stream
from tests.variable_heads import variable_heads_case

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
    """The same facts kept by `SpecializedReasoner` and by `Maintainer`."""

    def __init__(self, program: Program, facts: Iterable[Atom], algorithm: str = "auto") -> None:
        self.engine = ColumnarEngine(Dictionary())
        rules = Program.of(program.rules, prefixes=program.prefixes)
        start = self.facts([*program.facts, *facts])
        self.special = SpecializedReasoner(rules, start, self.engine, Options(algorithm=algorithm))
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
        assert self.atoms(self.special.explicit) == self.atoms(self.plain.explicit)
        assert self.atoms(ours.inserted) == self.atoms(theirs.inserted)
        assert self.atoms(ours.deleted) == self.atoms(theirs.deleted)


def replay(program: Program, given_: Stream, algorithm: str = "auto") -> Both:
    """All commits of a stream, compared after each."""
    both = Both(program, given_.first, algorithm)
    for commit in given_.commits:
        both.commit(commit)
    return both


@pytest.mark.parametrize("name", ["rhodf", "rhodf+"])
@given(st.data())
@settings(max_examples=60)
def test_streams(name: str, data: st.DataObject) -> None:
    replay(RULES[name], data.draw(streams()))


# Hundreds of rules: a commit takes a tenth of a second.
@pytest.mark.parametrize("name", ["rdfs", "owl-horst", "owl-rl"])
@given(st.data())
@settings(max_examples=5)
def test_streams_of_large_rule_sets(name: str, data: st.DataObject) -> None:
    replay(RULES[name], data.draw(streams(owl=name != "rdfs", commits=4)))


@pytest.mark.parametrize("algorithm", ["bf", "dred", "dred-c", "bf-c", "fp", "rematerialize"])
@given(st.data())
@settings(max_examples=12)
def test_streams_by_algorithm(algorithm: str, data: st.DataObject) -> None:
    replay(RULES["rhodf+"], data.draw(streams()), algorithm)


@given(streams(commits=4))
@settings(max_examples=20)
def test_oracle(given_: Stream) -> None:
    """The same by the reference evaluator, after every commit."""
    both, facts = Both(RULES["rhodf+"], given_.first), set(given_.first)
    for commit in given_.commits:
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


def test_vocabulary_that_no_rule_reads_is_data() -> None:
    """Data that derive classes derive axioms only once a rule asks for them."""
    both = Both(
        RULES["rhodf"],
        Program.parse("""
            [<Kind>, rdfs:subClassOf, rdfs:Class] . [<Text>, a, <Kind>] . [<word>, a, <Text>] .
        """).facts,
    )
    assert (
        Predicate(TRIPLE, TYPE, IRI("http://www.w3.org/2000/01/rdf-schema#Class"))
        not in split(RULES["rhodf"]).predicates
    )
    more = Program.parse("[?c, rdfs:subClassOf, <Thing>] :- [?c, a, rdfs:Class] .").rules
    for added, removed in ((more, ()), ((), more)):
        changes = Changes(both.facts(()), both.facts(()), added, removed)
        both.special.update(changes)
        both.plain.update(changes)
        both.same()
        assert ("[<word>, a, <Thing>]" in both.atoms(both.special.facts)) == bool(added)
        both.commit(_commit("[<Number>, a, <Kind>] . [<one>, a, <Number>] ."))
        both.commit(_commit(deleted="[<Number>, a, <Kind>] ."))
        assert "[<one>, a, <Thing>]" not in both.atoms(both.special.facts)


@given(st.lists(streams(commits=1), min_size=2, max_size=5))
@settings(max_examples=15)
def test_rules_change(all_given: list[Stream]) -> None:
    """Rules come and go as they are written, with facts in the same update."""
    both = Both(RULES["rhodf"], all_given[0].first)
    added, removed = tuple(MORE.rules), tuple(RULES["rhodf"].rules[:2])
    for before, given_ in pairwise(all_given):
        inserted, deleted = both.facts(given_.first), both.facts(before.first)
        changes = Changes(inserted, deleted, added, removed)
        ours, theirs = both.special.update(changes), both.plain.update(changes)
        both.same()
        assert both.atoms(both.special.explicit) == both.atoms(both.plain.explicit)
        assert set(ours.added_rules) == set(theirs.added_rules) == set(added)
        assert set(ours.removed_rules) == set(theirs.removed_rules) == set(removed)
        assert both.special.program == both.plain.program
        both.commit(given_.commits[0])
        added, removed = removed, added


@pytest.mark.scaled
@pytest.mark.parametrize(("name", "number"), [("rhodf+", 25), ("rdfs", 3)])
def test_rules_over_many_predicates_stay_general(name: str, number: int) -> None:
    @given(streams())
    @settings(max_examples=scaled(number))
    def check(given_: Stream) -> None:
        replay(RULES[name], given_)

    with thresholds(narrowed_predicates_limit=4):
        check()


@given(streams(), streams())
@settings(max_examples=15)
def test_failed_update_changes_nothing(first: Stream, then: Stream) -> None:
    both = Both(RULES["rhodf+"], first.first)
    before = both.atoms(both.special.facts)
    explicit = both.atoms(both.special.explicit)
    changes = Changes(both.facts(then.commits[0].inserted), both.facts(first.first))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SpecializedReasoner, "_run_to_fixpoint", _fail)
        with pytest.raises(RuntimeError):
            both.special.update(changes)
    assert both.atoms(both.special.facts) == before
    assert both.atoms(both.special.explicit) == explicit
    for commit in then.commits:
        both.commit(commit)
    both.special.verify()


def _fail(*_: object) -> None:
    raise RuntimeError("stopped")


def test_rules_are_written_out() -> None:
    """Nothing but constants is left in the places of properties and classes."""
    facts = Program.parse("""
        [<Student>, rdfs:subClassOf, <Person>] . [<knows>, a, owl:SymmetricProperty] .
        [<Empty>, rdfs:subClassOf, <Person>] .
        [<ann>, a, <Student>] . [<ann>, <knows>, <bob>] .
    """).facts
    both = Both(RULES["owl-rl"], facts)
    rules = [Printer().rule(rule) for rule in both.special.active_program.rules]
    assert "[cax-sco] [?x, a, <Person>] :- [?x, a, <Student>] ." in rules
    assert "[prp-symp] [?y, <knows>, ?x] :- [?x, <knows>, ?y] ." in rules
    assert not any("<Empty>]" in rule and "cax-sco" in rule for rule in rules), "it has no members"
    assert not any("eq-rep" in rule and "?p" in rule for rule in rules), "nothing is equal"
    both.commit(_commit("[<ann>, owl:sameAs, <anne>] ."))
    assert "[<anne>, a, <Person>]" in both.atoms(both.special.facts)
    both.commit(_commit(deleted="[<ann>, owl:sameAs, <anne>] ."))
    assert len(both.special.active_program.rules) == len(rules)


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
    assert kb.program == co.rules("owl-rl")


@pytest.mark.parametrize("seed", first(10, range(40)))
def test_oracle_rule_changes(seed: int) -> None:
    """Rules decide what belongs to a schema, so that their changes move facts in and out of it."""
    case = variable_heads_case(seed)
    one = stream(seed, case.program, 8, case.others)
    with random_thresholds(seed):
        kb = co.KnowledgeBase(case.program, specialize=True)
        for commit, state in zip(one.commits, states(one)[1:], strict=True):
            with kb.transaction() as tx:
                tx.delete(list(commit.deleted))
                tx.insert(list(commit.inserted))
                tx.remove_rules(commit.removed)
                tx.add_rules(commit.added)
            assert {*decode(kb.state.reasoner.explicit, kb.state.dictionary)} == state.explicit
            assert {*decode(kb.state.reasoner.facts, kb.state.dictionary)} == state.facts
