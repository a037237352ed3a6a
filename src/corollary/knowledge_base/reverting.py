"""Reverting: requests that undo a version, or that bring an older one back.

A revert is an update like any other: the explicit facts, the rules and the axioms that differ are
requested, and what follows is derived incrementally.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, Facts
from corollary.core.tables import Tables, encode, joined
from corollary.errors import InvalidInput
from corollary.knowledge_base.graphs import graph_difference, has_graphs
from corollary.knowledge_base.stored import tables_of
from corollary.lang.program import Program
from corollary.lang.syntax import Atom
from corollary.store.changes import between
from corollary.store.layout import (
    DELETED,
    INSERTED,
    MADE_DERIVED,
    MADE_EXPLICIT,
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
    _check(state, version)
    if version < 1:
        raise InvalidInput(
            "E514",
            f"version {version} has no changes that can be reverted",
            "version 0 is the empty store",
        )
    source = VersionSource(state.opened_store, state.dictionary)
    request_difference(tx, state, source, version, version - 1)


def bring_back(tx: Transaction, state: KnowledgeState, version: int) -> None:
    """Request everything that differs from an older version."""
    _check(state, version)
    source = VersionSource(state.opened_store, state.dictionary)
    request_difference(tx, state, source, state.version, version)


def _check(state: KnowledgeState, version: int) -> None:
    _ = state.opened_store  # raises without a store
    if version > state.version:
        raise InvalidInput(
            "E514",
            f"cannot revert to or past version {version}: the open one is {state.version}",
            "'corollary log' lists the versions",
        )


class VersionSource:
    """The versions of a store, with facts encoded by a dictionary that has its ids."""

    def __init__(self, store: Store, dictionary: Dictionary) -> None:
        self.store = store
        self.dictionary = dictionary

    def changes(self, first: int, second: int) -> pa.Table:
        """The changes of facts from one version to another, as rows of the store."""
        return between(self.store, first, second)

    def program(self, version: int) -> Program:
        """The rules and axioms of a version.

        A vacuum keeps rules and changes, so also versions that it has removed can be reverted.
        """
        return Snapshot(self.store, self.store.commit(version)).program

    def asserted(self, version: int) -> frozenset[Atom]:
        """The axioms of a version that are also data."""
        texts = "\n".join(self.store.commit(version).asserted)
        return frozenset(Program.parse(texts).facts) if texts else frozenset()

    def tables(self, rows: pa.Table) -> Iterator[Tables]:
        """Convert rows to facts."""
        return tables_of(rows, self.dictionary, self.ids)

    def ids(self, stored: npt.NDArray[np.int64]) -> Ids:
        """The ids of the dictionary for those of the store."""
        return stored.astype(np.uint32)

    def explicit_changes(
        self, engine: Engine[Facts], first: int, second: int
    ) -> tuple[Facts, Facts]:
        """The explicit facts that are lost and gained from one version to another."""
        rows = self.changes(first, second)
        change, explicit = rows["change"], rows["explicit"]

        def diff(kind: str, made: str) -> Facts:
            own = pc.or_(pc.and_(pc.equal(change, kind), explicit), pc.equal(change, made))
            return engine.facts(joined(self.tables(rows.filter(own))))

        return diff(DELETED, MADE_DERIVED), diff(INSERTED, MADE_EXPLICIT)

    def graph_changes(self, state: KnowledgeState, first: int, second: int) -> tuple[Facts, Facts]:
        """What graphs lose and gain from one version to another, as for a request."""
        engine, current = state.engine, state.reasoner.explicit
        lost, gained = self.explicit_changes(engine, first, second)
        if not any(map(has_graphs, (current, lost, gained))):
            return lost, gained
        before = current
        if first != state.version:
            gone, new = self.explicit_changes(engine, state.version, first)
            before = current.difference(gone).union(new)
        return graph_difference(before, before.difference(lost).union(gained), engine)


def request_difference(
    tx: Transaction, state: KnowledgeState, source: VersionSource, first: int, second: int
) -> None:
    """Request the changes from one version to another.

    The explicit facts of a version are its data and its axioms. Only data are inserted and deleted;
    an axiom that the data do not state comes and goes with the program.
    """

    def facts(atoms: Iterable[Atom]) -> Facts:
        return state.engine.facts(encode(atoms, state.dictionary))

    lost, gained = source.graph_changes(state, first, second)
    old, new = (source.program(version) for version in (first, second))
    old_data, new_data = (source.asserted(version) for version in (first, second))
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
