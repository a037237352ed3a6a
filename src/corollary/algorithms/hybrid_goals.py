"""Goals: the atomic queries of backward chaining, up to the values of their bound terms.

A goal is a predicate with the places whose values are known when it is asked: `memberOf(?x, ?y)`
with ?y bound stands for all queries `memberOf(?x, c)` at once. Their values c are the facts of a
relation of the goal's own, which rules read and derive like any other. So there are finitely many
goals for a program, and each is a set of queries (Lemma 1 of the paper).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from corollary.core.compile import TRIPLES, TYPES, covers, home, open_terms
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import substituted
from corollary.lang.syntax import (
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
    Constant,
    Filter,
    Rule,
    Term,
    Variable,
)
from corollary.lang.validate import validate

_ASKED = "ASKED "  # a space: no relation of a program is named so


@dataclass(frozen=True)
class Goal:
    """Queries of one predicate: which of the terms that it leaves open have values.

    Where every rule for the predicate has a constant in a place, as for the cells of lists, queries
    with different constants there are different goals (`constants`): few rules unify with each.
    """

    predicate: Predicate
    bound: tuple[bool, ...]
    constants: tuple[Constant | None, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether no values are asked for, only facts of a predicate, or with some constants."""
        return not any(self.bound)

    @cached_property
    def _text(self) -> str:
        letters = "".join("bf"[not bound] for bound in self.bound)
        printer = Printer()
        named = [printer.term(term) for term in self.constants if term is not None]
        return " ".join([self.predicate.describe(printer), letters, *named])

    @cached_property
    def asked(self) -> Predicate:
        """The relation of the values that are asked for."""
        return Predicate(_ASKED + self._text)

    def guard(self, atom: Atom) -> Atom:
        """The values of an atom's bound terms, as an atom of the goal's relation."""
        terms = open_terms(atom, self.predicate)
        chosen = tuple([t for t, bound in zip(terms, self.bound, strict=True) if bound])
        return Atom(self.asked.relation, chosen)

    def subsumes(self, other: Goal) -> bool:
        """Whether what answers this goal answers the other one, whatever its values."""
        if self.constants and self.constants != other.constants:
            return False
        if self.predicate is other.predicate:
            return not any(
                mine and not its for mine, its in zip(self.bound, other.bound, strict=True)
            )
        return self.is_free and covers(self.predicate, other.predicate)


def is_asked(predicate: Predicate) -> bool:
    """Whether the facts of a predicate are values that goals ask for."""
    return predicate.relation.startswith(_ASKED)


def arity(predicate: Predicate, atom: Atom) -> int:
    """How many terms the predicate of an atom leaves open."""
    return len(open_terms(atom, predicate))


def goal_of(atom: Atom, known: Iterable[Term] = (), apart: Collection[int] = ()) -> Goal:
    """The goal of an atom whose constants and known variables have values.

    At the places `apart` its constants belong to the goal.
    """
    predicate = home(atom)
    given = frozenset(known)
    terms = open_terms(atom, predicate)
    constants = tuple(
        [t if at in apart and not isinstance(t, Variable) else None for at, t in enumerate(terms)]
    )
    bound = tuple(
        [
            (not isinstance(term, Variable) or term in given) and constants[at] is None
            for at, term in enumerate(terms)
        ]
    )
    return Goal(predicate, bound, constants if any(constants) else ())


def free(predicate: Predicate, atom: Atom) -> Goal:
    """The goal that asks for all facts of a predicate, which the atom is of."""
    return Goal(predicate, (False,) * arity(predicate, atom))


def is_instance(atom: Atom, pattern: Atom) -> bool:
    """atom ⊑ pattern: whether every fact that matches the atom matches the pattern.

    >>> from corollary.lang.parser import parse_atom
    >>> x = parse_atom("[?x, a, owl:Class]", {}, "")
    >>> (
    ...     is_instance(x, parse_atom("[?y, a, ?z]", {}, "")),
    ...     is_instance(x, parse_atom("[?y, a, ?y]", {}, "")),
    ... )
    (True, False)
    """
    if atom.relation != pattern.relation or len(atom.terms) != len(pattern.terms):
        return False
    values: dict[Term, Term] = {}
    for mine, other in zip(pattern.terms, atom.terms, strict=True):
        if (values.setdefault(mine, other) if isinstance(mine, Variable) else mine) != other:
            return False
    return True


class Patterns:
    """Patterns by predicate: L, the queries whose answers are kept."""

    def __init__(self, patterns: Iterable[Atom] = ()) -> None:
        self.patterns = tuple(patterns)
        self._by_predicate: dict[Predicate, list[Atom]] = {}
        for pattern in self.patterns:
            self._by_predicate.setdefault(home(pattern), []).append(pattern)

    def cover(self, atom: Atom) -> bool:
        """Whether an atom is an instance of one of the patterns."""
        predicate = home(atom)
        return any(
            is_instance(atom, pattern)
            for wide in (predicate, *wide_of(predicate))
            for pattern in self._by_predicate.get(wide, ())
        )


def wide_of(predicate: Predicate) -> tuple[Predicate, ...]:
    """The wide predicates that cover a predicate, without itself."""
    if predicate.relation != TRIPLE or predicate is TRIPLES:
        return ()
    if predicate.property == TYPE and predicate is not TYPES:
        return (TYPES, TRIPLES)
    return (TRIPLES,)


def may_meet(one: Predicate, two: Predicate) -> bool:
    """Whether some fact may belong to both predicates."""
    return covers(one, two) or covers(two, one)


def unified(rule: Rule, predicate: Predicate) -> Rule | None:
    """The rule for heads of a predicate (θₕ of Algorithm 1), None if it derives none of these.

    >>> from corollary.lang.program import Program
    >>> from corollary.lang.printer import Printer
    >>> from corollary.lang.syntax import IRI
    >>> rule = Program.parse("[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .").rules[0]
    >>> print(Printer().rule(unified(rule, Predicate(TRIPLE, TYPE, IRI("C")))))
    [?x, a, <C>] :- [?c, rdfs:subClassOf, <C>], [?x, a, ?c] .
    """
    own = home(rule.head)
    if covers(predicate, own):
        return rule
    if not covers(own, predicate):
        return None
    if any(isinstance(part, Aggregate) for part in rule.body):
        return rule  # which derives more than is asked for
    values: dict[Term, Term] = {}
    label = (predicate.property, predicate.member_of)
    for term, value in zip(rule.head.terms[1:], label, strict=True):
        if value is not None:
            found = values.setdefault(term, value) if isinstance(term, Variable) else term
            if found != value:
                return None
    instance = substituted(rule, values)
    if any(isinstance(part, Filter) for part in rule.body) and validate([instance], whole=False):
        return rule  # a filter does not take this property or class: so it says nothing of it
    return instance


def is_wide(predicate: Predicate) -> bool:
    """Whether a predicate stands for all triples or all classes."""
    return predicate is TRIPLES or predicate is TYPES
