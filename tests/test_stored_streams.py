"""Random streams of changes through stores: opened again and again, against the oracle.

Every commit is made by a knowledge base that was opened for it, so that nothing but the store
carries a state from one to the next; facts and flags are compared with the reference evaluator.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.core.tables import decode
from corollary.errors import InvalidProgram
from corollary.knowledge_base.verify import verify_store
from corollary.lang import reference
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, TRIPLE, Atom, is_auxiliary
from corollary.store import Store, compaction, slices
from corollary.store.changes import between
from tests.effort import first
from tests.streams import Stream, stream

# counting is for programs without recursion.
ALGORITHMS = ("bf", "dred", "dred-c", "bf-c", "fp", "rematerialize")


def facts(kb: KnowledgeBase) -> set[Atom]:
    return set(decode(kb.state.reasoner.facts, kb.state.dictionary))


def explicit(kb: KnowledgeBase) -> set[Atom]:
    return set(decode(kb.state.reasoner.explicit, kb.state.dictionary))


def visible(atoms: set[Atom]) -> set[Atom]:
    return {atom for atom in atoms if not is_auxiliary(atom.relation)}


def writable(seed: int) -> Stream:
    """A stream that the language can write: values may be others, which stores refuse."""
    while True:
        found = stream(seed, commits=6)
        rules = {*found.program.rules, *(r for commit in found.commits for r in commit.added)}
        stated = {*found.program.facts, *(f for commit in found.commits for f in commit.inserted)}
        if any(f.relation == TRIPLE and not isinstance(f.terms[1], IRI) for f in stated):
            seed += 1000
            continue
        try:
            Program.parse("\n".join(map(Printer(well_known=False).rule, rules)))
        except InvalidProgram as error:
            if all(d.code in ("E205", "E206") for d in error.diagnostics):
                return found  # all of them together need not be a program
            seed += 1000
        else:
            return found


@pytest.mark.parametrize(
    ("seed", "algorithm"),
    [
        *first(3, ((seed, "auto") for seed in range(9))),
        *((90 + n, a) for n, a in enumerate(ALGORITHMS)),
    ],
)
def test_oracle_streams_through_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, algorithm: str
) -> None:
    monkeypatch.setattr(compaction, "SMALL_FILES", 3)
    monkeypatch.setattr(slices, "ROWS", 8)
    found = writable(seed)
    path = tmp_path / "s"
    KnowledgeBase(found.program).save(path)
    rules, known = Program.of(found.program.rules), set(found.program.facts)
    for number, commit in enumerate(found.commits):
        kb = KnowledgeBase.open(path, algorithm=algorithm)
        before = kb.version
        with kb.transaction() as tx:
            tx.delete(commit.deleted)
            tx.insert(commit.inserted)
            tx.remove_rules(commit.removed)
            tx.add_rules(commit.added)
        rules = rules.removed(*commit.removed).added(*commit.added)
        known = (known - commit.deleted) | commit.inserted
        right = reference.materialize(rules, known)
        if number % 3 == 2:
            shutil.rmtree(path / "cache")
        again = KnowledgeBase.open(path)
        assert visible(facts(again)) == visible(set(right))
        assert explicit(again) == known
        assert again.program == rules
        changed = between(Store.open(path), before, again.version)
        assert changed.num_rows >= len(tx.changes)
    assert verify_store(path).problems == []
