"""Reverts: versions undone and brought back, with rules and axioms, by updates."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import corollary as co
from corollary import KnowledgeBase
from corollary.core.tables import decode
from corollary.errors import InvalidInput, InvalidProgram
from corollary.lang.program import Program
from corollary.lang.reference import materialize
from corollary.lang.syntax import IRI, TRIPLE, Atom, Rule
from tests.cli.calls import call
from tests.effort import first
from tests.test_stored_streams import visible, writable

PREFIX = "@prefix : <http://e/> .\n"
State = tuple[set[Atom], set[Rule]]


def state_of(kb: KnowledgeBase) -> State:
    return set(decode(kb.state.reasoner.explicit, kb.state.dictionary)), {*kb.program.rules}


def is_fact(atom: Atom) -> bool:
    """Whether users may state the fact: the predicate of a triple is an IRI."""
    return atom.relation != TRIPLE or isinstance(atom.terms[1], IRI)


def check(kb: KnowledgeBase, path: Path) -> None:
    """The store, reopened, holds the consequences of its explicit facts."""
    again = KnowledgeBase.open(path)
    assert (state_of(again), again.version) == (state_of(kb), kb.version)
    facts = set(decode(again.state.reasoner.facts, again.state.dictionary))
    assert facts == visible(materialize(Program.of(again.program.rules, state_of(again)[0])))


@pytest.mark.parametrize("number", first(4, range(20)))
def test_streams_with_reverts(number: int, tmp_path: Path) -> None:
    random, one = Random(number), writable(number)
    path = tmp_path / "store"
    kb = KnowledgeBase(one.program)
    kb.save(path)
    states = {kb.version: state_of(kb)}
    for commit in one.commits:
        # After a revert, rules of the stream may be gone, or fit the others no more.
        with suppress(InvalidProgram), kb.transaction() as tx:
            tx.insert([atom for atom in commit.inserted if is_fact(atom)])
            tx.delete([atom for atom in commit.deleted if is_fact(atom)])
            tx.remove_rules([rule for rule in commit.removed if rule in kb.program])
            tx.add_rules(list(commit.added))
        for version in range(max(states) + 1, kb.version + 1):  # one commit may make several
            states[version] = state_of(KnowledgeBase.open(path, at_version=version))
        if random.random() < 0.5:
            kb = KnowledgeBase.open(path)
        version = random.choice(sorted(states))
        if random.random() < 0.5:
            kb.revert(to=version)
            assert state_of(kb) == states[version]
        else:
            facts, rules = state_of(kb)
            (old, old_rules), (new, new_rules) = (
                states.get(version - 1, (set(), set())),
                states[version],
            )
            expected = (facts - (new - old)) | (old - new)
            expected_rules = (rules - (new_rules - old_rules)) | (old_rules - new_rules)
            try:
                kb.revert(version)
            except InvalidProgram:  # together with later rules, they are not stratified
                assert state_of(kb) == (facts, rules)
            else:
                assert state_of(kb) == (expected, expected_rules)
        for version in range(max(states) + 1, kb.version + 1):
            states[version] = state_of(KnowledgeBase.open(path, at_version=version))
        check(kb, path)


def people(path: Path) -> KnowledgeBase:
    """A store with a rule set; its second version adds a person, its third an axiom and a rule."""
    kb = KnowledgeBase(co.rules("rdfs"))
    kb.save(path)
    with kb.transaction() as tx:
        tx.insert(PREFIX + ":ann a :Student ; :age 21 .")
    with kb.transaction() as tx:
        tx.add_rules(
            PREFIX + "[:Student, rdfs:subClassOf, :Person] . [?x, :adult, true] :- [?x, :age, ?n] ."
        )
        tx.insert(PREFIX + ":bob a :Student .")
    return kb


def test_axioms_and_rules(tmp_path: Path) -> None:
    kb = people(tmp_path / "s")
    program = kb.program
    assert kb.count("[?x, a, <http://e/Person>]") == 2
    changes = kb.revert(3)
    assert len(changes.removed_rules) == 1
    assert kb.count("[?x, a, <http://e/Person>]") == kb.count("[?x, <http://e/adult>, ?y]") == 0
    assert kb.count("[<http://e/bob>, a, <http://e/Student>]") == 0
    kb.revert(to=3)
    assert kb.program == program
    assert kb.count("[?x, a, <http://e/Person>]") == 2
    kb.revert(4)  # the revert of a revert: the rules are there already
    assert kb.program == program
    kb.revert(to=0)
    assert (kb.count(), len(kb.program.rules)) == (0, 0)
    assert [commit.message for commit in kb.log()][:2] == ["back to version 0", "revert version 4"]


def test_data_that_also_state_an_axiom(tmp_path: Path) -> None:
    kb = people(tmp_path / "s")
    axiom = PREFIX + ":Student <http://www.w3.org/2000/01/rdf-schema#subClassOf> :Person ."
    with kb.transaction() as tx:
        tx.insert(axiom)
    kb.revert(3)  # the data state it as well
    assert kb.count("[?x, a, <http://e/Person>]") == 1
    kb.revert(to=3)
    with kb.transaction() as tx:
        tx.remove_rules(PREFIX + "[:Student, rdfs:subClassOf, :Person] .")
    assert kb.count("[?x, a, <http://e/Person>]") == 0


def test_what_cannot_be_reverted(tmp_path: Path) -> None:
    kb = people(tmp_path / "s")
    for version, to in ((0, None), (4, None), (None, 4), (None, None), (1, 1)):
        with pytest.raises(InvalidInput) as caught:
            kb.revert(version, to=to)
        assert caught.value.code == "E514"
    with pytest.raises(InvalidInput) as caught:
        KnowledgeBase().revert(1)
    assert caught.value.code == "E500"
    assert kb.version == 3


def test_the_command_line(tmp_path: Path) -> None:
    people(tmp_path / "s")
    done = call("revert", "s", "3", "--dry-run", "--json", folder=tmp_path)
    planned = json.loads(done.stdout)
    assert planned["version"] == 3
    done = call("revert", "s", "3", "--json", folder=tmp_path)
    report = json.loads(done.stdout)
    assert (report["version"], report["deleted"]) == (4, planned["deleted"])
    done = call("revert", "s", "--to", "3", "--changes", "-", "--quiet", folder=tmp_path)
    assert "+ [<http://e/bob>, a, <http://e/Person>]   derived" in done.stdout.replace(
        ":bob", "<http://e/bob>"
    ).replace(":Person", "<http://e/Person>")
    assert not call("verify", "s", folder=tmp_path).returncode
    for words in (["revert", "s"], ["revert", "s", "1", "--to", "1"]):
        done = call(*words, folder=tmp_path)
        assert (done.returncode, "E313" in done.stderr) == (2, True)
    done = call("revert", "s", "9", folder=tmp_path)
    assert (done.returncode, "E514" in done.stderr) == (2, True)
