"""The facts of a version of a store, and its RDF statements, each in its graph.

A patch of a store with named graphs is the difference between the statements of two versions, as an
export writes them: explicit statements in each of their graphs, derived triples in the default
graph unless a rule derives them into a named one. The default graph is not recorded triple by
triple (`corollary.core.graphs`), so the rows of changes alone do not tell which of its statements
differ; the facts of one of the versions do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.compile import TRIPLES
from corollary.core.engine import Engine, Facts
from corollary.core.graphs import QUAD, REASON_OVER
from corollary.core.tables import joined
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.knowledge_base.graphs import (
    default_graph,
    defaults_of,
    quads_of,
    quads_of_triples,
    triples_of_quads,
)
from corollary.knowledge_base.results import triples_of
from corollary.knowledge_base.stored import facts_of, tables_of
from corollary.rdf.triples import Triples
from corollary.store import Store
from corollary.store.changes import between, inverted
from corollary.store.layout import DELETED, INSERTED, MADE_DERIVED, MADE_EXPLICIT
from corollary.store.opening import open_columns


@dataclass(frozen=True)
class VersionFacts:
    """All facts of a version, and the explicit ones; both with those of auxiliary relations."""

    engine: Engine[Facts]
    facts: Facts
    explicit: Facts

    @classmethod
    def of(cls, store: Store, version: int) -> VersionFacts:
        """Read a version, as the newest one without the changes since: a vacuum keeps these."""
        snapshot = store.snapshot()
        opened = open_columns(snapshot, keep=False)
        engine = ColumnarEngine(opened.dictionary)
        newest = cls(cast("Engine[Facts]", engine), *facts_of(opened, engine))
        if version == snapshot.version:
            return newest
        return newest.after(between(store, snapshot.version, version))

    def after(self, rows: pa.Table) -> VersionFacts:
        """The facts after rows of changes."""
        change, explicit = rows["change"], rows["explicit"]
        is_new, is_gone = pc.equal(change, INSERTED), pc.equal(change, DELETED)
        gained = pc.or_(pc.and_(is_new, explicit), pc.equal(change, MADE_EXPLICIT))
        lost = pc.or_(pc.and_(is_gone, explicit), pc.equal(change, MADE_DERIVED))
        return replace(
            self,
            facts=self.facts.difference(self._read(rows, is_gone)).union(self._read(rows, is_new)),
            explicit=self.explicit.difference(self._read(rows, lost)).union(
                self._read(rows, gained)
            ),
        )

    def before(self, rows: pa.Table) -> VersionFacts:
        """The facts before rows of changes."""
        return self.after(inverted(rows))

    def _read(self, rows: pa.Table, mask: pa.Array | None = None) -> Facts:
        rows = rows if mask is None else rows.filter(mask)
        return self.engine.facts(joined(tables_of(rows, self.engine.dictionary)))

    def statement_changes(self, rows: pa.Table, which: str) -> tuple[Triples, Triples]:
        """The statements that earlier facts have and these lack, and the other way around.

        `rows` are the changes that lead to these facts.
        """
        changed = self._read(rows)
        concerned: Facts | None = None
        if REASON_OVER not in changed.predicates():
            named = triples_of_quads(quads_of(changed), self.engine)
            concerned = changed.only([TRIPLES]).union(named)
            concerned = concerned.union(defaults_of(changed, self.engine))
            concerned = concerned.union(changed.only([QUAD]))
        old = self.before(rows).statements(which, concerned)
        new = self.statements(which, concerned)
        return self._read_triples(old.difference(new)), self._read_triples(new.difference(old))

    def statements(self, which: str, among: Facts | None) -> Facts:
        """The statements of the default graph and of named ones, perhaps `among` some facts."""
        engine, facts, found = self.engine, self.facts, self.engine.facts({})
        if among is not None:
            facts = facts.intersection(among)
        explicit = self.explicit.only([QUAD]).intersection(facts)
        if which != "derived":
            triples = None if among is None else among.only([TRIPLES])
            found = default_graph(self.explicit, engine, triples).union(explicit)
        if which != "explicit":
            derived = facts.only([TRIPLES]).difference(self.explicit)
            named = triples_of_quads(quads_of_triples(derived, self.facts, engine), engine)
            found = found.union(derived.difference(named))
            found = found.union(facts.only([QUAD]).difference(explicit))
        return found

    def _read_triples(self, statements: Facts) -> Triples:
        triples = triples_of(statements.only([TRIPLES]), self.engine.dictionary)
        return replace(triples, quads=quads_of(statements))
