"""SPARQL over a knowledge base, which acts as the triple source of queries."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

from corollary.core.changes import Changes
from corollary.core.compile import TRIPLES
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine, Facts
from corollary.core.graphs import QUAD, REASON_OVER
from corollary.core.ids import in_order
from corollary.core.match import triple_rows
from corollary.core.tables import pattern_of
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.knowledge_base.graphs import own_default_graph, quads_of, unread_triples
from corollary.knowledge_base.hybrid import triple_ids, triple_pattern
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Constant
from corollary.query.database import Database
from corollary.query.engine import QueryEngine
from corollary.query.hybrid import HybridDatabase, Pattern
from corollary.query.plan import Source

if TYPE_CHECKING:
    from corollary.knowledge_base.state import KnowledgeState


class _Source:
    """A knowledge base as a triple source."""

    def __init__(self, state: KnowledgeState, revisions: Revisions) -> None:
        self._state, self._revisions = state, revisions
        self._graphs: tuple[int, list[int]] | None = None  # after an update

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary of terms."""
        return self._state.dictionary

    def graph_rows(self, source: Source) -> Ids:
        """Return all quads, or the triples of a pseudo-graph."""
        state = self._state
        reasoner, explicit = state.reasoner, state.reasoner.explicit
        if source == "quads":
            return quads_of(reasoner.match(pattern_of(QUAD, 4)))
        if source == "default":
            return triple_rows(own_default_graph(state), state.dictionary)
        if source == "unread":
            return triple_rows(unread_triples(explicit, state.engine), state.dictionary)
        triples = explicit.only([TRIPLES])
        if source == "derived":
            every = reasoner.match(triple_pattern((None, None, None), state.dictionary))
            triples = every.difference(triples)
        return triple_rows(triples, state.dictionary)

    def has_unread(self) -> bool:
        """Tell whether there may be graphs that rules do not read."""
        return REASON_OVER in self._state.reasoner.explicit.predicates()

    def graphs(self) -> list[int]:
        """List the named graphs."""
        stamp = self._revisions.last
        if self._graphs is None or self._graphs[0] != stamp:
            found = in_order(self.graph_rows("quads")[:, 3])
            self._graphs = stamp, found.tolist()
        return self._graphs[1]


class Materialized(_Source):
    """The triples of a materialization, read on demand."""

    def predicates(self) -> Collection[Predicate]:
        """List the properties and classes that have triples."""
        return [p for p in self._state.reasoner.facts.predicates() if p.relation == TRIPLE]

    def labels(self) -> list[Constant]:
        """List the terms of properties and classes, in a stable order that determines their ids.

        Terms equal to a representative occur in facts, so they already have ids.
        """
        predicates = self._state.reasoner.labels
        labels = (term for p in predicates for term in (p.property, p.member_of))
        return [term for term in dict.fromkeys(labels) if term is not None]

    def rows(self, predicate: Predicate) -> Ids:
        """Read the triples of a property or class; representatives expand to all equal terms."""
        return self._state.reasoner.match(pattern_of(predicate)).rows(predicate)

    def stamp(self, predicate: Predicate | None = None) -> Hashable:
        """Return the number of the update that changed a predicate last."""
        if predicate is None:
            return self._revisions.last
        return self._revisions.by_predicate.get(predicate, 0)


class Unfolded(_Source):
    """The answers of a hybrid knowledge base."""

    def labels(self) -> list[Constant]:
        """List the constants of rule heads: answers may contain them although no fact does."""
        heads = [rule.head for rule in self._state.program.rules]
        return [term for head in heads for term in head.constants()]

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Ids:
        """Derive the triples that match."""
        return triple_ids(self._state, pattern, admissible)

    def tree(self, pattern: Pattern) -> str:
        """Return the proof tree of a pattern, with leaves and sizes."""
        atom = triple_pattern(pattern, self.dictionary)
        tree = self._state.reasoner.query_plan(atom)
        return str(replace(tree, prefixes=self._state.all_prefixes))

    def stamp(self) -> Hashable:
        """Return the number of the last update."""
        return self._revisions.last


@dataclass
class Revisions:
    """Counts updates, and records which one changed a predicate last."""

    last: int = 0
    by_predicate: dict[Predicate, int] = field(default_factory=dict)


class Queries:
    """The query engine of a knowledge base, and the updates that its tables depend on."""

    def __init__(self, state: KnowledgeState) -> None:
        limits = _limits(state.engine)
        self._revisions = Revisions()
        database: Database | HybridDatabase
        if state.settings.mode == "hybrid":
            database = HybridDatabase(Unfolded(state, self._revisions), **limits)
        else:
            database = Database(Materialized(state, self._revisions), **limits)
        self.engine = QueryEngine(database, state.dictionary)

    def changed(self, changes: Changes[Facts]) -> None:
        """Record the predicates that an update has changed."""
        self._revisions.last += 1
        for facts in (changes.inserted, changes.deleted):
            changed = dict.fromkeys(facts.predicates(), self._revisions.last)
            self._revisions.by_predicate.update(changed)


class _Limits(TypedDict, total=False):
    threads: int
    limit_memory: int | None


def _limits(engine: Engine[Facts]) -> _Limits:
    """Return the thread and memory limits of the embedded engine, which queries share."""
    columnar: object = engine
    if not isinstance(columnar, ColumnarEngine):
        return {}
    return {"threads": columnar.workers.threads, "limit_memory": columnar.space.budget.limit}
