"""Reverting: requests that undo a version, or that bring an older one back.

A revert is an update like any other: the explicit facts, the rules and the axioms that differ are
requested, and what follows is derived incrementally.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.engine import Facts
from corollary.core.tables import Tables, encode, joined
from corollary.errors import InvalidInput
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom
from corollary.rdf.triples import Triples
from corollary.store.changes import between
from corollary.store.layout import (
    DELETED,
    INSERTED,
    MADE_DERIVED,
    MADE_EXPLICIT,
    TRIPLES,
    arguments,
    width_of,
)
from corollary.store.snapshot import Snapshot

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState
    from corollary.knowledge_base.transaction import Transaction
    from corollary.store import Store


def revert(
    tx: Transaction, state: KnowledgeState, version: int | None = None, to: int | None = None
) -> None:
    """Request the inverse of a version, or with `to`, what brings a version back."""
    if (version is None) == (to is None):
        raise InvalidInput("E514", "give a version to revert, or one to bring back, not both")
    if to is not None:
        bring_back(tx, state, to)
    elif version is not None:
        undo(tx, state, version)


def revert_message(version: int | None, to: int | None) -> str:
    """The message of a revert in the log.

    >>> revert_message(3, None), revert_message(None, 2)
    ('revert version 3', 'back to version 2')
    """
    return f"revert version {version}" if to is None else f"back to version {to}"


def undo(tx: Transaction, state: KnowledgeState, version: int) -> None:
    """Request the inverse of a version; later changes of the same facts and rules stay.

    A fact that the version inserted is deleted, unless it is gone already; a fact that it deleted
    is inserted again.
    """
    store = state.opened_store
    _check(state, version)
    if version < 1:
        raise InvalidInput(
            "E514",
            f"version {version} has no changes that can be reverted",
            "version 0 is the empty store",
        )
    _request(tx, state, store, version, version - 1)


def bring_back(tx: Transaction, state: KnowledgeState, version: int) -> None:
    """Request everything that differs from an older version."""
    _check(state, version)
    _request(tx, state, state.opened_store, state.version, version)


def _check(state: KnowledgeState, version: int) -> None:
    if version > state.version:
        raise InvalidInput(
            "E514",
            f"cannot revert to or past version {version}: the open one is {state.version}",
            "'corollary log' lists the versions",
        )


def _request(tx: Transaction, state: KnowledgeState, store: Store, first: int, second: int) -> None:
    """Request the changes from one version to another.

    The explicit facts of a version are its data and its axioms. Only data are inserted and deleted;
    an axiom that the data do not state comes and goes with the program.
    """
    rows = between(store, first, second)
    change, explicit = rows["change"], rows["explicit"]

    def diff(kind: str, made: str) -> Facts:
        own = pc.or_(pc.and_(pc.equal(change, kind), explicit), pc.equal(change, made))
        return state.engine.facts(joined(_tables(rows.filter(own), state)))

    def facts(atoms: Iterable[Atom]) -> Facts:
        return state.engine.facts(encode(atoms, state.dictionary))

    lost, gained = diff(DELETED, MADE_DERIVED), diff(INSERTED, MADE_EXPLICIT)
    old, new = (_program(store, version) for version in (first, second))
    old_data, new_data = (_asserted(store, version) for version in (first, second))
    old_only, new_only = old.axioms - old_data, new.axioms - new_data
    deleted = lost.difference(facts(old_only)).union(facts((old_data - new_data) & new.axioms))
    deleted = deleted.union(facts(new_only - old.axioms).difference(gained))
    inserted = gained.difference(facts(new_only)).union(facts((new_data - old_data) & old.axioms))
    inserted = inserted.union(facts(old_only - new.axioms).difference(lost))
    for data, inserts in ((deleted, False), (inserted, True)):
        tx.request({p: data.rows(p) for p in data.predicates()}, inserts=inserts)
    _request_rules(tx, old, new)


def _request_rules(tx: Transaction, old: Program, new: Program) -> None:
    """Request the changes of rules and axioms from one program to another."""
    current = tx.program
    lost = [rule for rule in old.rules_not_in(new) if rule in current]
    if lost:
        tx.remove_rules(lost)
    axioms = (old.axioms - new.axioms) & current.axioms
    if axioms:
        tx.remove_rules(Program.of((), axioms))
    tx.add_rules(new.rules_not_in(old))
    if new.axioms - old.axioms:
        tx.add_rules(Program.of((), new.axioms - old.axioms))


def _program(store: Store, version: int) -> Program:
    # A vacuum keeps rules and changes, so also versions that it has removed can be reverted.
    return Snapshot(store, store.commit(version)).program


def _asserted(store: Store, version: int) -> frozenset[Atom]:
    """The axioms that are also data."""
    texts = "\n".join(store.commit(version).asserted)
    return frozenset(Program.parse(texts).facts) if texts else frozenset()


def _tables(rows: pa.Table, state: KnowledgeState) -> Iterator[Tables]:
    """Convert rows of a store to facts; their ids are those of the dictionary."""
    names = arguments(width_of(rows.column_names))
    for relation in rows["relation"].unique().to_pylist():
        part = rows.filter(pc.equal(rows["relation"], relation))
        columns = [part[name] for name in names if not part[name].null_count]
        ids = [column.to_numpy().astype(np.uint32) for column in columns]
        if relation == TRIPLES:
            yield Triples(*ids).tables(state.dictionary)
        else:
            yield {Predicate(relation): np.array(ids, np.uint32).T.reshape(len(part), len(ids))}
