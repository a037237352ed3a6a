"""Journeys of stores: histories of ontologies, changed in every way that a store can be changed.

Each change of a history is made by one of the roads (requests, SPARQL updates, previews before
them), between them come rewriting updates, reverts, purges, clones, compactions and openings with
other settings. After every step the facts are those that follow from scratch; older versions keep
theirs; differences between versions are the differences of their facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from corollary import KnowledgeBase
from corollary.core.terms import text_of
from corollary.errors import InvalidInput, InvalidProgram
from corollary.knowledge_base.purging import purge
from corollary.knowledge_base.transaction import Transaction
from corollary.knowledge_base.verify import verify_store
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Rule
from corollary.query.results import Solutions
from corollary.store import Store, compaction
from corollary.store.clone import clone
from corollary.testing import draw, thresholds
from tests.configurations import (
    Change,
    Configuration,
    History,
    State,
    Triple,
    as_text,
    as_triple,
    differs,
    triples_of,
)

_STEPS = ("commit",) * 5 + ("rewrite", "undo", "back", "open", "open", "purge", "house", "clone")


class Journey:
    """A store and the states of its versions."""

    def __init__(
        self, history: History, configuration: Configuration, folder: Path, seed: int
    ) -> None:
        self.random, self.configuration = Random(seed), configuration
        self.folder, self.path, self.clones = folder, folder / "store", 0
        self.taken: list[str] = []
        self.kb = KnowledgeBase(history.program, **configuration.options())
        self.kb.save(self.path)
        self.states: dict[int, State] = {
            0: State(Program.of(()), frozenset()),
            self.kb.version: State(history.program, frozenset()),
        }
        self.pending = [Change(history.first), *history.changes]

    @property
    def state(self) -> State:
        return self.states[max(self.states)]

    def run(self) -> int:
        """Take steps until all changes are made; returns how many states were compared."""
        steps = 0
        while self.pending:
            step = self.random.choice(_STEPS) if steps else "commit"
            self.taken.append(step)
            getattr(self, f"_{step}")()
            self._check()
            steps += 1
        for version, state in self.states.items():
            if version:
                self._check_version(version, state)
        self._check_differences()
        problems = verify_store(self.path).problems
        assert problems == [], problems
        return steps

    # -- steps -----------------------------------------------------------------------------------

    def _commit(self) -> None:
        """Make the next change of the history, which may come after reverts by now."""
        change = self.pending.pop(0)
        program = self.state.program
        removed = tuple(rule for rule in change.removed if rule in program)
        added = tuple(rule for rule in change.added if rule not in program)
        change = replace(change, removed=removed, added=added)
        road = self.random.choice((_requests, _requests, _sparql))
        explicit = (self.state.explicit - change.deleted) | change.inserted
        try:
            expected = State(program.removed(*removed).added(*added), explicit)
        except InvalidProgram:
            return
        self._transaction(lambda tx: road(tx, change), expected)

    def _rewrite(self) -> None:
        """Replace the triples of a property by others, found by a query."""
        triples = sorted(self.state.triples)
        if not triples:
            return
        name, other = (self.random.choice(triples)[1] for _ in range(2))
        found = [triple for triple in triples if triple[1] == name]
        inserted = {(o, other, s) for s, _, o in found if not o.startswith('"')}
        kept = self.state.explicit - {*found}
        text = f"DELETE {{ ?x {name} ?y }} INSERT {{ ?y {other} ?x }} WHERE {{ ?x {name} ?y }}"
        expected = replace(self.state, explicit=kept | inserted)
        self._transaction(lambda tx: tx.update(text), expected)

    def _transaction(self, request: Callable[[Transaction], None], expected: State) -> None:
        """Commit a request, at times after previews of it."""
        kb, preview = self.kb, None
        before = {*triples_of(kb)} if self.configuration.mode == "materialized" else None
        if self.random.random() < 0.4:
            with kb.transaction() as tx:
                request(tx)
                preview = tx.preview()
                tx.rollback()
            self._check()
        with kb.transaction() as tx:
            request(tx)
            if preview is not None and self.random.random() < 0.5:
                assert {*tx.preview()} == {*preview}
        if preview is not None:
            assert {*tx.changes} == {*preview}, "preview and changes"
        self._committed(expected)
        if before is not None:
            for sign, atom in tx.changes:
                if atom.relation == TRIPLE:
                    (before.add if sign == "+" else before.discard)(as_triple(atom))
            differs(before, expected.triples, "changes")

    def _undo(self) -> None:
        version = self.random.choice([v for v in self.states if v])
        old, new, now = self.states[version - 1], self.states[version], self.state

        def undone(of: Callable[[State], frozenset[Any]]) -> frozenset[Any]:
            return (of(now) - (of(new) - of(old))) | (of(old) - of(new))

        rules, axioms = undone(_rules_of), undone(lambda state: state.program.axioms)
        with suppress(InvalidProgram):  # together with later rules, they are not stratified
            program = Program.of(rules, sorted(axioms, key=repr)).with_axioms()
            _ = program.strata
            with _kept_equality():
                self.kb.revert(version)
                self._committed(State(program, undone(lambda state: state.explicit)))

    def _back(self) -> None:
        version = self.random.choice(sorted(self.states))
        with _kept_equality():
            self.kb.revert(to=version)
            self._committed(self.states[version])

    def _open(self) -> None:
        random = self.random
        self.kb = KnowledgeBase.open(
            self.path,
            algorithm=random.choice(("auto", self.configuration.algorithm)),
            modules=random.random() < 0.5,
            specialize=random.choice((None, True, False)),
            threads=random.choice((1, 2)),
        )

    def _purge(self) -> None:
        """Erase some triples, or all about a thing, from all versions."""
        if self.configuration.mode == "hybrid":
            return
        ever = sorted(frozenset[Triple]().union(*(s.explicit for s in self.states.values())))
        axioms = {as_triple(fact) for s in self.states.values() for fact in s.program.axioms}
        chosen = {*self.random.sample(ever, min(len(ever), 2))} - axioms
        about = [f"<urn:t{self.random.randrange(3)}>"] if self.random.random() < 0.5 else []
        if not chosen and not about:
            return
        rows = [dict(zip(_COLUMNS, triple, strict=True)) for triple in sorted(chosen)]
        purge(self.path, statements=[pa.Table.from_pylist(rows)] if rows else [], about=about)
        gone = {t for t in ever if t in chosen or any(term in t for term in about)}
        self.states = {
            version: replace(state, explicit=state.explicit - gone)
            for version, state in self.states.items()
        }
        self._open()
        self._committed(self.state)

    def _house(self) -> None:
        compaction.compact(Store.open(self.path), full=self.random.random() < 0.5)
        self._open()
        self._committed(self.state)

    def _clone(self) -> None:
        self.clones += 1
        target = self.folder / f"clone{self.clones}"
        clone(self.path, target)
        self.path = target
        self._open()

    # -- checks ----------------------------------------------------------------------------------

    def _committed(self, state: State) -> None:
        for version in range(max(self.states) + 1, self.kb.version + 1):
            self.states[version] = state

    def _check(self) -> None:
        expected = self.state
        differs(triples_of(self.kb), expected.triples, "facts")
        found = self.kb.query("SELECT ?s ?p ?o { ?s ?p ?o }")
        assert isinstance(found, Solutions)
        rows: Any = (tuple(text_of(term) for term in row if term is not None) for row in found)
        differs(rows, expected.triples, "query")
        assert _rules_of(State(self.kb.program, frozenset())) == _rules_of(expected)
        assert self.kb.program.axioms == expected.program.axioms

    def _check_version(self, version: int, state: State) -> None:
        old = KnowledgeBase.open(self.path, at_version=version)
        differs(triples_of(old), state.triples, f"version {version}")

    def _check_differences(self) -> None:
        if self.configuration.mode == "hybrid":
            return
        first, second = (self.random.choice([v for v in self.states if v]) for _ in range(2))
        facts = {*self.states[first].triples}
        for sign, atom, _ in KnowledgeBase.open(self.path).diff(first, second).facts():
            if atom.relation == TRIPLE and sign in ("inserted", "deleted"):
                (facts.add if sign == "inserted" else facts.discard)(as_triple(atom))
        differs(facts, self.states[second].triples, f"difference of {first} and {second}")


@contextmanager
def _kept_equality() -> Iterator[None]:
    """Equality by representatives refuses, without a trace, to go back before its rules."""
    try:
        yield
    except InvalidInput as error:
        if error.code != "E312":
            raise


def _rules_of(state: State) -> frozenset[Rule]:
    return frozenset((*state.program.rules, *state.program.constraints))


_COLUMNS = ("subject", "predicate", "object")


def _requests(tx: Transaction, change: Change) -> None:
    tx.delete(as_text(change.deleted))
    tx.insert(as_text(change.inserted))
    _rules(tx, change)


def _sparql(tx: Transaction, change: Change) -> None:
    deleted, inserted = as_text(sorted(change.deleted)), as_text(sorted(change.inserted))
    tx.update(f"DELETE DATA {{ {deleted} }} ; INSERT DATA {{ {inserted} }}")
    _rules(tx, change)


def _rules(tx: Transaction, change: Change) -> None:
    if change.removed:
        tx.remove_rules(change.removed)
    if change.added:
        tx.add_rules(change.added)


def travel(history: History, configuration: Configuration, folder: Path, seed: int) -> int:
    """Take the journey of a seed; returns how many states were compared."""
    limits = {} if configuration.limits is None else draw(configuration.limits)
    with thresholds(**limits):
        journey = Journey(history, configuration, folder, seed)
        try:
            return journey.run()
        except BaseException as error:
            error.add_note(f"{configuration}, seed {seed}, steps {' '.join(journey.taken)}")
            raise
