"""Symmetric variants: violations of a constraint that differ only by an exchange of its variables.

`?x` and `?y` of `false :- [?x, owl:differentFrom, ?y], [?x, owl:sameAs, ?y]` may be exchanged,
because both properties are symmetric: the violations (a, b) and (b, a) are one. An exchange is a
permutation of the variables of a rule that maps its positive atoms to themselves. Filters do not
matter: both variants are violations, so the filters hold for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corollary.core.dictionary import Ids
from corollary.lang.syntax import IRI, TRIPLE, Atom, Rule, Term, Variable

_OWL = "http://www.w3.org/2002/07/owl#"
SYMMETRIC = frozenset(
    IRI(_OWL + name)
    for name in (
        "sameAs", "differentFrom", "disjointWith", "propertyDisjointWith", "equivalentClass",
        "equivalentProperty", "inverseOf",
    )
)  # fmt: skip
_MOST_ATOMS = 12  # of a body that is searched for exchanges

Renaming = dict[Variable, Variable]


def distinct_rows(rule: Rule, variables: Sequence[Variable], rows: Ids) -> Ids:
    """Keep one of the rows that are symmetric variants of each other, the first.

    >>> from corollary.lang.program import Program
    >>> [rule] = Program.parse("false :- p(?x, ?z), p(?y, ?z), q(?x), q(?y) .").constraints
    >>> x, y, z = (Variable(name) for name in "xyz")
    >>> distinct_rows(rule, (x, y, z), np.array([[1, 2, 5], [2, 1, 5], [3, 3, 5]])).tolist()
    [[1, 2, 5], [3, 3, 5]]
    """
    exchanges = list(_exchanges(rule))
    if not exchanges or not len(rows):
        return rows
    places = {variable: place for place, variable in enumerate(variables)}
    least = rows
    for exchange in exchanges:
        order = [places[exchange.get(variable, variable)] for variable in variables]
        least = _lesser(least, rows[:, order])
    _, first = np.unique(least, axis=0, return_index=True)
    kept: Ids = rows[np.sort(first)]
    return kept


def _lesser(one: Ids, other: Ids) -> Ids:
    """The lexicographically lesser of two arrays, row by row."""
    differs = one != other
    place = differs.argmax(axis=1)
    number = np.arange(len(one))
    is_less = other[number, place] < one[number, place]
    lesser: Ids = np.where(is_less[:, None], other, one)
    return lesser


def _exchanges(rule: Rule) -> Iterator[Renaming]:
    """The permutations of variables, except identity, that map the positive atoms to themselves."""
    atoms = [part for part in rule.body if isinstance(part, Atom)]
    if len(atoms) > _MOST_ATOMS:
        return
    own = {_canonical(atom) for atom in atoms}
    for renaming in _renamings(atoms, atoms, {}):
        moved = {name: image for name, image in renaming.items() if name != image}
        if moved and len({*renaming.values()}) == len(renaming):
            images = {_canonical(_renamed(atom, renaming)) for atom in atoms}
            if images == own:
                yield moved


def _renamings(left: Sequence[Atom], atoms: Sequence[Atom], known: Renaming) -> Iterator[Renaming]:
    """Map every atom to some atom by a consistent renaming."""
    if not left:
        yield known
        return
    for atom in atoms:
        for image in _readings(atom):
            extended = _mapped(left[0], image, known)
            if extended is not None:
                yield from _renamings(left[1:], atoms, extended)


def _readings(atom: Atom) -> Iterator[Atom]:
    yield atom
    if atom.relation == TRIPLE and atom.terms[1] in SYMMETRIC:
        subject, property_, object_ = atom.terms
        yield Atom(TRIPLE, (object_, property_, subject))


def _mapped(atom: Atom, image: Atom, known: Renaming) -> Renaming | None:
    if atom.relation != image.relation or len(atom.terms) != len(image.terms):
        return None
    renaming = dict(known)
    for term, other in zip(atom.terms, image.terms, strict=True):
        if isinstance(term, Variable) and isinstance(other, Variable):
            if renaming.setdefault(term, other) != other:
                return None
        elif term != other:
            return None
    return renaming


def _renamed(atom: Atom, renaming: Renaming) -> Atom:
    terms = (renaming.get(t, t) if isinstance(t, Variable) else t for t in atom.terms)
    return Atom(atom.relation, tuple(terms))


def _canonical(atom: Atom) -> tuple[str, tuple[Term, ...]]:
    if atom.relation == TRIPLE and atom.terms[1] in SYMMETRIC:
        subject, property_, object_ = atom.terms
        first, last = sorted((subject, object_), key=str)
        return atom.relation, (first, property_, last)
    return atom.relation, atom.terms
