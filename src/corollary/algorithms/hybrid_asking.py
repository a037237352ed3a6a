"""What a query asks of each predicate: values for some terms, and how its answers are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corollary.core.compile import home, home_terms
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.core.tables import narrow_atoms
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Constant, Rule, Variable


@dataclass(frozen=True)
class Asked:
    """Values for the terms that a predicate leaves open: rows of the bound ones, sets of others."""

    bound: tuple[bool, ...]
    rows: Ids
    admitted: Mapping[int, Ids]

    def shape(self, atom: Atom) -> tuple[int, ...]:
        """Which of the open terms are the same variable."""
        numbers: dict[object, int] = {}
        return tuple(
            [
                numbers.setdefault(term if isinstance(term, Variable) else at, at)
                for at, term in enumerate(home_terms(atom))
            ]
        )


class Asking:
    """A query with its sets of admissible values."""

    def __init__(
        self,
        query: Atom,
        admissible: Mapping[int, Ids],
        dictionary: Dictionary,
        computes: bool = False,
    ) -> None:
        self._query = query
        # A number that no one has seen so far may be computed by an aggregate.
        self._find = dictionary.id if computes else dictionary.find
        self._sets = {place: np.unique(ids) for place, ids in admissible.items()}
        self._labels: dict[int, frozenset[Constant]] = {
            place: frozenset(dictionary.terms(self._sets[place].tolist()))
            for place in (1, 2)
            if query.relation == TRIPLE and place in self._sets
        }

    def all(self, query: Atom, facts: Facts) -> list[tuple[Atom, Asked]]:
        """What is asked of each predicate that has facts."""
        atoms = narrow_atoms(query, facts.predicates())
        return [(atom, asked) for atom in atoms if (asked := self.of(atom)) is not None]

    def of(self, atom: Atom) -> Asked | None:
        """What is asked of a predicate that the query covers; None if nothing can match."""
        predicate = home(atom)
        places: tuple[int, ...] = tuple(range(len(atom.terms)))
        if atom.relation == TRIPLE and predicate.property is not None:
            labels = (predicate.property, predicate.member_of)
            for place, label in enumerate(labels, 1):
                if label is not None and label not in self._labels.get(place, (label,)):
                    return None
            places = (0,) if predicate.member_of is not None else (0, 2)
        columns: dict[int, Ids] = {}
        sets: dict[int, Ids] = {}
        for at, place in enumerate(places):
            term = atom.terms[place]
            if not isinstance(term, Variable):
                term_id = self._find(term)
                if term_id is None:
                    return None
                columns[at] = np.array([term_id], np.uint32)
                if isinstance(self._query.terms[place], Variable) and place in self._sets:
                    sets[at] = self._sets[place]
            elif place in self._sets:
                sets[at] = self._sets[place]
        if any(not len(ids) for ids in sets.values()):
            return None
        free_sets = {at: ids for at, ids in sets.items() if at not in columns}
        if free_sets:
            driving = min(free_sets, key=lambda at: len(free_sets[at]))
            columns[driving] = sets.pop(driving)
        rows = max((len(ids) for ids in columns.values()), default=0)
        table = np.zeros((rows, len(columns)), np.uint32)
        for number, at in enumerate(sorted(columns)):
            table[:, number] = columns[at]
        bound = tuple([at in columns for at in range(len(places))])
        return Asked(bound, table, sets)


def reader_of(predicate: Predicate, asked: Asked, number: int, shape: tuple[int, ...]) -> Rule:
    """P(…) :- wanted(…), P(…), admitted(…): the facts of a predicate that match."""
    terms = [Variable(f"v{place}") for place in shape]
    atom = _atom(predicate, terms)
    body = [atom]
    if any(asked.bound):
        chosen = tuple(t for t, bound in zip(terms, asked.bound, strict=True) if bound)
        body.append(Atom(wanted(number, asked.bound).relation, chosen))
    body += [Atom(admitted(at).relation, (terms[at],)) for at in asked.admitted]
    return Rule(atom, tuple(body))


def _atom(predicate: Predicate, terms: Sequence[Variable]) -> Atom:
    if predicate.relation != TRIPLE:
        return Atom(predicate.relation, tuple(terms))
    if predicate.member_of is not None:
        return Atom(TRIPLE, (terms[0], TYPE, predicate.member_of))
    assert predicate.property is not None, "only narrow predicates are looked up"
    return Atom(TRIPLE, (terms[0], predicate.property, terms[1]))


def wanted(number: int, bound: tuple[bool, ...]) -> Predicate:
    """The relation of values for bound terms."""
    return Predicate(f"WANTED {number} {''.join('bf'[not b] for b in bound)}")


def admitted(place: int) -> Predicate:
    """The relation of admissible values for one of the open terms."""
    return Predicate(f"ADMITTED {place}")
