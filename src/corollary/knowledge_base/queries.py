"""SPARQL over a knowledge base: its triples as a source of queries."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from corollary.core.dictionary import Dictionary, Ids
from corollary.knowledge_base.equality import EqualityMaintainer
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

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    @property
    def dictionary(self) -> Dictionary:
        """The terms of the knowledge base."""
        return self._kb._dictionary

    def predicates(self) -> Collection[Predicate]:
        """The properties and classes that there are."""
        facts: Any = self._kb._maintainer.facts
        return [p for p in facts.predicates() if p.relation == TRIPLE]

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
        return self._kb._changed.get(predicate, 0)


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
        hybrid: Any = import_module("corollary.knowledge_base.hybrid")
        found: Ids = hybrid.triple_ids(self._kb, pattern, dict(admissible))
        return found

    def stamp(self) -> Hashable:
        """The version."""
        return self._kb.version


def query_engine(kb: KnowledgeBase) -> QueryEngine:
    """What answers queries about a knowledge base, with the threads and memory of its engine."""
    limits: dict[str, Any] = kb._limits
    if getattr(kb, "mode", "materialized") == "hybrid":
        return QueryEngine(HybridDatabase(Unfolded(kb), **limits), kb._dictionary)
    return QueryEngine(Database(Materialized(kb), **limits), kb._dictionary)
