"""Hybrid knowledge bases over streams of changes.

In these streams rules become redundant and necessary again, and derive facts of properties and
classes that occur only in facts. After every commit, the answers of a hybrid knowledge base must
equal those of a materialized one and of the reference evaluator; its stored facts and the changes
it reports are checked as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import corollary as co
from corollary.core.tables import decode
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom, Rule, Variable
from corollary.testing import random_thresholds
from tests.algorithms.replay import State, states
from tests.fuzz.lane import Figures
from tests.streams import stream
from tests.switches import Case, ontology_stream, switch_case
from tests.variable_heads import variable_heads_case

COMMITS = 10
ONTOLOGIES = ("rhodf", "rdfs", "owl-horst", "owl-rl")


class Twins:
    """A hybrid and a materialized knowledge base with the same facts and rules."""

    def __init__(
        self, program: Program, patterns: Sequence[Atom], *, specialize: bool, seed: int
    ) -> None:
        self.random = Random(seed)
        self.patterns = patterns
        self.full = co.KnowledgeBase(program, specialize=False)
        written = [Printer().atom(pattern) for pattern in patterns]
        self.hybrid = co.KnowledgeBase(
            program, mode="hybrid", specialize=specialize, materialize=written
        )
        self.queries = 0

    def commit(
        self,
        inserted: Iterable[Atom],
        deleted: Iterable[Atom],
        added: Sequence[Rule] = (),
        removed: Sequence[Rule] = (),
    ) -> None:
        """Change both; the hybrid one must report exactly the changes of its stored facts."""
        before = self.kept()
        for kb in (self.full, self.hybrid):
            with kb.transaction() as tx:
                tx.remove_rules(removed)
                tx.add_rules(added)
                tx.delete(list(deleted))
                tx.insert(list(inserted))
        after = self.kept()
        assert tx.changes is not None
        differences = {("+", atom) for atom in after - before}
        differences |= {("-", atom) for atom in before - after}
        assert set(tx.changes) == differences

    def kept(self) -> set[Atom]:
        """What the hybrid knowledge base stores."""
        return _atoms(self.hybrid, self.hybrid.state.reasoner.facts)

    def check(self, expected: State | None = None) -> None:
        """Compare all facts, the stored facts, and the answers to a few patterns."""
        facts = _atoms(self.full, self.full.state.reasoner.facts)
        explicit = _atoms(self.full, self.full.state.reasoner.explicit)
        if expected is not None:
            assert facts == expected.facts
            assert explicit == expected.explicit
        assert _atoms(self.hybrid, self.hybrid.state.reasoner.explicit) == explicit
        kept = self.kept()
        assert explicit <= kept <= facts
        for pattern in self.patterns:
            assert _matching(pattern, facts) <= kept, Printer().atom(pattern)
        for atom in self._whole(facts):
            self.ask(atom, facts)
        for fact in self.random.sample(sorted(facts, key=repr), min(4, len(facts))):
            terms = (
                term if self.random.random() < 0.5 else Variable(f"v{at}")
                for at, term in enumerate(fact.terms)
            )
            self.ask(Atom(fact.relation, tuple(terms)), facts)
        assert sum(1 for _ in self.hybrid.inconsistencies()) == sum(
            1 for _ in self.full.inconsistencies()
        )

    def ask(self, query: Atom, facts: set[Atom]) -> None:
        """The answers to a query are the facts that match it."""
        self.queries += 1
        found = _atoms(self.hybrid, self.hybrid.state.reasoner.match(query))
        assert found == _matching(query, facts), Printer().atom(query)

    def _whole(self, facts: set[Atom]) -> list[Atom]:
        """All relations without bound terms, including those without facts."""
        heads = [rule.head for rule in self.full.program.rules]
        arities = {atom.relation: len(atom.terms) for atom in (*heads, *facts)}
        return [
            Atom(relation, tuple(Variable(f"v{at}") for at in range(arity)))
            for relation, arity in arities.items()
        ]


def _atoms(kb: co.KnowledgeBase, facts: Any) -> set[Atom]:
    return set(decode(facts, kb.state.dictionary))


def _matching(query: Atom, facts: set[Atom]) -> set[Atom]:
    def matches(fact: Atom) -> bool:
        values: dict[object, object] = {}
        return fact.relation == query.relation and all(
            (values.setdefault(mine, its) if isinstance(mine, Variable) else mine) == its
            for mine, its in zip(query.terms, fact.terms, strict=True)
        )

    return {fact for fact in facts if matches(fact)}


def check_switches(seed: int, commits: int = COMMITS) -> int:
    """A random program with switches and a stream of fact and rule changes; counts queries."""
    return check_case(switch_case(seed), seed, commits)


def check_variable_heads(seed: int, commits: int = COMMITS) -> int:
    """The same for rules that derive into any property or class."""
    return check_case(variable_heads_case(seed), seed, commits)


def check_case(case: Case, seed: int, commits: int) -> int:
    """A program and a stream of fact and rule changes; counts queries."""
    one = stream(seed, case.program, commits, case.others)
    expected = states(one)
    try:
        twins = Twins(case.program, case.patterns, specialize=bool(seed % 2), seed=seed)
        twins.check(expected[0])
        for commit, state in zip(one.commits, expected[1:], strict=True):
            twins.commit(commit.inserted, commit.deleted, commit.added, commit.removed)
            twins.check(state)
        twins.hybrid.state.reasoner.verify()
    except BaseException as error:
        error.add_note(f"patterns {[Printer().atom(p) for p in case.patterns]}\n{one!r}")
        raise
    return twins.queries


def check_ontology(seed: int, name: str, *, specialize: bool, commits: int = 4) -> int:
    """A random ontology and a stream of changes of axioms and data; counts queries."""
    one = ontology_stream(seed, name, commits)
    extra = [Atom(TRIPLE, (Variable("x"), *_last(one.first)))] if seed % 3 == 0 else []
    try:
        twins = Twins(co.rules(name), extra, specialize=specialize, seed=seed)
        twins.commit(one.first, ())
        twins.check()
        for commit in one.commits:
            twins.commit(commit.inserted, commit.deleted)
            twins.check()
        twins.hybrid.state.reasoner.verify()
    except BaseException as error:
        error.add_note(f"{name}, specialize={specialize}, seed {seed}\n{one!r}")
        raise
    return twins.queries


def _last(first: Iterable[Atom]) -> tuple[Any, Any]:
    atom = sorted(first, key=repr)[-1]
    return atom.terms[1], atom.terms[2]


def run(seed: int) -> Figures:
    """Check programs with switches, programs with variable heads, and an ontology."""
    parts = range(4 * seed, 4 * seed + 4)
    queries = sum(check_switches(part) for part in parts)
    with random_thresholds(seed):
        queries += sum(check_variable_heads(part) for part in parts)
    name = ONTOLOGIES[seed // 2 % len(ONTOLOGIES)]
    queries += check_ontology(seed, name, specialize=bool(seed % 2))
    return {"streams": 9, "queries": queries}
