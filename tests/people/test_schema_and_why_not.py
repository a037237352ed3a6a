"""`corollary schema`, `diff --schema` and `explain --why-not`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary import CorollaryError, KnowledgeBase
from corollary.knowledge_base.schema_changes import schema_changes
from corollary.lang.syntax import Atom, Negation, Variable, is_auxiliary
from tests.cli.calls import call

PREFIX = "@prefix : <urn:> . "


@pytest.fixture
def store(tmp_path: Path) -> Path:
    kb = KnowledgeBase("owl-rl")
    kb.insert(f"{PREFIX} :Chair rdfs:subClassOf :Person . :Employee rdfs:subClassOf :Person .")
    kb.insert(f"{PREFIX} :ann a :Chair .")
    kb.save(tmp_path / "people.store")
    kb.insert(f"{PREFIX} :Chair rdfs:subClassOf :Employee . :Boss rdfs:subClassOf :Chair .")
    kb.delete(f"{PREFIX} :Employee rdfs:subClassOf :Person .")
    return tmp_path / "people.store"


def test_schema_of_a_store(store: Path) -> None:
    found = call("schema", store, "--at-version", "1", "--quiet")
    assert found.stdout.splitlines()[:4] == [
        "classes",
        "  :Person   1, 1 derived",
        "    :Chair   1",
        "    :Employee   0",
    ]
    report = json.loads(call("schema", store, "--json", "--quiet").stdout)
    assert {one["term"] for one in report["classes"]} >= {"<urn:Chair>", "<urn:Boss>"}


def test_changes_of_the_schema_in_sentences(store: Path) -> None:
    done = call("diff", store, "1", "--schema", "--quiet")
    assert done.stdout.splitlines() == [
        ":Boss is a new class, below :Chair",
        ":Chair is now below :Employee",
        ":Employee is no longer below :Person",
    ]
    report = json.loads(call("diff", store, "1", "2", "--schema", "--json").stdout)
    assert ":Chair is now below :Employee" in report["changes"]
    assert call("diff", store, "2", "2", "--schema").stdout == "the schema is the same\n"
    assert call("diff", store, "1", "--schema", "--each").returncode == 2


def test_classes_that_come_to_mean_the_same() -> None:
    kb = KnowledgeBase("owl-rl")
    kb.insert(f"{PREFIX} :A rdfs:subClassOf :B .")
    before = kb.schema()
    kb.insert(f"{PREFIX} :B rdfs:subClassOf :A .")
    after = kb.schema()
    assert schema_changes(before, after) == [":A and :B now mean the same"]
    assert ":A and :B no longer mean the same" in schema_changes(after, before)


# -- why not ---------------------------------------------------------------------------------------


def test_why_not_on_the_command_line(store: Path) -> None:
    done = call("explain", store, "[:bob, a, :Person]", "--why-not", "--quiet")
    assert done.stdout.splitlines()[:4] == [
        "[:bob, a, :Person] is not a fact; it would follow",
        "  by [cax-sco]",
        "    ✓ [:Chair, rdfs:subClassOf, :Person]",
        "    ✗ [:bob, a, :Chair]",
    ]
    found = json.loads(call("explain", store, ":bob a :Person", "--why-not", "--json").stdout)
    assert found["ways"][0]["missing"] == ["[:bob, a, :Chair]"]
    assert call("explain", store, ":ann a :Person", "--why-not").returncode == 2


def test_auxiliary_premises_are_shown_by_what_they_lack() -> None:
    kb = KnowledgeBase("owl-rl")
    kb.insert(f"{PREFIX} :C owl:intersectionOf (:A :B) . :x a :A .")
    way = kb.why_not(":x a :C").ways[0]
    assert way.rule.name == "cls-int1"
    assert [str(kb.state.pattern(one)) for one in way.missing] == [
        str(kb.state.pattern("[:x, a, :B]"))
    ]
    for one in kb.why_not(":x a :C").ways:
        for part in (*one.holds, *one.missing):
            atom = part.atom if isinstance(part, Negation) else part
            assert not is_auxiliary(atom.relation)


def test_negated_and_filtered_premises() -> None:
    kb = KnowledgeBase(
        "p(?x) :- q(?x), NOT r(?x) . q(1) . r(1) ."
        " s(?x) :- q(?x), FILTER(isIRI(?x)) . t(?x) :- u(?x), v(?x, ?y) . u(1) ."
    )
    [way] = kb.why_not("p(1)").ways
    assert [type(one) for one in way.missing] == [Negation]
    assert kb.why_not("s(1)").ways == ()
    assert "no rule could derive it" in str(kb.why_not("s(1)"))
    [way] = kb.why_not("t(1)").ways
    [missing] = way.missing
    assert isinstance(missing, Atom)
    assert isinstance(missing.terms[1], Variable)
    for mistake, code in (("u(1)", "E360"), ("u(?x)", "E208"), ("none(1)", "E344")):
        with pytest.raises(CorollaryError) as caught:
            kb.why_not(mistake)
        assert caught.value.code == code


EDGES = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)


@settings(max_examples=15)
@given(edges=EDGES, goal=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_what_is_missing_suffices(edges: set[tuple[int, int]], goal: tuple[int, int]) -> None:
    """Inserting what the nearest way lacks derives the fact."""
    kb = KnowledgeBase(
        "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    )
    kb.insert(edges or [(7, 7)], relation="edge")
    fact = f"path({goal[0]}, {goal[1]})"
    if fact in kb:
        return
    for way in kb.why_not(fact).ways:
        if any(isinstance(term, Variable) for one in way.missing for term in one.terms):  # type: ignore[union-attr]
            continue
        for one in way.holds:
            assert one in kb
        changes = kb.insert(list(way.missing))
        assert fact in kb
        kb.delete(list(way.missing))
        assert len(changes)


def test_why_not_with_computed_values() -> None:
    """A value that another fact would give is missing; one that a filter rejects is not."""
    kb = KnowledgeBase(
        "total(?x, ?t) :- price(?x, ?p), BIND(?p * 2 AS ?t), FILTER(STRLEN(STR(?t)) < 3) ."
        " price(a, 3) . price(b, 70) ."
    )
    assert '✗ price("a", ?p)' in str(kb.why_not("total(a, 7)"))
    assert "no rule could derive it" in str(kb.why_not("total(b, 140)"))


@pytest.mark.parametrize(
    ("fact", "kept"),
    [
        ("least(a, 5)", 'least("a", 4)'),
        ("least(a, 4.0)", 'least("a", 4)'),  # of equal values, one form is kept
        ("greatest(a, 4)", 'greatest("a", 5)'),
        ("[<urn:i>, <urn:p>, 7]", "[<urn:i>, <urn:p>, 3]"),
        ("least(a, 3)", None),  # it would be better, if anything derived it
        ("least(b, 5)", None),
        ("least(a, z)", None),
    ],
)
def test_what_is_not_the_best_of_its_group(fact: str, kept: str | None) -> None:
    kb = KnowledgeBase("""
        least(?x, MIN(?k)) :- w(?x, ?k) . greatest(?x, MAX(?k)) :- w(?x, ?k) .
        [?x, <urn:p>, MIN(?k)] :- w(?x, ?k) . w(a, 5) . w(a, 4) . w(a, 4.0) . w(<urn:i>, 3) .
    """)
    found = kb.why_not(fact)
    assert found.to_json().get("instead") == kept
    if kept is None:
        assert "it would follow" in str(found)
    else:
        assert str(found).endswith(f"is not a fact, because {kept} is the best of its group")
        assert not found.ways
