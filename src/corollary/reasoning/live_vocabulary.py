"""Select the bindings of a template that have an instance: those whose premises are live.

Most bindings of a large schema are about classes and properties without facts. The predicates that
an instance reads depend on a few columns of its binding (`Template.premises`). So bindings are
selected column-wise, and only instances that may derive something are created.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from corollary.core.compile import TRIPLES, TYPES
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE
from corollary.reasoning.templates import Template

_LIVE, _FRESH = 1, 2
_ALL = slice(None)
_Ids = list[int] | slice


class LiveVocabulary:
    """Flags, by id, of the properties and classes that have facts or may have some.

    >>> from corollary.lang.program import Program
    >>> from corollary.lang.syntax import IRI, TYPE
    >>> from corollary.reasoning.templates import split
    >>> rule = "[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] ."
    >>> [template] = split(Program.parse(rule)).templates
    >>> dictionary = Dictionary()
    >>> bindings = dictionary.encode(map(IRI, ("A", "B", "B", "C"))).reshape(2, 2)
    >>> live = LiveVocabulary(dictionary)
    >>> len(live.rows(template, bindings))
    0
    >>> live.add([Predicate(TRIPLE, TYPE, IRI("B"))])
    >>> live.rows(template, bindings).tolist() == bindings[1:].tolist()
    True
    >>> live.add([Predicate(TRIPLE, TYPE, IRI("A"))])
    >>> live.rows(template, bindings, fresh=True).tolist() == bindings[:1].tolist()
    True

    A wide predicate marks all that it covers as live:

    >>> more = dictionary.encode(map(IRI, ("D", "E"))).reshape(1, 2)
    >>> live.add([TYPES])
    >>> len(live.rows(template, more))
    1
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._flags = (np.zeros(0, np.uint8), np.zeros(0, np.uint8))
        self._others = [0, 0]  # the flags of properties and classes with larger ids
        self._fresh: tuple[_Ids, _Ids] = [dictionary.id(TYPE)], []
        self.add([])

    def add(self, predicates: Iterable[Predicate]) -> None:
        """Mark predicates as live; they are fresh until the next call."""
        id_ = self.dictionary.id
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
        live = (_ALL if TRIPLES in wide else properties, _ALL if wide else classes)
        for kind, (flags, before, now) in enumerate(
            zip(self._flags, self._fresh, live, strict=True)
        ):
            flags[before] = _LIVE
            flags[now] = _FRESH
            if now is _ALL:
                self._others[kind] = _LIVE
        self._fresh = live

    def rows(self, template: Template, bindings: Ids, *, fresh: bool = False) -> Ids:
        """Select bindings whose premises are all live; with `fresh`, only newly live ones."""
        if not len(bindings) or not template.premises:
            return bindings[: 0 if fresh else None]
        self._grow()
        flags = [self._flags[p.is_class][bindings[:, p.column]] for p in template.premises]
        marked = np.minimum.reduce(flags) >= _LIVE
        if fresh:
            marked &= np.maximum.reduce(flags) == _FRESH
        selected: Ids = bindings[marked]
        return selected

    def _grow(self) -> None:
        size = len(self.dictionary)
        if size > len(self._flags[0]):
            more = 2 * size - len(self._flags[0])
            properties, classes = (
                np.concatenate([flags, np.full(more, flag, np.uint8)])
                for flags, flag in zip(self._flags, self._others, strict=True)
            )
            self._flags = properties, classes


def may_instantiate(template: Template, predicates: Iterable[Predicate]) -> bool:
    """Test whether one of these predicates is a premise of some instance of the template."""
    kinds = {premise.is_class for premise in template.premises}
    return any(
        predicate.relation == TRIPLE
        and (bool(kinds) if predicate is TRIPLES else (predicate.property == TYPE) in kinds)
        for predicate in predicates
    )
