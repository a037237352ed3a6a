"""Axioms hold for as long as the program states them, and data for as long as nobody deletes them.

The model keeps the two sets apart; the explicit facts are their union, and what follows from them
is derived by the reference evaluator.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import corollary as co
from corollary.cli.main import main
from corollary.core.tables import decode
from corollary.errors import InvalidInput
from corollary.lang.program import Program
from corollary.lang.reference import materialize as oracle
from corollary.lang.syntax import Atom
from tests.effort import scaled

RULES = Program.parse("q(?x, ?y) :- p(?x, ?y) . q(?x, ?z) :- q(?x, ?y), q(?y, ?z) .")
POOL = tuple(Program.parse(" ".join(f"p({a}, {b}) ." for a in range(4) for b in range(3))).facts)
AXIOMS = POOL[::2]


class Model:
    """A knowledge base beside the data and axioms that it was told."""

    def __init__(self, **options: object) -> None:
        self.data: set[Atom] = set()
        self.axioms: set[Atom] = set(AXIOMS[:3])
        program = RULES.with_axioms(AXIOMS[:3])
        self.kb = co.KnowledgeBase(program, **options)  # type: ignore[arg-type]
        self.check()

    def check(self) -> None:
        explicit = self.data | self.axioms
        assert {*self.kb.program.axioms} == self.axioms
        kept = self.kb.state.reasoner
        assert {*decode(kept.explicit, self.kb.state.dictionary)} == explicit
        expected = oracle(RULES, explicit)
        assert {*decode(kept.facts, self.kb.state.dictionary)} == expected

    def commit(self, random: Random) -> None:
        with self.kb.transaction() as tx:
            for _ in range(random.randrange(4)):
                facts = random.sample(POOL, 2)
                if random.random() < 0.5:
                    tx.insert(facts)
                    self.data |= {*facts}
                else:
                    tx.delete(facts)
                    self.data -= {*facts}
            kind = random.random()
            if kind < 0.3:
                added = random.sample(AXIOMS, 2)
                tx.add_rules(Program.of((), added))
                self.axioms |= {*added}
            elif kind < 0.6 and self.axioms:
                removed = random.sample(sorted(self.axioms, key=repr), 1)
                tx.remove_rules(Program.of((), removed))
                self.axioms -= {*removed}
        self.check()


@pytest.mark.scaled
@pytest.mark.parametrize("algorithm", ["auto", "bf", "dred-c", "fp", "rematerialize"])
def test_streams(algorithm: str) -> None:
    for seed in range(scaled(15)):
        model, random = Model(algorithm=algorithm), Random(seed)
        for _ in range(8):
            model.commit(random)


def test_streams_through_a_store(tmp_path: Path) -> None:
    for seed in range(3):
        model, random, path = Model(), Random(seed), tmp_path / f"{seed}"
        model.kb.save(path)
        for _ in range(6):
            model.kb = co.KnowledgeBase.open(path)
            model.check()
            model.commit(random)


@pytest.mark.parametrize(
    ("rules", "axiom", "equality"),
    [
        ("rdfs", "[rdf:type, rdfs:domain, rdfs:Resource] .", "rules"),
        ("owl-rl", "[owl:Thing, a, owl:Class] .", "rules"),
        ("owl-rl", "[owl:Thing, a, owl:Class] .", "rewrite"),
    ],
)
def test_rule_sets(rules: str, axiom: str, equality: str) -> None:
    kb = co.KnowledgeBase(co.rules(rules), equality=equality)
    before = kb.count()
    for change in ("insert", "delete", "delete"):
        with kb.transaction() as tx:
            getattr(tx, change)(axiom)
        assert kb.count() == before
    if equality == "rewrite":
        return  # such a knowledge base needs the rules of equality
    with kb.transaction() as tx:
        tx.insert(axiom)
        tx.remove_rules(co.rules(rules))
    assert kb.count() == 1
    with kb.transaction() as tx:
        tx.add_rules(co.rules(rules))
    assert kb.count() == before


def test_facts_of_a_text_are_data() -> None:
    """They can be deleted, as if a transaction had inserted them."""
    kb = co.KnowledgeBase("q(?x) :- p(?x) . p(1) . p(2) .")
    with kb.transaction() as tx:
        tx.delete("p(1) .")
    assert kb.facts("q").to_pydict()["arg0"] == ["2"]


def test_unknown_axiom() -> None:
    kb = co.KnowledgeBase("q(?x) :- p(?x) . p(1) .")
    with pytest.raises(InvalidInput) as raised, kb.transaction() as tx:
        tx.remove_rules("p(1) .")
    assert raised.value.code == "E307"
    assert "no axiom p(1)" in raised.value.message


def _facts(path: Path) -> set[Atom]:
    kb = co.KnowledgeBase.open(path)
    return {*decode(kb.state.reasoner.facts, kb.state.dictionary)}


@pytest.mark.parametrize(
    "engine",
    [
        "columnar",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long]),
    ],
)
def test_stores(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Axioms from a file of rules, on both engines: data come and go, then the axioms."""
    rules, data, other = (tmp_path / name for name in ("rules.dl", "data.dl", "other.dl"))
    rules.write_text("q(?x) :- p(?x) . p(1) . p(2) .")
    data.write_text("p(2) . p(3) .")
    other.write_text("p(1) . p(2) .")
    store = tmp_path / "store"

    def run(*arguments: object) -> None:
        assert main([str(argument) for argument in (*arguments, "--engine", engine)]) == 0
        capsys.readouterr()

    def explicit() -> set[int]:
        kb = co.KnowledgeBase.open(store)
        return {int(str(value)) for value in kb.facts("p").to_pydict()["arg0"]}

    run("build", store, data, "--rules", rules)
    assert explicit() == {1, 2, 3}
    run("update", store, "--delete", data)
    assert explicit() == {1, 2}
    run("update", store, "--insert", other)
    run("update", store, "--remove-rules", rules)
    assert explicit() == {1, 2}
    assert len(_facts(store)) == 2
    run("update", store, "--add-rules", rules)
    run("update", store, "--delete", other)
    assert explicit() == {1, 2}
    run("update", store, "--remove-rules", rules)
    assert _facts(store) == set()
