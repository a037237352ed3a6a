"""SPARQL over a knowledge base: its triples as a source of queries."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import TYPE_CHECKING, Any

from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary, Ids
from corollary.knowledge_base.equality import EqualityMaintainer
from corollary.knowledge_base.hybrid import triple_ids
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Constant, Variable
from corollary.query.database import Database
from corollary.query.engine import QueryEngine
from corollary.query.hybrid import HybridDatabase, Pattern

if TYPE_CHECKING:
    from corollary.knowledge_base.base import KnowledgeBase

_X, _Y = Variable("x"), Variable("y")


class Materialized:
    """The triples of a materialization, as they are when asked for."""

    def __init__(self, kb: KnowledgeBase, versions: Mapping[Predicate, int]) -> None:
        self._kb = kb
        self._versions = versions  # the one that changed each predicate last

    @property
    def dictionary(self) -> Dictionary:
        """The terms of the knowledge base."""
        return self._kb._dictionary

    def predicates(self) -> Collection[Predicate]:
        """The properties and classes that there are."""
        facts: Any = self._kb._maintainer.facts
        return [p for p in facts.predicates() if p.relation == TRIPLE]

    def labels(self) -> list[Constant]:
        """Their terms; those that equal a representative are in facts, and have ids."""
        kept = self._kb._maintainer
        stored: Any = kept.inner.facts if isinstance(kept, EqualityMaintainer) else kept.facts
        labels = (term for p in stored.predicates() for term in (p.property, p.member_of))
        # In the same order every time, as ids are given in it.
        return [term for term in dict.fromkeys(labels) if term is not None]

    def rows(self, predicate: Predicate) -> Ids:
        """The triples of one of them; representatives stand for all that equals them."""
        kept = self._kb._maintainer
        if not isinstance(kept, EqualityMaintainer):
            found: Ids = kept.facts.rows(predicate)
            return found
        assert predicate.property is not None, "triples are kept by property"
        terms = (
            (_X, predicate.property, _Y)
            if predicate.member_of is None
            else (_X, TYPE, predicate.member_of)
        )
        full: Ids = kept.matching(Atom(TRIPLE, terms)).rows(predicate)
        return full

    def stamp(self, predicate: Predicate | None = None) -> Hashable:
        """The version that changed it last."""
        if predicate is None:
            return self._kb.version
        return self._versions.get(predicate, 0)


class Unfolded:
    """The answers of a hybrid knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    @property
    def dictionary(self) -> Dictionary:
        """The terms of the knowledge base."""
        return self._kb._dictionary

    def constants(self) -> list[Constant]:
        """What rules may derive facts about, though no fact mentions it."""
        heads = [rule.head for rule in self._kb.program.rules]
        return [term for head in heads for term in head.constants()]

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> Ids:
        """Derive the triples that match."""
        return triple_ids(self._kb, pattern, admissible)

    def tree(self, pattern: Pattern) -> str:
        """The proof tree of a pattern, with leaves and sizes."""
        known = self.dictionary.term
        terms = tuple(
            Variable(f"v{place}") if term is None else known(term)
            for place, term in enumerate(pattern)
        )
        return str(self._kb.explain_plan(Atom(TRIPLE, terms)))

    def stamp(self) -> Hashable:
        """The version."""
        return self._kb.version


class Queries:
    """What answers queries about a knowledge base, and what it must know of updates."""

    def __init__(self, kb: KnowledgeBase) -> None:
        limits = _limits(kb._engine)
        self._versions: dict[Predicate, int] = {}
        if kb.mode == "hybrid":
            self.engine = QueryEngine(HybridDatabase(Unfolded(kb), **limits), kb._dictionary)
        else:
            source = Materialized(kb, self._versions)
            self.engine = QueryEngine(Database(source, **limits), kb._dictionary)

    def changed(self, changes: Changes[Any], version: int) -> None:
        """Remember what a version has changed."""
        for facts in (changes.inserted, changes.deleted):
            self._versions.update(dict.fromkeys(facts.predicates(), version))


def _limits(engine: object) -> dict[str, Any]:
    """The threads and the memory that the embedded engine has are those of queries too."""
    from corollary.engines.columnar.engine import ColumnarEngine

    if not isinstance(engine, ColumnarEngine):
        return {}
    return {"threads": engine.workers.threads, "limit_memory": engine.space.budget.limit}
