"""Answers by backward chaining are those of the materialization, for any program and after updates.

The examples of Urbani, Piro, van Harmelen, Bal: Hybrid Reasoning on OWL RL, Semantic Web 5, 2014.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary as co
from corollary.algorithms.hybrid import Answer, Hybrid
from corollary.algorithms.hybrid_cleanup import candidates, duplicates
from corollary.algorithms.hybrid_goals import Patterns
from corollary.algorithms.hybrid_tree import grow
from corollary.algorithms.reasoner import Options
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.errors import InvalidInput
from corollary.lang import reference
from corollary.lang.parser import parse_atom
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Term, Variable
from corollary.reasoning.hybrid import schema_patterns
from corollary.testing import thresholds
from tests import strategies
from tests.algorithms.replay import states
from tests.engines.conformance import MakeEngine
from tests.engines.factories import ENGINES, marks
from tests.streams import Stream, stream

SEEDS = st.integers(0, 2**32 - 1)


def atom(text: str) -> Atom:
    return parse_atom(text, {}, "")


def matches(pattern: Atom, fact: Atom) -> bool:
    """Whether a fact matches, decided without any code of ours."""
    values: dict[Term, Term] = {}
    return pattern.relation == fact.relation and all(
        (values.setdefault(mine, its) if isinstance(mine, Variable) else mine) == its
        for mine, its in zip(pattern.terms, fact.terms, strict=True)
    )


class Asked:
    """A hybrid that speaks in atoms."""

    def __init__(
        self,
        program: Program,
        patterns: Iterable[Atom] = (),
        make: MakeEngine = ENGINES["columnar"],
        *,
        coarse: bool = False,
    ) -> None:
        self.engine = make(Dictionary())
        self.hybrid: Hybrid[Any] = Hybrid(
            program.without_facts(),
            self.encode(program.facts),
            self.engine,
            Options(coarse=coarse),
            patterns=patterns,
        )

    def encode(self, atoms: Iterable[Atom]) -> Any:
        return self.engine.facts(encode(atoms, self.engine.dictionary))

    def answer(self, query: Atom) -> set[Atom]:
        return set(decode(self.hybrid.answer(query).facts, self.engine.dictionary))

    def check(self, queries: Iterable[Atom], facts: Iterable[Atom]) -> None:
        known = set(facts)
        for query in queries:
            expected = {fact for fact in known if matches(query, fact)}
            assert self.answer(query) == expected, Printer().atom(query)


@settings(max_examples=120)
@given(
    strategies.programs(),
    st.lists(strategies.atoms(strategies.RELATIONS), min_size=1, max_size=4),
    st.lists(strategies.atoms(strategies.RELATIONS), max_size=3),
)
def test_oracle_random_queries(program: Program, queries: list[Atom], patterns: list[Atom]) -> None:
    """Negation, aggregates, filters, variable properties; whatever is pre-materialized."""
    asked = Asked(program, patterns)
    asked.check([*queries, *patterns], reference.materialize(program))


@settings(max_examples=40)
@given(
    st.sampled_from(["columnar", "inline", "inline-rounds"]),
    strategies.programs(),
    st.lists(strategies.atoms(strategies.RELATIONS), min_size=1, max_size=3),
    st.lists(strategies.atoms(strategies.RELATIONS), max_size=2),
)
def test_oracle_from_what_is_asked_for(
    engine: str, program: Program, queries: list[Atom], patterns: list[Atom]
) -> None:
    """As Spark does it: few strata, and rules applied to the values that are asked for."""
    asked = Asked(program, patterns, ENGINES[engine], coarse=True)
    asked.check([*queries, *patterns], reference.materialize(program))


@settings(max_examples=60)
@given(
    st.sampled_from([("columnar", False), ("columnar", True), ("inline", True)]),
    strategies.programs(aggregation=False),
    strategies.atoms(strategies.RELATIONS),
    st.data(),
)
def test_oracle_admissible_values(
    how: tuple[str, bool], program: Program, query: Atom, data: st.DataObject
) -> None:
    asked = Asked(program, make=ENGINES[how[0]], coarse=how[1])
    dictionary = asked.engine.dictionary
    facts = reference.materialize(program)
    everything = sorted({t for fact in facts for t in fact.constants()}, key=repr)
    places = [at for at, term in enumerate(query.terms) if isinstance(term, Variable)]
    if not everything or not places:
        return
    sets = {
        place: data.draw(st.lists(st.sampled_from(everything), max_size=4))
        for place in data.draw(st.lists(st.sampled_from(places), min_size=1, unique=True))
    }
    ids = {place: dictionary.encode(terms) for place, terms in sets.items()}
    found = asked.hybrid.answer(query, ids).facts
    assert set(decode(found, dictionary)) == {
        fact
        for fact in facts
        if matches(query, fact) and all(fact.terms[at] in terms for at, terms in sets.items())
    }


def replay(one: Stream, make: MakeEngine = ENGINES["columnar"]) -> None:
    """Ask for some facts after every commit; other patterns are kept by every stream."""
    random = Random(one.seed)
    found = states(one)
    everything = sorted({fact for state in found for fact in state.facts}, key=repr)
    if not everything:
        return

    def query() -> Atom:
        fact = random.choice(everything)
        terms = (
            term if random.random() < 0.4 else random.choice((Variable("x"), Variable(f"v{at}")))
            for at, term in enumerate(fact.terms)
        )
        return Atom(fact.relation, tuple(terms))

    asked = Asked(one.program, [query() for _ in range(random.randrange(3))], make)
    asked.check([query() for _ in range(3)], found[0].facts)
    for commit, state in zip(one.commits, found[1:], strict=True):
        asked.hybrid.update(
            Changes(
                asked.encode(commit.inserted),
                asked.encode(commit.deleted),
                commit.added,
                commit.removed,
            )
        )
        asked.check([query() for _ in range(4)], state.facts)
        kept = set(decode(asked.hybrid.facts, asked.engine.dictionary))
        assert state.explicit <= kept <= state.facts
        for pattern in asked.hybrid.patterns:
            assert {f for f in state.facts if matches(pattern, f)} <= kept


@settings(max_examples=30)
@given(SEEDS)
def test_oracle_streams(seed: int) -> None:
    """Changes of facts and rules."""
    replay(stream(seed))


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=marks(name, jobs=pytest.mark.long))
        for name in ENGINES
        if name != "columnar"
    ],
)
def test_oracle_streams_on_spark(engine: str) -> None:
    replay(stream(5, commits=2), ENGINES[engine])


def test_a_failed_update_changes_nothing() -> None:
    asked = Asked(Program.parse("b(?x) :- a(?x) . a(1) ."), [atom("b(?x)")])
    state = asked.hybrid.state
    missing = Program.parse("c(?x) :- a(?x) .").rules
    with pytest.raises(InvalidInput):
        asked.hybrid.update(Changes(asked.encode([]), asked.encode([]), (), missing))
    assert asked.hybrid.state is state
    asked.check([atom("b(?x)")], Program.parse("b(1) .").facts)


# -- the paper -----------------------------------------------------------------------------------


def test_example_6() -> None:
    """Types through one subclass axiom, asked for one thing."""
    program = Program.parse("""
        [?x, a, ?y] :- [?z, rdfs:subClassOf, ?y], [?x, a, ?z] .
        [<a>, a, <c>] . [<c>, rdfs:subClassOf, <d>] . [<e>, a, <c>] .
    """)
    asked = Asked(program)
    query = atom("[<a>, a, ?u]")
    assert asked.answer(query) == set(Program.parse("[<a>, a, <c>] . [<a>, a, <d>] .").facts)
    assert asked.hybrid.answer(query).derived == 1, "nothing was derived about <e>"


def test_examples_4_and_7() -> None:
    """Subproperties of subPropertyOf itself: the pre-materialization has all their answers."""
    program = Program.parse("""
        [?a, ?p1, ?b] :- [?p, rdfs:subPropertyOf, ?p1], [?a, ?p, ?b] .
        [?x, rdfs:subPropertyOf, ?y] :- [?x, rdfs:subPropertyOf, ?w], [?w, rdfs:subPropertyOf, ?y] .
        [<below>, rdfs:subPropertyOf, rdfs:subPropertyOf] .
        [<p>, <below>, <q>] . [<q>, rdfs:subPropertyOf, <r>] . [<s>, <p>, <o>] .
    """)
    pattern = atom("[?x, rdfs:subPropertyOf, ?y]")
    asked = Asked(program, [pattern])
    everything = reference.materialize(program)
    kept = set(decode(asked.hybrid.facts, asked.engine.dictionary))
    assert {f for f in everything if matches(pattern, f)} <= kept
    assert Program.parse("[<s>, <r>, <o>] .").facts[0] not in kept
    asked.check([pattern, atom("[<s>, ?p, <o>]"), atom("[?s, <r>, ?o]")], everything)
    # Example 10: the rule for the pattern is a look-up from now on.
    assert [len(rule.body) for rule in asked.hybrid.rules.rules] == [2]


def test_example_9() -> None:
    """A transitive closure, with what must not replace R₀ among the facts."""
    program = Program.parse("""
        r1(?x, ?z) :- r1(?x, ?y), r0(?y, ?z) .
        r1(?x, ?y) :- r0(?x, ?y) .
        r0(a, b) . r0(b, c) . r0(b, b) . r0(c, c) . s(b, b) . s(c, c) .
    """)
    asked = Asked(program, [atom("r1(b, ?z)")])
    asked.check([atom("r1(?x, ?y)"), atom("r1(a, ?y)")], reference.materialize(program))


def _without_equality(program: Program) -> list[Any]:
    return [r for r in program.rules if not (r.name or "").startswith(("eq-", "dt-", "list"))]


def test_section_6_rules_that_become_look_ups() -> None:
    """20 of 48: all of Table 9 of OWL 2 Profiles, and nothing else."""
    rules = _without_equality(co.rules("owl-rl"))
    assert len({rule.name for rule in rules}) == 48
    patterns = Patterns(schema_patterns())
    reduced = {rule.name for rule in rules if patterns.cover(rule.head)}
    assert len(reduced) == 20
    assert reduced == {r.name for r in rules if r.name.startswith("scm-")}


def _duplicates(text: str) -> set[tuple[str | None, str | None]]:
    rules = _without_equality(co.rules("owl-rl"))
    patterns = Patterns(schema_patterns())
    engine = ColumnarEngine(Dictionary())
    facts = engine.facts(encode(Program.parse(text).facts, engine.dictionary))
    names = {"prp-eqp1", "prp-eqp2", "cax-eqc1", "cax-eqc2", "prp-inv1", "prp-inv2", "scm-sco"}
    chosen = [rule for rule in rules if rule.name in {*names, "prp-trp"}]
    found = duplicates(candidates(chosen, patterns), facts, engine)
    return {(one.rule.name, one.of.name) for one in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[<p>, owl:equivalentProperty, <q>] .", set()),
        (
            "[<p>, owl:equivalentProperty, <q>] . [<q>, owl:equivalentProperty, <p>] .",
            {("prp-eqp2", "prp-eqp1")},
        ),
        (
            "[<c>, owl:equivalentClass, <d>] . [<d>, owl:equivalentClass, <c>] .",
            {("cax-eqc2", "cax-eqc1")},
        ),
        ("[<p>, owl:inverseOf, <q>] . [<q>, owl:inverseOf, <p>] .", {("prp-inv2", "prp-inv1")}),
        (
            "[rdfs:subClassOf, a, owl:TransitiveProperty] . [<c>, rdfs:subClassOf, <c>] .",
            {("scm-sco", "prp-trp")},
        ),
        ("[<c>, rdfs:subClassOf, <d>] . [<d>, rdfs:subClassOf, <e>] .", set()),
    ],
)
def test_section_6_1_duplicates(text: str, expected: set[tuple[str, str]]) -> None:
    pairs = {  # which have no facts: one does what the other one does
        frozenset({"prp-eqp1", "prp-eqp2"}): "equivalentProperty",
        frozenset({"cax-eqc1", "cax-eqc2"}): "equivalentClass",
        frozenset({"prp-inv1", "prp-inv2"}): "inverseOf",
        frozenset({"scm-sco", "prp-trp"}): "subClassOf",
    }
    told = {key for key, word in pairs.items() if word in text}
    found = {pair for pair in _duplicates(text) if frozenset(pair) in told}
    assert found == expected


# -- what a query takes --------------------------------------------------------------------------

_CHAIN = """
    path(?x, ?y) :- edge(?x, ?y) .
    path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) .
    other(?x, ?y) :- path(?x, ?y), far(?y) .
"""


def _chain(length: int) -> Program:
    edges = " ".join(f"edge({at}, {at + 1}) ." for at in range(length))
    return Program.parse(f"{_CHAIN} {edges} far(3) .")


def test_only_what_is_asked_for_is_derived() -> None:
    asked = Asked(_chain(50))
    answer: Answer[Any] = asked.hybrid.answer(atom("path(45, ?y)"))
    assert len(answer.facts) == 5
    assert answer.derived == 15
    assert len(asked.hybrid.answer(atom("other(0, ?y)")).facts) == 1


def test_early_failure() -> None:
    """A rule with an atom that has no facts and no rule is not unfolded."""
    program = Program.parse("a(?x) :- b(?x), missing(?x) . a(?x) :- c(?x) . b(1) . c(2) .")
    asked = Asked(program)
    assert [len(rule.body) for rule in asked.hybrid.rules.rules] == [1]
    asked.hybrid.update(
        Changes(asked.encode(Program.parse("missing(1) .").facts), asked.encode([]))
    )
    asked.check([atom("a(?x)")], Program.parse("a(1) . a(2) .").facts)


def test_values_are_passed_sideways() -> None:
    """The smallest atom is looked up first, and the large relation by its values."""
    text = "found(?y) :- big(?x, ?y), few(?x) . big(?x, ?y) :- data(?x, ?y) . few(7) ."
    rows = " ".join(f"data({at}, {at}) ." for at in range(100))
    answer: Answer[Any] = Asked(Program.parse(f"{text} {rows}")).hybrid.answer(atom("found(?y)"))
    assert answer.derived == 2


def test_tree_of_a_query() -> None:
    """Figure 1's shape: a query above itself is not unfolded again; leaves are look-ups."""
    program = Program.parse("""
        [?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .
        [?x, rdfs:subClassOf, ?z] :- [?x, rdfs:subClassOf, ?y], [?y, rdfs:subClassOf, ?z] .
        [<John>, a, <Brother>] . [<Brother>, rdfs:subClassOf, <Person>] .
    """)
    query = atom("[?x, a, <Person>]")
    kept = Asked(program, [atom("[?x, rdfs:subClassOf, ?y]")])
    root, answer, complete = grow(kept.hybrid, query)
    assert complete
    assert len(answer.facts) == 1
    [rule] = root.rules
    assert [part.kind for part in rule.body] == ["pre-materialized", "unfolded"]
    assert [part.kind for part in rule.body[1].rules[0].body] == ["pre-materialized", "again"]
    bare = grow(Asked(program).hybrid, query)[0]
    assert (root.leaves, bare.leaves) == (1, 2)


def test_tree_that_is_cut() -> None:
    """A chain of rules that is deeper than a tree is shown."""
    rules = " ".join(f"r{at}(?x) :- r{at + 1}(?x) ." for at in range(300))
    root, answer, complete = grow(Asked(Program.parse(f"{rules} r300(1) .")).hybrid, atom("r0(?x)"))
    assert len(answer.facts) == 1
    assert not complete
    assert root.kind == "unfolded"


def test_many_kinds_of_queries_do_not_pile_up() -> None:
    rules = " ".join(f"r{at}(?x) :- e(?x) ." for at in range(5))
    asked = Asked(Program.parse(f"{rules} e(1) ."))
    with thresholds(hybrid_plans_limit=2):
        for at in (0, 1, 2, 3, 4, 0):
            assert len(asked.answer(atom(f"r{at}(?x)"))) == 1
    assert len(asked.hybrid._plans) == 2


def _texts(found: Sequence[Atom]) -> list[str]:
    return sorted(Printer().atom(one) for one in found)


def test_terms_that_only_rules_know() -> None:
    asked = Asked(Program.parse("kind(?x, new) :- thing(?x) . thing(1) ."))
    assert _texts(list(asked.answer(atom("kind(1, new)")))) == ['kind(1, "new")']
    assert asked.answer(atom("kind(1, unheard)")) == set()
    none = asked.hybrid.answer(atom("kind(?x, ?y)"), {0: np.zeros(0, np.uint32)})
    assert not len(none.facts)


def test_classes_that_only_predicates_know() -> None:
    """A class has no number of its own until a rule reads it as a term."""
    program = Program.parse("[?y, ?y, ?x] :- [?y, a, ?x] . [<q>, a, <D>] .")
    asked = Asked(program)
    asked.check([atom("[<q>, ?p, <D>]")], reference.materialize(program))
