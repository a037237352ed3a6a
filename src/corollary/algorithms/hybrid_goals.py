"""Goals: the atomic queries of backward chaining, up to the values of their bound terms.

A goal is a predicate with a binding pattern (adornment): `memberOf(?x, ?y)` with ?y bound stands
for all queries `memberOf(?x, c)` at once. The values c are the facts of a relation of the goal (a
magic set), which rules read and derive like any other. So a program has finitely many goals, and
each is a set of queries (Lemma 1 of the paper).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from corollary.algorithms.strata import with_wide
from corollary.core.compile import TRIPLES, TYPES, covers, narrow_predicate, open_terms
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import label_values, matched, substituted
from corollary.lang.syntax import (
    Aggregate,
    Atom,
    Bind,
    Constant,
    Filter,
    Rule,
    Term,
    Variable,
)
from corollary.lang.validate import validate

_ASKED = "ASKED "  # with a space, so that no program can name it


@dataclass(frozen=True)
class Goal:
    """The queries of one predicate with the same bound places.

    If every rule of the predicate has a constant at a place, as for the cells of lists, queries
    with different constants there are different goals (`constants`): few rules unify with each.
    """

    predicate: Predicate
    bound: tuple[bool, ...]
    constants: tuple[Constant | None, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether the goal binds no values."""
        return not any(self.bound)

    @property
    def whole(self) -> Goal:
        """The goal for all facts of its predicate."""
        return Goal(self.predicate, (False,) * len(self.bound))

    @cached_property
    def _text(self) -> str:
        letters = "".join("bf"[not bound] for bound in self.bound)
        printer = Printer()
        named = [printer.term(term) for term in self.constants if term is not None]
        return " ".join([self.predicate.describe(printer), letters, *named])

    @cached_property
    def asked(self) -> Predicate:
        """The relation of the bound values."""
        return Predicate(_ASKED + self._text)

    def guard(self, atom: Atom) -> Atom:
        """The atom of the goal's relation with the bound terms of an atom."""
        terms = open_terms(atom, self.predicate)
        bound_terms = tuple([t for t, bound in zip(terms, self.bound, strict=True) if bound])
        return Atom(self.asked.relation, bound_terms)

    def subsumes(self, other: Goal) -> bool:
        """Whether the answers to this goal include those to the other one, for all values."""
        if self.constants and self.constants != other.constants:
            return False
        if self.predicate is other.predicate:
            return not any(
                mine and not its for mine, its in zip(self.bound, other.bound, strict=True)
            )
        return self.is_free and covers(self.predicate, other.predicate)


def is_asked(predicate: Predicate) -> bool:
    """Whether the facts of a predicate are bound values of a goal."""
    return predicate.relation.startswith(_ASKED)


def goal_of(atom: Atom, known: Iterable[Term] = (), apart: Collection[int] = ()) -> Goal:
    """The goal of an atom that binds its constants and the known variables.

    At the places `apart`, its constants belong to the goal.
    """
    predicate = narrow_predicate(atom)
    known_terms = frozenset(known)
    terms = open_terms(atom, predicate)
    constants = tuple(
        [t if at in apart and not isinstance(t, Variable) else None for at, t in enumerate(terms)]
    )
    bound = tuple(
        [
            (not isinstance(term, Variable) or term in known_terms) and constants[at] is None
            for at, term in enumerate(terms)
        ]
    )
    return Goal(predicate, bound, constants if any(constants) else ())


def free(predicate: Predicate, atom: Atom) -> Goal:
    """The goal for all facts of the predicate of an atom."""
    return Goal(predicate, (False,) * len(open_terms(atom, predicate)))


class Patterns:
    """L, the pre-materialized queries, indexed by predicate.

    >>> from corollary.lang.parser import parse_atom
    >>> classes = parse_atom("[?x, a, owl:Class]", {}, "")
    >>> [
    ...     Patterns([parse_atom(text, {}, "")]).cover(classes)
    ...     for text in ("[?y, a, ?z]", "[?y, a, ?y]")
    ... ]
    [True, False]
    """

    def __init__(self, patterns: Iterable[Atom] = ()) -> None:
        self.patterns = tuple(patterns)
        self._by_predicate: dict[Predicate, list[Atom]] = {}
        for pattern in self.patterns:
            self._by_predicate.setdefault(narrow_predicate(pattern), []).append(pattern)

    def cover(self, atom: Atom) -> bool:
        """Whether an atom is an instance of one of the patterns (⊑)."""
        predicate = narrow_predicate(atom)
        return any(
            matched(pattern, atom, {}) is not None
            for wide in with_wide(predicate)
            for pattern in self._by_predicate.get(wide, ())
        )


def may_overlap(one: Predicate, two: Predicate) -> bool:
    """Whether some fact may belong to both predicates."""
    return covers(one, two) or covers(two, one)


def unified(rule: Rule, predicate: Predicate) -> Rule | None:
    """Instantiate a rule for heads of a predicate (θₕ of Algorithm 1); None if it derives none.

    >>> from corollary.lang.program import Program
    >>> from corollary.lang.printer import Printer
    >>> from corollary.lang.syntax import IRI, TRIPLE, TYPE
    >>> rule = Program.parse("[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .").rules[0]
    >>> print(Printer().rule(unified(rule, Predicate(TRIPLE, TYPE, IRI("C")))))
    [?x, a, <C>] :- [?c, rdfs:subClassOf, <C>], [?x, a, ?c] .
    """
    own = narrow_predicate(rule.head)
    if covers(predicate, own):
        return rule
    if not covers(own, predicate):
        return None
    if any(isinstance(part, Aggregate) for part in rule.body):
        return rule  # derives more than needed
    values = label_values(rule.head, predicate)
    if values is None:
        return None
    instance = substituted(rule, values)
    if any(isinstance(part, Filter | Bind) for part in rule.body) and validate(
        [instance], whole=False
    ):
        return rule  # a filter does not accept this property or class as a constant
    return instance


def is_wide(predicate: Predicate) -> bool:
    """Whether a predicate stands for all triples or all classes."""
    return predicate is TRIPLES or predicate is TYPES
