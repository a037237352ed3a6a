"""Facts as tables of ids by narrow predicate, between terms and engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.compile import TRIPLES, TYPES, constant_id, covers, home, home_terms
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts, Support
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Constant, Term, Variable

Tables = Mapping[Predicate, Ids]


def encode(atoms: Iterable[Atom], dictionary: Dictionary) -> Tables:
    """Ground atoms as tables.

    >>> from corollary.lang.program import Program
    >>> encode(Program.parse("e(1, 2) . e(2, 2) .").facts, Dictionary())[Predicate("e")].tolist()
    [[0, 1], [1, 1]]
    """
    rows: dict[Predicate, list[Sequence[Constant]]] = {}
    for atom in atoms:
        terms = [term for term in home_terms(atom) if not isinstance(term, Variable)]
        rows.setdefault(home(atom), []).append(terms)
    return {
        predicate: dictionary.encode(term for terms in found for term in terms).reshape(
            len(found), len(found[0])
        )
        for predicate, found in rows.items()
    }


def is_known(atom: Atom, dictionary: Dictionary) -> bool:
    """Whether the dictionary has what the predicate of an atom leaves open; else no fact matches.

    The properties and classes of facts need not be in the dictionary.
    """
    constants = (term for term in home_terms(atom) if not isinstance(term, Variable))
    return all(dictionary.find(term) is not None for term in constants)


def decode(facts: Facts, dictionary: Dictionary) -> Iterator[Atom]:
    """The facts of an engine as atoms."""
    for predicate in facts.predicates():
        for row in facts.rows(predicate).tolist():
            yield atom_of(predicate, dictionary.terms(row))


def atom_of(predicate: Predicate, terms: Sequence[Constant]) -> Atom:
    """The fact of a narrow predicate with these terms."""
    if predicate.relation != TRIPLE:
        return Atom(predicate.relation, tuple(terms))
    if predicate.member_of is not None:
        return Atom(TRIPLE, (terms[0], TYPE, predicate.member_of))
    assert predicate.property is not None, "a narrow predicate of triples has a property"
    return Atom(TRIPLE, (terms[0], predicate.property, terms[1]))


def scatter(
    wide: Predicate, columns: Sequence[Ids], dictionary: Dictionary
) -> Iterator[tuple[Predicate, list[Ids], npt.NDArray[np.int64]]]:
    """The rows of all triples (or all types) by narrow predicates, with the numbers of the rows."""
    subject, label = columns[0], columns[1]  # the label is the property, or the class
    order = np.argsort(label, kind="stable")
    labels, starts = np.unique(label[order], return_index=True)
    terms = dictionary.terms(labels.tolist())
    for term, rows in zip(terms, np.split(order, starts[1:]), strict=True):
        if wide == TYPES:
            yield Predicate(TRIPLE, TYPE, term), [subject[rows]], rows
        elif term == TYPE:
            for narrow, part, inner in scatter(
                TYPES, [subject[rows], columns[2][rows]], dictionary
            ):
                yield narrow, part, rows[inner]
        else:
            yield Predicate(TRIPLE, term), [subject[rows], columns[2][rows]], rows


def narrow(relation: str, columns: Sequence[Ids], dictionary: Dictionary) -> Tables:
    """Columns of a relation, or of triples, as tables."""
    if relation != TRIPLE:
        return {Predicate(relation): np.stack(columns, axis=1)}
    if not len(columns[0]):
        return {}
    return {p: np.stack(part, axis=1) for p, part, _ in scatter(TRIPLES, columns, dictionary)}


def joined(tables: Iterable[Tables]) -> Tables:
    """Tables one below the other."""
    parts: dict[Predicate, list[Ids]] = {}
    for table in tables:
        for predicate, rows in table.items():
            parts.setdefault(predicate, []).append(rows)
    return {predicate: np.concatenate(rows) for predicate, rows in parts.items()}


def body_tables(
    support: Support, dictionary: Dictionary, wanted: Callable[[Predicate], bool]
) -> Tables:
    """The facts in the bodies of instances, of those atoms whose predicate is wanted."""
    parts: list[Tables] = []
    bindings = support.bindings
    for pattern in support.rule.body:
        if not wanted(pattern.predicate):
            continue
        columns = [
            bindings[:, a] if a >= 0 else np.full(len(bindings), constant_id(a), np.uint32)
            for a in pattern.arguments
        ]
        if pattern.wide:
            found = scatter(pattern.predicate, columns, dictionary)
            parts.append({p: np.stack(part, axis=1) for p, part, _ in found})
        elif columns:
            parts.append({pattern.predicate: np.stack(columns, axis=1)})
        else:
            parts.append({pattern.predicate: np.zeros((len(bindings), 0), np.uint32)})
    return joined(parts)


def narrow_atoms(atom: Atom, predicates: Iterable[Predicate]) -> Iterator[Atom]:
    """The atom with the properties and classes of predicates in the place of its variables.

    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.syntax import IRI
    >>> [found] = narrow_atoms(parse_atom("[?x, ?p, ?y]", {}, ""), [Predicate(TRIPLE, IRI("q"))])
    >>> found.terms[1]
    IRI(value='q')
    """
    wide = home(atom)
    if wide not in (TRIPLES, TYPES):
        yield atom
        return
    for predicate in predicates:
        if predicate in (TRIPLES, TYPES) or not covers(wide, predicate):
            continue
        values: dict[Term, Term] = {}
        for term, value in zip(
            atom.terms[1:], (predicate.property, predicate.member_of), strict=True
        ):
            if value is not None and values.setdefault(term, value) != value:
                break
        else:
            terms = tuple(values.get(term, term) for term in atom.terms)
            # A constant is not replaced, and must be what the predicate has.
            if all(
                old == new or isinstance(old, Variable)
                for old, new in zip(atom.terms, terms, strict=True)
            ):
                yield Atom(TRIPLE, terms)


def first_rows(facts: Facts, number: int) -> Tables:
    """Some of the facts, so many if there are."""
    tables = {}
    for predicate in facts.predicates():
        if number > 0:
            tables[predicate] = facts.rows(predicate)[:number]
            number -= len(tables[predicate])
    return tables
