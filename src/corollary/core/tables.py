"""Convert facts between atoms and tables of ids by narrow predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.compile import (
    TRIPLES,
    TYPES,
    constant_id,
    covers,
    narrow_predicate,
    narrow_terms,
)
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts, Support
from corollary.core.ids import row_groups
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import label_values, substituted_atom
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Constant, Term, Variable

Tables = Mapping[Predicate, Ids]


def encode(atoms: Iterable[Atom], dictionary: Dictionary) -> Tables:
    """Encode ground atoms as tables.

    >>> from corollary.lang.program import Program
    >>> encode(Program.parse("e(1, 2) . e(2, 2) .").facts, Dictionary())[Predicate("e")].tolist()
    [[0, 1], [1, 1]]
    """
    rows: dict[Predicate, list[Sequence[Constant]]] = {}
    for atom in atoms:
        terms = [term for term in narrow_terms(atom) if not isinstance(term, Variable)]
        rows.setdefault(narrow_predicate(atom), []).append(terms)
    return {
        predicate: dictionary.encode(term for terms in table for term in terms).reshape(
            len(table), len(table[0])
        )
        for predicate, table in rows.items()
    }


def is_known(atom: Atom, dictionary: Dictionary) -> bool:
    """Whether the dictionary has the open constants of an atom; otherwise no fact matches.

    The properties and classes of facts need not be in the dictionary.
    """
    constants = (term for term in narrow_terms(atom) if not isinstance(term, Variable))
    return all(dictionary.find(term) is not None for term in constants)


def decode(facts: Facts, dictionary: Dictionary) -> Iterator[Atom]:
    """Decode facts into atoms."""
    for predicate in facts.predicates():
        for row in facts.rows(predicate).tolist():
            yield atom_of(predicate, dictionary.terms(row))


def atom_of(predicate: Predicate, terms: Sequence[Term]) -> Atom:
    """The atom of a narrow predicate with these terms."""
    if predicate.relation != TRIPLE:
        return Atom(predicate.relation, tuple(terms))
    if predicate.member_of is not None:
        return Atom(TRIPLE, (terms[0], TYPE, predicate.member_of))
    assert predicate.property is not None, "a narrow predicate of triples has a property"
    return Atom(TRIPLE, (terms[0], predicate.property, terms[1]))


def pattern_of(predicate: Predicate, arity: int = 2) -> Atom:
    """The atom that matches every fact of a narrow predicate.

    >>> pattern_of(Predicate("edge"))
    Atom(relation='edge', terms=(Variable(name='v0'), Variable(name='v1')))
    """
    return atom_of(predicate, [Variable(f"v{position}") for position in range(arity)])


def scatter(
    wide: Predicate, columns: Sequence[Ids], dictionary: Dictionary
) -> Iterator[tuple[Predicate, list[Ids], npt.NDArray[np.int64]]]:
    """Partition rows of triples (or types) by narrow predicate; yield the row numbers too."""
    subject, label = columns[0], columns[1]  # the label is the property, or the class
    groups = list(row_groups(label))
    terms = dictionary.terms([term_id for term_id, _ in groups])
    for term, (_, rows) in zip(terms, groups, strict=True):
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
    """Convert columns of a relation, or of triples, to tables."""
    if relation != TRIPLE:
        return {Predicate(relation): np.stack(columns, axis=1)}
    if not len(columns[0]):
        return {}
    return {p: np.array(part).T for p, part, _ in scatter(TRIPLES, columns, dictionary)}


def argument_columns(predicate: Predicate, rows: Ids, dictionary: Dictionary) -> list[Ids]:
    """The arguments of a narrow predicate's facts; for triples subject, property and object."""
    columns: list[Ids] = [*rows.T]
    if predicate.relation == TRIPLE:
        assert predicate.property is not None, "triples are stored by property"
        labels = [predicate.property]
        if predicate.member_of is not None:
            labels = [TYPE, predicate.member_of]
        columns[1:1] = [np.full(len(rows), dictionary.id(term), np.uint32) for term in labels]
    return columns


def joined(tables: Iterable[Tables]) -> Tables:
    """Concatenate tables by predicate."""
    parts: dict[Predicate, list[Ids]] = {}
    for table in tables:
        for predicate, rows in table.items():
            parts.setdefault(predicate, []).append(rows)
    return {
        predicate: np.concatenate(rows) if len(rows) > 1 else rows[0]
        for predicate, rows in parts.items()
    }


def body_tables(
    support: Support, dictionary: Dictionary, wanted: Callable[[Predicate], bool]
) -> Tables:
    """The body facts of instances, for the atoms whose predicate is `wanted`."""
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
            narrowed = scatter(pattern.predicate, columns, dictionary)
            parts.append({p: np.stack(part, axis=1) for p, part, _ in narrowed})
        elif columns:
            parts.append({pattern.predicate: np.stack(columns, axis=1)})
        else:
            parts.append({pattern.predicate: np.zeros((len(bindings), 0), np.uint32)})
    return joined(parts)


def narrow_atoms(atom: Atom, predicates: Iterable[Predicate]) -> Iterator[Atom]:
    """Instantiate the property and class of a wide atom for each predicate that it covers.

    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.syntax import IRI
    >>> [atom] = narrow_atoms(parse_atom("[?x, ?p, ?y]", {}, ""), [Predicate(TRIPLE, IRI("q"))])
    >>> atom.terms[1]
    IRI(value='q')
    """
    wide = narrow_predicate(atom)
    if wide not in (TRIPLES, TYPES):
        yield atom
        return
    for predicate in predicates:
        if predicate in (TRIPLES, TYPES) or not covers(wide, predicate):
            continue
        values = label_values(atom, predicate)
        if values is not None:
            yield substituted_atom(atom, values)


def first_rows(facts: Facts, number: int) -> Tables:
    """The first `number` facts, or all if there are fewer."""
    tables = {}
    for predicate in facts.predicates():
        if number > 0:
            tables[predicate] = facts.rows(predicate)[:number]
            number -= len(tables[predicate])
    return tables
