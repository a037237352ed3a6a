"""Look up the answers of a query: the values that it binds for each predicate that it matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from corollary.core.compile import narrow_predicate, narrow_terms
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.core.tables import atom_of, narrow_atoms
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, Atom, Constant, Rule, Variable


@dataclass(frozen=True)
class AtomValues:
    """Values of a predicate's open terms: rows for bound ones, admissible sets for others."""

    bound: tuple[bool, ...]
    rows: Ids
    admissible: Mapping[int, Ids]

    def shape(self, atom: Atom) -> tuple[int, ...]:
        """Number the open terms so that equal variables have equal numbers."""
        numbers: dict[object, int] = {}
        return tuple(
            [
                numbers.setdefault(term if isinstance(term, Variable) else at, at)
                for at, term in enumerate(narrow_terms(atom))
            ]
        )


class QueryValues:
    """A query with its sets of admissible values."""

    def __init__(
        self,
        query: Atom,
        admissible: Mapping[int, Ids],
        dictionary: Dictionary,
        has_aggregates: bool = False,
    ) -> None:
        self._query = query
        # An aggregate may compute a number that the dictionary does not have yet.
        self._find = dictionary.id if has_aggregates else dictionary.find
        self._sets = {place: np.unique(ids) for place, ids in admissible.items()}
        self._labels: dict[int, frozenset[Constant]] = {
            place: frozenset(dictionary.terms(self._sets[place].tolist()))
            for place in (1, 2)
            if query.relation == TRIPLE and place in self._sets
        }

    def all(self, query: Atom, facts: Facts) -> list[tuple[Atom, AtomValues]]:
        """The values for each predicate that has facts."""
        atoms = narrow_atoms(query, facts.predicates())
        return [(atom, values) for atom in atoms if (values := self.of(atom)) is not None]

    def of(self, atom: Atom) -> AtomValues | None:
        """The values for a predicate that the query covers; None if nothing can match."""
        predicate = narrow_predicate(atom)
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
        return AtomValues(bound, table, sets)


def lookup_rule(
    predicate: Predicate, values: AtomValues, number: int, shape: tuple[int, ...]
) -> Rule:
    """P(…) :- P(…), bound(…), admissible(…): the rule that selects the matching facts."""
    terms = [Variable(f"v{place}") for place in shape]
    atom = atom_of(predicate, terms)
    body = [atom]
    if any(values.bound):
        bound_terms = tuple(t for t, bound in zip(terms, values.bound, strict=True) if bound)
        body.append(Atom(bound_relation(number, values.bound).relation, bound_terms))
    body += [Atom(admissible_relation(at).relation, (terms[at],)) for at in values.admissible]
    return Rule(atom, tuple(body))


def bound_relation(number: int, bound: tuple[bool, ...]) -> Predicate:
    """The relation of values for bound terms."""
    return Predicate(f"BOUND {number} {''.join('bf'[not b] for b in bound)}")


def admissible_relation(place: int) -> Predicate:
    """The relation of admissible values for one of the open terms."""
    return Predicate(f"ADMISSIBLE {place}")
