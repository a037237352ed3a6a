"""Refreshing: bring an open knowledge base to the newest version of its store.

What was committed since is read and applied to the facts in memory, and the tables of queries whose
triples did not change stay. After other changes, such as those of rules, the store is opened again.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import cast

from corollary.core.changes import Changes
from corollary.core.engine import Facts
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.errors import InvalidInput
from corollary.knowledge_base.axioms import axioms_of
from corollary.knowledge_base.patterns import arities_of
from corollary.knowledge_base.persistence import StoreHandle, open_state
from corollary.knowledge_base.results import results_of
from corollary.knowledge_base.state import KnowledgeState
from corollary.knowledge_base.stored import NewerFacts
from corollary.store import Snapshot
from corollary.store.commits import Commit
from corollary.store.opening import open_newer

_KEPT = {"guard"}  # of a state whose store is opened again


def refresh(state: KnowledgeState) -> None:
    """Bring a state to the newest version of its store; a failure leaves it as it was."""
    store = state.opened_store
    if state.in_transaction:
        raise InvalidInput("E343", "a transaction is open", "refresh before or after it")
    handle = state.store
    assert handle is not None, "it is in a store"
    if store.origin() == handle.origin:
        newest = store.latest()
        if newest == state.version:
            handle.is_newest = True
            return
        if _advance(state, handle, store.snapshot(newest)):
            return
    _reopen(state)


def _advance(state: KnowledgeState, handle: StoreHandle, snapshot: Snapshot) -> bool:
    """Apply what was committed since; false if that needs more than facts and terms."""
    engine: object = state.engine
    facts, explicit = state.reasoner.facts, state.reasoner.explicit
    assert isinstance(engine, ColumnarEngine), "stores are opened with the embedded engine"
    assert isinstance(facts, ColumnarFacts), "its facts"
    assert isinstance(explicit, ColumnarFacts), "and its explicit facts"
    if (
        snapshot.version < state.version
        or len(state.dictionary) != handle.stored_terms
        or not _same_rules(handle.store.commit(state.version), snapshot.commit)
    ):
        return False
    opened = open_newer(snapshot, state.dictionary, state.version)
    if opened is None:
        return False
    newer = NewerFacts.of(opened, engine)
    facts, explicit = newer.apply(facts, explicit)
    # The table of rules need not be read again.
    snapshot.program = replace(handle.program, prefixes=dict(snapshot.commit.prefixes))
    program = snapshot.program.without_facts()
    state.reasoner = state.settings.stored(
        program, cast("Facts", explicit), cast("Facts", results_of(facts)), state.engine
    )
    state.axioms = axioms_of(snapshot, state.engine)
    state.prefixes, state.arities = program.prefixes, arities_of(snapshot)
    state.version = snapshot.version
    state.store = StoreHandle.of(snapshot, state.dictionary, is_newest=True)
    if state.queries is not None:
        state.queries.changed(Changes(newer.facts, newer.deleted))
    return True


def _same_rules(one: Commit, other: Commit) -> bool:
    """Whether two versions differ in their facts only."""
    names = ("program", "mode", "equality", "materialize", "declarations")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _reopen(state: KnowledgeState) -> None:
    """Open the store again."""
    columnar: object = state.engine
    assert isinstance(columnar, ColumnarEngine), "stores are opened with the embedded engine"
    fresh = open_state(
        state.opened_store.path,
        settings=state.settings,
        threads=columnar.workers.threads,
        limit_memory=columnar.space.budget.limit,
    )
    for one in fields(state):
        if one.name not in _KEPT:
            setattr(state, one.name, getattr(fresh, one.name))
