"""Where queries find triples: the few things that they ask of a set of facts."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Protocol

from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Constant


class Source(Protocol):
    """Triples by narrow predicates: by property, those of rdf:type by class."""

    @property
    def dictionary(self) -> Dictionary:
        """Their terms."""
        ...

    def predicates(self) -> Collection[Predicate]:
        """The predicates that have triples."""
        ...

    def labels(self) -> Collection[Constant]:
        """Properties and classes of triples that the dictionary may lack."""
        ...

    def rows(self, predicate: Predicate) -> Ids:
        """Subjects and objects of a property, or the members of a class, one triple a row."""
        ...

    def stamp(self, predicate: Predicate | None = None) -> Hashable:
        """Something that is different after the rows of a predicate (of any) have changed."""
        ...
