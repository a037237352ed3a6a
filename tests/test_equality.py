"""Equality by representatives is equality by the rules eq-*, before and after every change."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary as co
from corollary.algorithms.constraints import inconsistencies
from corollary.algorithms.seminaive import materialize
from corollary.core.changes import Changes
from corollary.core.connected import components
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.core.tuning import UNLIMITED
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base import KnowledgeBase
from corollary.lang.parser import parse_atom
from corollary.lang.program import Program
from corollary.lang.reference import matched
from corollary.lang.syntax import Atom
from corollary.rdf import rules
from corollary.rdf.classes import Classes
from corollary.rdf.equality import SAME_AS, without_equality
from corollary.testing import thresholds
from tests.effort import first
from tests.engines.spark.inline import inline
from tests.equality import (
    EQUALITY,
    PREFIX,
    REFLEXIVE,
    Kept,
    equality_stream,
    parse,
    replay,
    visible,
)
from tests.rulesets.test_rulesets import _LITERALS, _nodes, ontologies, triple
from tests.streams import Commit, Stream

PREFIXES = parse("p(1) .").prefixes
FUNCTIONAL = "[prp-fp] [?y, owl:sameAs, ?z] :- [?p, a, :F], [?x, ?p, ?y], [?x, ?p, ?z] ."


def commits(text: str) -> list[Commit]:
    """One commit a line: facts and rules with `+` or `-` before each."""
    made = []
    for line in filter(None, map(str.strip, text.splitlines())):
        found: dict[str, list[Program]] = {"+": [], "-": []}
        for part in line.split(" ; "):
            found[part[0]].append(parse(part[1:]))
        facts = {s: frozenset(f for p in found[s] for f in p.facts) for s in "+-"}
        changed = {s: tuple(r for p in found[s] for r in p.rules) for s in "+-"}
        made.append(Commit(facts["+"], facts["-"], changed["+"], changed["-"]))
    return made


def played(start: str, changes: str, *, reflexive: bool = False) -> Kept:
    """A named example: compared with the oracle after every commit."""
    program = parse(EQUALITY + (REFLEXIVE if reflexive else "") + start)
    return replay(Stream(0, program, tuple(commits(changes))), oracle=True)


def same(kept: Kept, *terms: str) -> bool:
    """Whether the terms are in one class."""
    atoms = [parse_atom(f"x({term})", PREFIXES).terms[0] for term in terms]
    ids = kept.engine.dictionary.encode(atoms)  # type: ignore[arg-type]
    return len(np.unique(kept.maintainer.classes.of(ids))) == 1


# -- named examples ------------------------------------------------------------------------------


@pytest.mark.parametrize("reflexive", [False, True])
def test_two_classes_merge_and_split_by_the_equality_between_them(reflexive: bool) -> None:
    start = """
        [:a, owl:sameAs, :b] . [:c, owl:sameAs, :d] .
        [:a, :p, :x] . [:d, :q, :y] . [:x, :r, :b] .
    """
    kept = played(start, "+ [:b, owl:sameAs, :c] .", reflexive=reflexive)
    assert same(kept, ":a", ":b", ":c", ":d")
    bridge = """
        + [:b, owl:sameAs, :c] .
        - [:b, owl:sameAs, :c] .
    """
    kept = played(start, bridge, reflexive=reflexive)
    assert not same(kept, ":a", ":c")
    assert same(kept, ":a", ":b")


def test_a_second_equality_keeps_a_class_together() -> None:
    start = "[:a, owl:sameAs, :b] . [:b, owl:sameAs, :c] . [:c, owl:sameAs, :a] . [:a, :p, :x] ."
    kept = played(start, "- [:a, owl:sameAs, :b] .")
    assert same(kept, ":a", ":b", ":c")
    assert len(kept.maintainer.classes) == 1


def test_an_equality_by_a_functional_property_goes_with_its_support() -> None:
    start = FUNCTIONAL + "[:p, a, :F] . [:x, :p, :a] . [:x, :p, :b] . [:a, :q, :c] ."
    assert same(played(start, ""), ":a", ":b")
    for gone in ("[:p, a, :F] .", "[:x, :p, :b] .", "[:x, :p, :a] .", FUNCTIONAL):
        assert not same(played(start, f"- {gone}"), ":a", ":b")


def test_an_equality_with_two_supports_stays_until_both_are_gone() -> None:
    start = FUNCTIONAL + "[:p, a, :F] . [:x, :p, :a] . [:x, :p, :b] . [:y, :p, :a] . [:y, :p, :b] ."
    assert same(played(start, "- [:x, :p, :b] ."), ":a", ":b")
    both = """
        - [:x, :p, :b] .
        - [:y, :p, :a] .
    """
    assert not same(played(start, both), ":a", ":b")


def test_an_equality_that_supports_itself_goes() -> None:
    """With a = b, [:a, :p, :a] and [:a, :p, :b] follow from each other: that is no reason."""
    start = (
        FUNCTIONAL
        + """
        [:p, a, :F] . [:a, :p, :a] . [:b, :p, :b] . [:a, owl:sameAs, :b] .
    """
    )
    assert not same(played(start, "- [:a, owl:sameAs, :b] ."), ":a", ":b")


def test_merges_that_make_others_follow_and_all_split_again() -> None:
    start = (
        FUNCTIONAL
        + "[:p, a, :F] ."
        + "".join(f"[:a{n}, :p, :a{n + 1}] . [:b{n}, :p, :b{n + 1}] ." for n in range(4))
    )
    assert same(played(start, "+ [:a0, owl:sameAs, :b0] ."), ":a4", ":b4")
    kept = played(start + "[:a0, owl:sameAs, :b0] .", "- [:a0, owl:sameAs, :b0] .")
    assert len(kept.maintainer.classes) == 0
    kept = played(start + "[:a0, owl:sameAs, :b0] .", "- [:b2, :p, :b3] .")
    assert same(kept, ":a2", ":b2")
    assert not same(kept, ":a3", ":b3")


def test_what_splits_may_merge_again_in_the_same_update() -> None:
    start = "[:a, owl:sameAs, :b] . [:b, owl:sameAs, :c] . [:a, :p, :x] . [:c, :q, :y] ."
    kept = played(start, "- [:a, owl:sameAs, :b] . ; + [:c, owl:sameAs, :a] .")
    assert same(kept, ":a", ":b", ":c")
    derived = FUNCTIONAL + "[:p, a, :F] . [:x, :p, :a] . [:x, :p, :b] . [:y, :p, :b] ."
    kept = played(derived, "- [:x, :p, :b] . ; + [:y, :p, :a] .")
    assert same(kept, ":a", ":b")


def test_equal_properties_and_classes() -> None:
    start = """
        [?x, :r, ?y] :- [?x, :q, ?y] . [?x, a, :E] :- [?x, a, :D] .
        [:p, owl:sameAs, :q] . [:C, owl:sameAs, :D] . [:x, :p, :y] . [:x, a, :C] .
    """
    kept = played(start, "")
    assert parse("[:x, :r, :y] . [:x, a, :E] .").facts[0] in kept.facts
    played(start, "- [:p, owl:sameAs, :q] .\n- [:C, owl:sameAs, :D] .\n+ [:q, owl:sameAs, :r] .")


def test_terms_of_rdf_and_owl_that_are_equal_to_others() -> None:
    facts = "[:x, :p, :C] . [:y, a, :D] . [:z, :q, :w] . [:w, :r, 1] . [:C, :r, 2] ."
    for start in (
        "[:p, owl:sameAs, rdf:type] .",
        "[:q, owl:sameAs, owl:sameAs] .",
        "[:p, owl:sameAs, rdf:type] . [:q, owl:sameAs, owl:sameAs] . [:p, owl:sameAs, :q] .",
    ):
        split = "\n".join(f"- {fact} ." for fact in start.split(" . "))
        played(facts + start, split.replace(" . .", " ."))


def test_literals_are_terms_like_others() -> None:
    start = """
        [?x, a, :Number] :- [?y, :p, ?x], FILTER(?x > 3) .
        [?x, a, :Literal] :- [?y, :p, ?x], FILTER(isLiteral(?x)) .
        [?x, :other, ?y] :- [?z, :p, ?x], [?z, :p, ?y], FILTER(!sameTerm(?x, ?y)) .
        [:x, :p, :a] . [:y, :p, 1] . [:y, :p, "5"^^xsd:integer] .
    """
    played(start, "+ [:a, owl:sameAs, 4] .\n+ [1, owl:sameAs, :a] .\n- [:a, owl:sameAs, 4] .")


def test_plain_relations_are_rewritten_too() -> None:
    start = "near(?x, ?y) :- [?x, :p, ?y] . near(:a, :c) . [:b, :p, :d] ."
    kept = played(start, "+ [:a, owl:sameAs, :b] .")
    assert len(kept.decode(kept.maintainer.match(parse_atom("near(?x, :c)", PREFIXES)))) == 2


# -- random streams ------------------------------------------------------------------------------


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_oracle_of_random_streams(seed: int) -> None:
    replay(equality_stream(seed, commits=3), oracle=True)


@pytest.mark.parametrize("ratio", [0, 4, UNLIMITED])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_random_streams(ratio: int, seed: int) -> None:
    """Whether only the equalities that may be lost are found again, or all derived ones."""
    with thresholds(lost_equalities_ratio=ratio):
        replay(equality_stream(seed)).maintainer.verify()


@pytest.mark.parametrize(("seed", "small"), first(1, [(seed, seed % 4) for seed in range(12)]))
def test_random_streams_in_tasks(seed: int, small: int) -> None:
    """On the Spark engine, where only facts that mention equal terms are on the driver."""
    replay(equality_stream(seed), partial(inline, small=10 * small))


@pytest.mark.parametrize("algorithm", ["bf", "dred", "bf-c", "dred-c", "fp", "rematerialize"])
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_algorithms_of_random_streams(algorithm: str, seed: int) -> None:
    replay(equality_stream(seed), algorithm=algorithm)


_TERMS = st.one_of(_nodes, _nodes, st.sampled_from(_LITERALS))
_EQUALITIES = st.sets(st.builds(triple, _TERMS, st.just(SAME_AS), _TERMS), max_size=2)
_GRAPHS = st.builds(lambda one, two: one | two, ontologies(), _EQUALITIES)


@settings(max_examples=15)
@given(graphs=st.lists(_GRAPHS, min_size=2, max_size=3))
def test_random_ontologies_of_owl_rl(graphs: list[set[Atom]]) -> None:
    program = rules("owl-rl")
    kept = Kept(program | Program.of((), graphs[0]))
    known = materialized(program, graphs[0])
    assert kept.facts == known
    for before, after in pairwise(graphs):
        changes = kept.play(Commit(frozenset(after - before), frozenset(before - after)))
        found = materialized(program, after)
        assert kept.facts == found
        assert kept.decode(changes.inserted) == found - known
        assert kept.decode(changes.deleted) == known - found
        known = found


@settings(max_examples=15)
@given(graph=_GRAPHS)
def test_the_same_constraints_are_contradicted(graph: set[Atom]) -> None:
    program, engine = rules("owl-rl"), ColumnarEngine(Dictionary())
    explicit = engine.facts(encode([*program.facts, *graph], engine.dictionary))
    done = materialize(program.without_facts(), explicit, engine)
    kept = Kept(program | Program.of((), graph))
    inner = kept.maintainer.inner
    found = inconsistencies(inner.program, inner.all_facts, kept.engine)
    wanted = inconsistencies(program, done.facts, engine)
    assert {one.rule.name for one in found} == {one.rule.name for one in wanted}
    known = {*decode(done.facts, engine.dictionary)}
    for one in kept.maintainer.inconsistencies(examples=None):
        assert one.rule in program.constraints
        assert len(one.examples) == one.count
        assert all(fact in known for way in one.examples for fact in way.facts), one.rule


def test_contradictions_of_equal_literals_have_proofs() -> None:
    """Constraints whose filters test members of a class are shown as they are written."""
    shown = {}
    for equality in ("rules", "rewrite"):
        kb = co.KnowledgeBase(rules("owl-rl"), equality=equality)
        kb.insert("""
            @prefix : <urn:x:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
            :p a owl:FunctionalProperty . :i :p "a" , "x"@en .
        """)
        found = kb.inconsistencies()
        assert all(one.proofs for one in found)
        shown[equality] = {one.to_json()["constraint"] for one in found}
    assert shown["rewrite"] == shown["rules"] != set()


def materialized(program: Program, graph: set[Atom]) -> set[Atom]:
    engine = ColumnarEngine(Dictionary())
    explicit = engine.facts(encode([*program.facts, *graph], engine.dictionary))
    done = materialize(program.without_facts(), explicit, engine)
    return visible(decode(done.facts, engine.dictionary))


# -- answers -------------------------------------------------------------------------------------


def test_patterns_are_expanded() -> None:
    start = """
        [:a, owl:sameAs, :b] . [:p, owl:sameAs, :q] . [:C, owl:sameAs, :D] .
        [:a, :p, :x] . [:x, :p, :x] . [:b, a, :C] . [:a, :p, :b] .
    """
    kept = Kept(parse(EQUALITY + REFLEXIVE + start))
    for text in (
        "[?x, ?p, ?y]", "[:b, ?p, ?y]", "[?x, :q, ?y]", "[?x, ?p, ?x]", "[?x, a, ?c]",
        "[?x, a, :D]", "[:a, a, :D]", "[?x, :p, :b]", "[:b, owl:sameAs, ?x]", "[?x, ?x, ?y]",
        "[:x, :nothing, ?y]", "[?x, ?y, ?y]",
    ):  # fmt: skip
        atom = parse_atom(text, PREFIXES)
        wanted = {fact for fact in kept.facts if matched(atom, fact, {}) is not None}
        assert kept.decode(kept.maintainer.match(atom)) == wanted, text
        assert kept.maintainer.count(atom) == len(wanted)


def test_explanations_speak_of_the_terms_themselves() -> None:
    kept = Kept(parse(EQUALITY + "[:a, owl:sameAs, :b] . [:c, :p, :a] ."))
    text = str(kept.maintainer.explain(parse_atom("[:c, :p, :b]", PREFIXES)))
    assert "eq-rep-o" in text
    assert text.count("explicit") == 2
    with pytest.raises(InvalidInput, match="not in the materialization"):
        kept.maintainer.explain(parse_atom("[:c, :p, :d]", PREFIXES))


def test_explanations_through_auxiliary_relations() -> None:
    """Rules of owl-rl read `_same`, whose facts are derived but no results."""
    kept = Kept(rules("owl-rl") | parse("[:a, owl:sameAs, :b] . [:c, :p, :a] ."))
    text = str(kept.maintainer.explain(parse_atom("[:c, :p, :b]", PREFIXES)))
    assert "eq-rep-o" in text
    assert "_same" in text
    assert text.count("explicit") == 2


def test_classes_of_explicit_equalities_are_not_touched_by_other_deletions() -> None:
    facts = "[:a, owl:sameAs, :b] . [:a, :p, :x] . [:b, :q, :y] . [:z, :p, :x] ."
    kept = Kept(parse(EQUALITY + "[?x, :r, ?y] :- [?x, :p, ?y] ." + facts))
    before = kept.maintainer.classes
    kept.play(commits("- [:z, :p, :x] .")[0])
    assert kept.maintainer.classes is before


def test_derived_classes_that_a_deletion_cannot_reach_stay() -> None:
    start = (
        FUNCTIONAL
        + "[:p, a, :F] ."
        + "".join(f"[:x{n}, :p, :a{n}] . [:x{n}, :p, :b{n}] ." for n in range(30))
    )
    kept = Kept(parse(EQUALITY + start))
    changes = kept.play(commits("- [:x7, :p, :a7] .")[0])
    assert len(kept.maintainer.classes) == 29
    assert changes.statistics is not None
    assert sum(changes.statistics.derivations.values()) < 40
    kept.maintainer.verify()


def test_a_knowledge_base_by_representatives() -> None:
    text = (
        PREFIX + "[:a, owl:sameAs, :b] . [:c, :p, :a] . [:C, rdfs:subClassOf, :D] . [:b, a, :C] ."
    )
    both = [
        KnowledgeBase(rules("owl-rl") | Program.parse(text), equality=equality)
        for equality in ("rules", "rewrite")
    ]
    for kb in both:
        with kb.transaction() as tx:
            tx.delete(PREFIX + "[:a, owl:sameAs, :b] .")
            tx.insert(PREFIX + "[:c, owl:sameAs, :d] . [:p, owl:sameAs, :q] .")
    one, two = both
    assert one.count() == two.count()
    for pattern in ("[?x, ?p, ?y]", "[:d, ?p, ?y]", "[?x, a, :D]", "[?x, owl:sameAs, :d]"):
        tables = [kb.facts(pattern).to_pylist() for kb in both]
        assert sorted(tables[0], key=repr) == sorted(tables[1], key=repr)
    with pytest.raises(InvalidInput, match="unknown equality"):
        KnowledgeBase(equality="magic")


# -- mistakes ------------------------------------------------------------------------------------


def test_programs_that_are_refused() -> None:
    for text, reason in (
        ("[?x, :p, ?y] :- [?x, :q, ?y] .", "eq-sym, eq-trans"),
        (EQUALITY + "[?x, :p, ?y] :- near(?x, ?y), NOT node(?x) .", "NOT, AGGREGATE or BIND"),
    ):
        with pytest.raises(InvalidInput, match=reason) as caught:
            Kept(parse(text))
        assert caught.value.code == "E312"


def test_a_refused_update_changes_nothing() -> None:
    kept = Kept(parse(EQUALITY + "[:a, owl:sameAs, :b] . [:a, :p, :c] ."))
    before = kept.facts
    with pytest.raises(InvalidInput):
        kept.play(commits("- [?y, owl:sameAs, ?x] :- [?x, owl:sameAs, ?y] . ; + [:c, :p, :d] .")[0])
    assert kept.facts == before
    kept.maintainer.verify()


def test_verify_finds_what_is_wrong() -> None:
    kept = Kept(parse(EQUALITY + "[:a, :p, :b] ."))
    kept.maintainer.inner.update(Changes(
        kept.encode(parse("[:c, :p, :d] .").facts), kept.encode(())
    ))  # fmt: skip
    with pytest.raises(OperationFailed):
        kept.maintainer.verify()


# -- classes -------------------------------------------------------------------------------------


@given(pairs=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_classes_are_components(pairs: list[tuple[int, int]]) -> None:
    array = np.array(pairs, np.uint32).reshape(-1, 2)
    classes = Classes()
    for part in np.array_split(array, 3):
        classes = classes.merged(part, 30)
    nodes, label = components(array)
    for number, one in enumerate(nodes.tolist()):
        equal = nodes[label == label[number]].tolist()
        assert sorted(classes.members_of(classes.of_one(one))) == sorted(equal)
    assert classes.of_one(30) == 30
    assert len(classes.pairs()) == sum(
        len(classes.members_of(r)) - 1 for r in classes.nontrivial.tolist()
    )
    assert len(classes.without(classes.nontrivial)) == 0


def test_the_rules_of_equality_are_known_in_any_order() -> None:
    """Those of owl-rl, those of the standard, and bodies the other way round."""
    for text in (EQUALITY, EQUALITY.replace("[?s, owl:sameAs, ?t], [?s, ?p, ?o]",
                                            "[?s, ?p, ?o], [?s, owl:sameAs, ?t]")):  # fmt: skip
        assert without_equality(parse(text)) == ()
    left = {rule.name for rule in without_equality(rules("owl-rl"))}
    assert left.isdisjoint({"eq-sym", "eq-trans", "eq-rep-p", "eq-rep-o"})
    assert {"eq-ref", "eq-diff1", "prp-fp"} <= left
