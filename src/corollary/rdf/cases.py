"""Which cases of a template have an instance: those whose gates are open.

Most cases of a large schema are about classes and properties without any facts. What an instance
reads is told by a few columns of its case (`Template.gates`), so that cases are looked at by
columns, and an instance is written only for those that may derive something.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from corollary.core.compile import TRIPLES, TYPES
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE
from corollary.rdf.specialize import Template

_OPEN, _FRESH = 1, 2
_ALL = slice(None)
_Some = list[int] | slice  # ids of terms


class Open:
    """The properties and classes that have facts, or may have some, by their ids.

    >>> from corollary.lang.program import Program
    >>> from corollary.lang.syntax import IRI, TYPE
    >>> from corollary.rdf.specialize import split
    >>> rule = "[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] ."
    >>> [template] = split(Program.parse(rule)).templates
    >>> dictionary = Dictionary()
    >>> cases = dictionary.encode(map(IRI, ("A", "B", "B", "C"))).reshape(2, 2)
    >>> open_ = Open(dictionary)
    >>> len(open_.rows(template, cases))
    0
    >>> open_.add([Predicate(TRIPLE, TYPE, IRI("B"))])
    >>> open_.rows(template, cases).tolist() == cases[1:].tolist()
    True
    >>> open_.add([Predicate(TRIPLE, TYPE, IRI("A"))])
    >>> open_.rows(template, cases, fresh=True).tolist() == cases[:1].tolist()
    True

    A wide predicate opens the gates of all that it covers:

    >>> more = dictionary.encode(map(IRI, ("D", "E"))).reshape(1, 2)
    >>> open_.add([TYPES])
    >>> len(open_.rows(template, more))
    1
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._flags = (np.zeros(0, np.uint8), np.zeros(0, np.uint8))
        self._others = [0, 0]  # the flags of properties, and classes, that are still to come
        self._fresh: tuple[_Some, _Some] = [dictionary.id(TYPE)], []
        self.add([])

    def add(self, predicates: Iterable[Predicate]) -> None:
        """Open the gates of these predicates, which are fresh until there are others."""
        id_ = self._dictionary.id
        properties: list[int] = []
        classes: list[int] = []
        wide = set()
        for predicate in predicates:
            if predicate in (TRIPLES, TYPES):
                wide.add(predicate)
            elif predicate.relation == TRIPLE and predicate.property is not None:
                if predicate.member_of is not None:
                    classes.append(id_(predicate.member_of))
                else:
                    properties.append(id_(predicate.property))
        self._grow()
        found = (_ALL if TRIPLES in wide else properties, _ALL if wide else classes)
        for kind, (flags, before, now) in enumerate(
            zip(self._flags, self._fresh, found, strict=True)
        ):
            flags[before] = _OPEN
            flags[now] = _FRESH
            if now is _ALL:
                self._others[kind] = _OPEN
        self._fresh = found

    def rows(self, template: Template, cases: Ids, *, fresh: bool = False) -> Ids:
        """The cases whose gates are all open; with `fresh`, those that were not before."""
        if not len(cases) or not template.gates:
            return cases[: 0 if fresh else None]
        self._grow()
        flags = [self._flags[gate.is_class][cases[:, gate.column]] for gate in template.gates]
        marked = np.minimum.reduce(flags) >= _OPEN
        if fresh:
            marked &= np.maximum.reduce(flags) == _FRESH
        found: Ids = cases[marked]
        return found

    def _grow(self) -> None:
        size = len(self._dictionary)
        if size > len(self._flags[0]):
            more = 2 * size - len(self._flags[0])
            properties, classes = (
                np.concatenate([flags, np.full(more, flag, np.uint8)])
                for flags, flag in zip(self._flags, self._others, strict=True)
            )
            self._flags = properties, classes


def opens(template: Template, predicates: Iterable[Predicate]) -> bool:
    """Whether one of these predicates may open a gate of the template."""
    kinds = {gate.is_class for gate in template.gates}
    return any(
        predicate.relation == TRIPLE
        and (bool(kinds) if predicate is TRIPLES else (predicate.property == TYPE) in kinds)
        for predicate in predicates
    )
