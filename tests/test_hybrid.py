"""Hybrid knowledge bases: what follows is what a materialized one has, always."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary as co
from corollary.algorithms.hybrid import Hybrid
from corollary.core.tables import decode
from corollary.errors import InvalidInput
from corollary.knowledge_base.hybrid import triple_ids
from corollary.knowledge_base.verify import verify_store
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom, Literal, Rule, Variable
from corollary.reasoning.hybrid import SpecializedHybridReasoner, schema_patterns
from corollary.testing import random_thresholds, thresholds
from tests.effort import scaled
from tests.engines.factories import marks
from tests.fuzz.hybrid import check_variable_heads
from tests.ontologies import Stream, streams, triples
from tests.test_specialize import RULES

UNIVERSITY = """
    [<Student>, rdfs:subClassOf, <Person>] . [<Chair>, rdfs:subClassOf, <Person>] .
    [<worksFor>, rdfs:subPropertyOf, <memberOf>] . [<memberOf>, owl:inverseOf, <member>] .
    [<partOf>, a, owl:TransitiveProperty] . [<worksFor>, rdfs:domain, <Chair>] .
    [<ann>, a, <Student>] . [<bob>, <worksFor>, <lab>] . [<ann>, <memberOf>, <lab>] .
    [<lab>, <partOf>, <school>] . [<school>, <partOf>, <town>] .
"""


class Both:
    """The same facts in a hybrid and in a materialized knowledge base."""

    def __init__(self, rules: Program, seed: int = 0, engine: str = "columnar", **options: object):
        self.hybrid = co.KnowledgeBase(rules, mode="hybrid", engine=engine, **options)  # type: ignore[arg-type]
        self.full = co.KnowledgeBase(rules)
        self.random = Random(seed)

    def change(
        self,
        inserted: object = (),
        deleted: object = (),
        added: tuple[Rule, ...] = (),
        removed: tuple[Rule, ...] = (),
    ) -> None:
        for kb in (self.hybrid, self.full):
            with kb.transaction() as tx:
                tx.remove_rules(removed)
                tx.add_rules(added)
                tx.delete(deleted)
                tx.insert(inserted)

    def same(self, *patterns: str | Atom) -> None:
        for pattern in patterns:
            ours, theirs = (
                {tuple(row.values()) for row in kb.facts(pattern).to_pylist()}
                for kb in (self.hybrid, self.full)
            )
            text = pattern if isinstance(pattern, str) else Printer().atom(pattern)
            assert ours == theirs, text
            assert self.hybrid.count(pattern) == len(theirs)

    def ask(self, number: int = 4) -> None:
        """Some patterns whose terms are there, and all triples."""
        rows = self.full.state.reasoner.match(Atom(TRIPLE, tuple(map(Variable, "spo"))))
        parts = [rows.rows(predicate).ravel() for predicate in rows.predicates()]
        if not parts:
            return
        ids = np.unique(np.concatenate(parts))
        terms = self.full.state.dictionary.terms(self.random.sample(ids.tolist(), min(8, len(ids))))
        places = (*terms, *(p.property for p in rows.predicates() if p.property is not None))
        for _ in range(number):
            chosen = tuple(
                self.random.choice(places) if self.random.random() < 0.5 else Variable(name)
                for name in "spo"
            )
            if not isinstance(chosen[1], Literal):
                self.same(Atom(TRIPLE, chosen))


@pytest.mark.scaled
@pytest.mark.parametrize(
    ("name", "number"),
    [("rhodf", 10), ("rhodf+", 12), ("rdfs", 1), ("owl-horst", 1), ("owl-rl", 1)],
)
def test_streams(name: str, number: int) -> None:
    """Axioms that come and go, also from data; the vocabulary itself is redefined."""
    commits = 5 if name.startswith("rhodf") else 2

    @settings(max_examples=scaled(number))
    @given(streams(owl=name.startswith("owl"), commits=commits), st.integers(0, 999))
    def check(found: Stream, seed: int) -> None:
        both = Both(RULES[name], seed)
        both.change(list(found.first))
        both.same("[?s, ?p, ?o]")
        for commit in found.commits:
            both.change(list(commit.inserted), list(commit.deleted))
            both.ask()
            both.same("[?s, ?p, ?o]")

    check()


@settings(max_examples=6)
@given(
    triples_of=st.frozensets(triples(wild=True, owl=False), max_size=14), seed=st.integers(0, 999)
)
def test_rules_that_change(triples_of: frozenset[Atom], seed: int) -> None:
    rules, random = RULES["rhodf+"].rules, Random(seed)
    both = Both(Program.of(rules[:4]), seed)
    both.change(list(triples_of))
    for _ in range(4):
        now = {*both.full.program.rules}
        removed = tuple(rule for rule in rules if rule in now and random.random() < 0.3)
        added = tuple(rule for rule in rules if rule not in now and random.random() < 0.5)
        both.change(added=added, removed=removed)
        both.ask()
        both.same("[?s, ?p, ?o]")


@pytest.mark.parametrize("specialize", [True, False])
def test_rules_written_out_or_not(specialize: bool) -> None:
    both = Both(RULES["rhodf+"], specialize=specialize)
    both.change(UNIVERSITY)
    both.same("[?s, ?p, ?o]", "[?x, a, <Person>]", "[<bob>, ?p, ?o]", "[?s, ?p, <lab>]")
    both.same("[<lab>, <member>, ?x]", "[<lab>, <partOf>, <town>]", "[?x, ?p, ?x]", "[?x, ?x, ?y]")


KINDS_OF_CLASSES = "[?x, a, ?d] :- [?c, <kind>, ?d], [?x, a, ?c] ."
ALIASES = "[?x, ?q, ?y] :- [?p, <alias>, ?q], [?x, ?p, ?y] ."
A_KIND = "[<C>, <kind>, <D>] . [<a>, a, <C>] ."
AN_ALIAS = "[<q>, <alias>, <p>] . [<a>, <q>, <b>] ."


@pytest.mark.parametrize(
    ("rules", "facts", "derived"),
    [
        (f"{KINDS_OF_CLASSES} [?x, a, <E>] :- [?x, a, <D>] .", A_KIND, "[<a>, a, <E>]"),
        (f"{ALIASES} [?x, a, <E>] :- [?x, <p>, ?y] .", AN_ALIAS, "[<a>, a, <E>]"),
        (
            f"{KINDS_OF_CLASSES} [?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .",
            f"{A_KIND} [<D>, rdfs:subClassOf, <E>] .",
            "[<a>, a, <E>]",
        ),
        (
            f"{ALIASES} [?x, a, ?c] :- [?p, rdfs:domain, ?c], [?x, ?p, ?y] .",
            f"{AN_ALIAS} [<p>, rdfs:domain, <E>] .",
            "[<a>, a, <E>]",
        ),
        (f"{KINDS_OF_CLASSES} [?c, a, <Used>] :- [?x, a, ?c] .", A_KIND, "[<D>, a, <Used>]"),
        (f"{ALIASES} [?p, a, <Used>] :- [?x, ?p, ?y] .", AN_ALIAS, "[<p>, a, <Used>]"),
        (
            "[?x, a, ?d] :- [?p, rdfs:domain, ?c], [?x, ?p, ?y], [?c, <kind>, ?d] ."
            "[?x, a, <E>] :- [?x, a, <D>] .",
            "[<p>, rdfs:domain, <C>] . [<C>, <kind>, <D>] . [<a>, <p>, <b>] .",
            "[<a>, a, <E>]",
        ),
    ],
    ids=[
        "class by name",
        "property by name",
        "class of a case",
        "property of a case",
        "any class",
        "any property",
        "head of a case",
    ],
)
def test_predicates_with_facts_by_variable_heads_alone(
    rules: str, facts: str, derived: str
) -> None:
    """Nobody sees the facts that rules with variable heads derive on demand: others read them."""
    both = Both(Program.parse(rules))
    both.change(facts)
    assert derived in both.hybrid
    both.same("[?s, ?p, ?o]")
    both.change(deleted=facts)
    both.same("[?s, ?p, ?o]")
    both.change(facts)
    both.same("[?s, ?p, ?o]")


def test_rule_with_a_variable_head() -> None:
    """A rule that data turn into specialized ones, or that stays as it is."""
    rules = """
        _literal(?l) :- [?s, ?p, ?l], FILTER(isLiteral(?l)) .
        [?l, a, ?d] :- [?d, a, rdfs:Datatype], _literal(?l), FILTER(hasDatatype(?l, ?d)) .
        [?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .
    """
    for limit in (2, 1000):
        with thresholds(specialized_rules_limit=limit):
            both = Both(Program.parse(rules))
            both.change("[xsd:integer, rdfs:subClassOf, rdfs:Literal] . [<ann>, <age>, 7] .")
            for datatypes in (["byte"], ["integer", "long", "short"]):
                both.change("".join(f"[xsd:{name}, a, rdfs:Datatype] ." for name in datatypes))
                both.same("[?s, ?p, ?o]")
            assert "[7, a, rdfs:Literal]" in both.hybrid


def test_data_decide_how_queries_unfold() -> None:
    """Rules of a large schema stay as written, until there are data enough to specialize them."""
    both = Both(co.rules("owl-rl"))

    def unfolds() -> type:
        reasoner: Any = both.hybrid.state.reasoner
        return type(reasoner._inner)

    classes = "".join(f"[<c{n}>, rdfs:subClassOf, <c{n + 1}>] ." for n in range(8))
    members = "".join(f"[<x{n}>, a, <c{n % 8}>] . [<x{n}>, <p>, <y>] ." for n in range(16))
    limits = {"specialized_rules_limit": 30, "facts_of_specialized_rule": 3}
    with thresholds(**limits, tuple_facts_limit=1000):
        assert unfolds() is SpecializedHybridReasoner
        both.change(classes + members)
        assert unfolds() is Hybrid, "the update would add too many rules"
        for pattern in ("[?x, a, <c7>]", "[<x3>, a, ?c]", "[?s, ?p, ?o]"):
            both.same(pattern)
        for batch in range(4):  # grows little by little
            both.change("".join(f"[<x{n}>, <p>, <z{batch}>] ." for n in range(90)))
            both.same("[?x, a, <c7>]")
        assert unfolds() is SpecializedHybridReasoner
        both.change("[<c8>, rdfs:subClassOf, <c0>] .", deleted="[<c3>, rdfs:subClassOf, <c4>] .")
        both.same("[?s, ?p, ?o]")
        both.hybrid.state.reasoner.verify()


@pytest.mark.parametrize("seed", range(0, 40, 10))
def test_oracle_variable_heads(seed: int) -> None:
    for one in range(seed, seed + 10):
        check_variable_heads(one)


def test_what_is_kept() -> None:
    """Explicit facts, the schema, and the patterns that one asks to be materialized."""
    kb = co.KnowledgeBase(RULES["rhodf+"], mode="hybrid")
    with kb.transaction() as tx:
        tx.insert(UNIVERSITY)
    assert kb.mode == "hybrid"
    assert kb.count() == 11
    switched = co.KnowledgeBase(
        RULES["rhodf+"], mode="hybrid", materialize=["[?x, <memberOf>, ?y]"]
    )
    with switched.transaction() as tx:
        tx.insert(UNIVERSITY)
    assert "+ [<bob>, <memberOf>, <lab>]" in str(tx.changes)
    assert switched.explain_plan("[?x, <memberOf>, ?y]").root.kind == "pre-materialized"
    assert switched.explain_plan("[?x, a, <Person>]").root.kind == "unfolded"
    with switched.transaction() as tx:
        tx.delete("[<worksFor>, rdfs:subPropertyOf, <memberOf>] .")
    assert "- [<bob>, <memberOf>, <lab>]" in str(tx.changes)


def test_answers_are_up_to_date() -> None:
    kb = co.KnowledgeBase(RULES["rhodf"], mode="hybrid")
    with kb.transaction() as tx:
        tx.insert("[<a>, a, <C>] . [<C>, rdfs:subClassOf, <D>] .")
    assert "[<a>, a, <D>]" in kb
    with kb.transaction() as tx:
        tx.delete("[<C>, rdfs:subClassOf, <D>] .")
    assert "[<a>, a, <D>]" not in kb


def test_proofs() -> None:
    both = Both(RULES["owl-horst"])
    both.change(UNIVERSITY)
    for fact in ("[<bob>, a, <Person>]", "[<lab>, <member>, <bob>]", "[<lab>, <partOf>, <town>]"):
        ours, theirs = both.hybrid.explain(fact), both.full.explain(fact)
        assert ours.height == theirs.height
        assert ours.size == theirs.size
    with pytest.raises(InvalidInput, match="not in the materialization"):
        both.hybrid.explain("[<bob>, a, <Student>]")


def test_contradictions() -> None:
    both = Both(RULES["owl-rl"])
    both.change(UNIVERSITY)
    both.change("[<Person>, owl:disjointWith, <Lab>] . [<bob>, a, <Lab>] .")
    ours, theirs = both.hybrid.inconsistencies(), both.full.inconsistencies()
    assert [str(one) for one in ours] == [str(one) for one in theirs] != []


def test_plain_rules() -> None:
    rules = """
        path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) .
        far(?x, ?n) :- AGGREGATE(path(?x, ?y) ON ?x BIND count(?y) AS ?n) .
        lonely(?x) :- node(?x), NOT path(?x, ?y) . edge(1, 2) . edge(2, 3) . node(3) . node(1) .
        false :- path(?x, ?x) .
    """
    both = Both(Program.parse(rules))
    both.same("path", "path(1, ?y)", "far", "lonely", "lonely(1)", "far(?x, 2)")
    assert str(both.hybrid.explain("lonely(3)")) == str(both.full.explain("lonely(3)"))
    both.change("edge(3, 1) .")
    both.same("path", "path(?x, 1)", "far", "lonely")
    assert [one.count for one in both.hybrid.inconsistencies(limit=1)] == [3]


def test_ids_for_queries() -> None:
    for mode in ("hybrid", "materialized"):
        kb = co.KnowledgeBase(RULES["rhodf+"], mode=mode)
        with kb.transaction() as tx:
            tx.insert(UNIVERSITY)

        def number(name: str, kb: co.KnowledgeBase = kb) -> int:
            found = kb.state.dictionary.find(
                Program.parse(f"p({name}) .").facts[0].constants().__next__()
            )
            assert found is not None
            return found

        member, ann, bob = number("<memberOf>"), number("<ann>"), number("<bob>")
        rows = triple_ids(kb.state, (None, member, number("<lab>")))
        assert rows.dtype == np.uint32
        assert sorted(rows[:, 0].tolist()) == sorted([ann, bob])
        chosen = {0: np.array([bob]), 1: np.array([member, number("<partOf>")])}
        assert triple_ids(kb.state, (None, None, None), chosen).tolist() == [
            [bob, member, number("<lab>")]
        ]
        types = triple_ids(kb.state, (ann, None, None), {2: np.array([number("<Person>")])})
        assert [kb.state.dictionary.term(row[2]) for row in types.tolist()] == [
            Program.parse("p(<Person>) .").facts[0].terms[0]
        ]
        assert triple_ids(kb.state, (None, None, None), {0: np.zeros(0, np.uint32)}).shape == (0, 3)


def test_trees() -> None:
    kb = co.KnowledgeBase(RULES["rhodf+"], mode="hybrid")
    with kb.transaction() as tx:
        tx.insert(UNIVERSITY)
    tree = kb.explain_plan("[?x, <memberOf>, <lab>]")
    assert tree.complete
    assert tree.leaves < tree.leaves_without
    assert "by [rdfs7] [?x, <memberOf>, ?y] :- [?x, <worksFor>, ?y]" in str(tree)
    told = json.loads(json.dumps(tree.to_json()))
    assert told["tree"]["facts"] == 2
    assert told["leaves"] == tree.leaves
    assert {rule["name"] for rule in told["tree"]["rules"]} == {"rdfs7", None}


def test_patterns_of_the_paper() -> None:
    patterns = schema_patterns()
    assert len({*map(Printer().atom, patterns)}) == len(patterns) == 27


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"mode": "lazy"}, "E580"),
        ({"mode": "hybrid", "equality": "rewrite"}, "E581"),
        ({"materialize": ["p(?x)"]}, "E582"),
        ({"mode": "hybrid", "materialize": ["r(?x)"]}, "E344"),
    ],
)
def test_what_cannot_be(options: dict[str, object], code: str) -> None:
    with pytest.raises(InvalidInput) as error:
        co.KnowledgeBase("p(?x) :- q(?x) .", **options)  # type: ignore[arg-type]
    assert error.value.code == code


def test_no_tree_without_unfolding() -> None:
    with pytest.raises(InvalidInput) as error:
        co.KnowledgeBase("p(?x) :- q(?x) .").explain_plan("p(?x)")
    assert error.value.code == "E583"


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=marks("spark"))])
def test_on_spark(engine: str) -> None:
    both = Both(RULES["rhodf+"], engine=engine)
    both.change(UNIVERSITY)
    both.same("[?x, a, <Person>]", "[?x, <memberOf>, <lab>]", "[<lab>, <partOf>, <town>]")
    both.change(deleted="[<worksFor>, rdfs:subPropertyOf, <memberOf>] .")
    both.same("[?x, <memberOf>, <lab>]")


def test_stores(tmp_path: Path) -> None:
    """A store has explicit facts and the pre-materialization; opened, it answers all the same."""
    path = tmp_path / "store"
    kb = co.KnowledgeBase(RULES["rhodf+"], mode="hybrid", materialize=["[?x, <memberOf>, ?y]"])
    with kb.transaction() as tx:
        tx.insert(UNIVERSITY)
    kept = kb.count()
    kb.save(path)
    opened = co.KnowledgeBase.open(path)
    assert (opened.mode, opened.count()) == ("hybrid", kept)
    assert opened.count("[?x, a, <Person>]") == 2
    assert "pre-materialized" in str(opened.explain_plan("[?x, <memberOf>, ?y]"))
    with opened.transaction() as tx:
        tx.insert("[<cyd>, <worksFor>, <lab>] . [<Person>, rdfs:subClassOf, <Agent>] .")
    assert {"+ [<cyd>, <memberOf>, <lab>]", "+ [<Student>, rdfs:subClassOf, <Agent>]"} <= {
        *str(tx.changes).splitlines()
    }
    again = co.KnowledgeBase.open(path)
    assert again.count("[?x, a, <Agent>]") == 3
    assert (
        again.explain("[<cyd>, a, <Agent>]").height
        == co.KnowledgeBase.open(path).explain("[<bob>, a, <Agent>]").height
    )
    assert not verify_store(path).problems
    assert co.KnowledgeBase.open(path, at_version=1).count("[?x, a, <Agent>]") == 0


def test_rules_that_come_after_an_empty_program(tmp_path: Path) -> None:
    """What is pre-materialized does not depend on the rules that were there at first."""
    late, early = co.KnowledgeBase(mode="hybrid"), co.KnowledgeBase(RULES["rhodf"], mode="hybrid")
    late.save(tmp_path / "s")
    with late.transaction() as tx:
        tx.add_rules(RULES["rhodf"])
    for kb in (late, early):
        kb.insert("[<a>, rdfs:subClassOf, <b>] . [<b>, rdfs:subClassOf, <c>] . [<x>, a, <a>] .")
    kept = [set(decode(kb.state.reasoner.facts, kb.state.dictionary)) for kb in (late, early)]
    assert kept[0] == kept[1]
    assert verify_store(tmp_path / "s").problems == []


def test_rules_change_the_schema_while_it_is_planned_again() -> None:
    with random_thresholds(904901483):
        check_variable_heads(3619605935)
