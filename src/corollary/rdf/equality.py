"""`owl:sameAs` by rewriting: replace the terms of facts and rules by their representatives.

The rules of equality (eq-sym, eq-trans, eq-rep-s, eq-rep-p, eq-rep-o) become redundant and are
removed from the program. A filter tests terms, not their classes, so a rule with a filter becomes
several: for each variable of the filter, one that tests the representative and one that tests the
other members, which `EQUAL` lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations, permutations, product

import numpy as np

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.core.tables import Tables, joined, narrow
from corollary.errors import InvalidInput
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import substituted_atom
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    Aggregate,
    Atom,
    Bind,
    BodyLiteral,
    Constant,
    Filter,
    Negation,
    Rule,
    Term,
    Variable,
)
from corollary.rdf.classes import Classes
from corollary.rdf.rulesets import rules

SAME_AS = IRI("http://www.w3.org/2002/07/owl#sameAs")
SAME = Predicate(TRIPLE, SAME_AS)
EQUAL = Predicate("_=")  # (representative, other member); not a valid identifier
NEEDED = ("eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o")
_SAME = "_same"  # of owl-rl: equalities between different terms


@cache
def equality_rules() -> dict[Rule, str]:
    """Return the rules that representatives make redundant, in all orders of their atoms, by name.

    These are the rules of `owl-rl`, and the standard's forms with `owl:sameAs` instead of `_same`.

    >>> x, y = Variable("x"), Variable("y")
    >>> symmetric = Rule(Atom(TRIPLE, (y, SAME_AS, x)), (Atom(TRIPLE, (x, SAME_AS, y)),))
    >>> equality_rules()[symmetric]
    'eq-sym'
    """
    found: dict[Rule, str] = {}
    for rule in rules("owl-rl").rules:
        if rule.name not in NEEDED or rule.head.relation != TRIPLE:
            continue
        standard = tuple(
            Atom(TRIPLE, (part.terms[0], SAME_AS, part.terms[1]))
            if isinstance(part, Atom) and part.relation == _SAME
            else part
            for part in rule.body
        )
        for body in (*permutations(rule.body), *permutations(standard)):
            found[Rule(rule.head, body)] = rule.name
    return found


def is_reflexive(rule: Rule) -> bool:
    """Test whether a rule derives only that a term equals itself (eq-ref).

    >>> is_reflexive(next(rule for rule in rules("owl-rl").rules if rule.name == "eq-ref"))
    True
    """
    head = rule.head
    return (
        head.relation == TRIPLE
        and head.terms[1] == SAME_AS
        and isinstance(head.terms[0], Variable)
        and head.terms[0] == head.terms[2]
    )


def without_equality(program: Program) -> tuple[Rule, ...]:
    """Remove the rules of equality from a program.

    The program must have the rules of equality, but neither negation nor aggregates.
    """
    known = equality_rules()
    has = {known[rule] for rule in program.rules if rule in known}
    if missing := [name for name in NEEDED if name not in has]:
        raise InvalidInput(
            "E312",
            f"terms cannot be replaced by representatives: the program has no {', '.join(missing)}",
            "equality by representatives is for owl-rl, and for programs with its rules eq-*",
        )
    left = [rule for rule in (*program.rules, *program.constraints) if rule not in known]
    for rule in left:
        if any(isinstance(part, Negation | Aggregate | Bind) for part in rule.body):
            text = Printer(program.prefixes).rule(rule)
            raise InvalidInput(
                "E312",
                f"terms cannot be replaced by representatives under NOT, AGGREGATE or BIND: {text}",
                "use equality by rules",
            )
    if not any(atom.relation == _SAME for rule in left for atom, _ in rule.atoms()):
        left = [rule for rule in left if rule.head.relation != _SAME]
    return tuple(left)


def constants(program: Iterable[Rule], dictionary: Dictionary) -> Ids:
    """Return the constants in the atoms of rules; filters test terms, not classes."""
    found: dict[Constant, None] = {}
    for rule in program:
        for atom in (rule.head, *(atom for atom, _ in rule.atoms())):
            found.update(dict.fromkeys(atom.constants()))
    return dictionary.encode(found)


def rewritten_rule(rule: Rule, classes: Classes, dictionary: Dictionary) -> Iterator[Rule]:
    """Rewrite a rule to representatives; returns several rules if filters have variables."""
    head = rewritten_atom(rule.head, classes, dictionary)
    body: list[BodyLiteral] = [
        rewritten_atom(part, classes, dictionary) if isinstance(part, Atom) else part
        for part in rule.body
    ]
    filters = [part for part in body if isinstance(part, Filter)]
    looked_at = list(dict.fromkeys(v for part in filters for v in part.variables()))
    for number in range(len(looked_at) + 1):
        for chosen in combinations(looked_at, number):
            # The filter keeps its variable; the atoms get a variable for the representative.
            renaming: dict[Variable, Variable] = {v: Variable(f"{v.name}~") for v in chosen}
            parts = [substituted_atom(p, renaming) if isinstance(p, Atom) else p for p in body]
            links = [Atom(EQUAL.relation, (renaming[v], v)) for v in chosen]
            yield Rule(substituted_atom(head, renaming), (*parts, *links), rule.name, rule.span)


def rewritten_atom(atom: Atom, classes: Classes, dictionary: Dictionary) -> Atom:
    """Replace the constants of an atom by their representatives."""

    def term(old: Term) -> Term:
        if isinstance(old, Variable):
            return old
        new = classes.of_one(term_id := dictionary.id(old))
        return old if new == term_id else dictionary.term(new)

    return Atom(atom.relation, tuple(map(term, atom.terms)), atom.span)


def rewritten(facts: Facts, classes: Classes, dictionary: Dictionary) -> Tables:
    """Rewrite facts: replace every term, property and class by its representative.

    >>> from corollary.core.tables import encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> engine = ColumnarEngine(Dictionary())
    >>> program = Program.parse("[<a>, <p>, <b>] . [<c>, <p>, <b>] .")
    >>> facts = engine.facts(encode(program.facts, engine.dictionary))
    >>> classes = Classes().merged(engine.dictionary.encode([IRI("a"), IRI("c")]).reshape(1, 2))
    >>> [rows.tolist() for rows in rewritten(facts, classes, engine.dictionary).values()]
    [[[0, 1], [0, 1]]]
    """
    if not len(classes):
        return {predicate: facts.rows(predicate) for predicate in facts.predicates()}
    parts: list[Tables] = []
    for predicate in facts.predicates():
        rows = facts.rows(predicate)
        columns = [classes.of(rows[:, position]) for position in range(rows.shape[1])]
        if predicate.relation != TRIPLE:
            parts.append({predicate: _stacked(columns, len(rows))})
            continue
        named = _named(predicate, dictionary)
        new = [classes.of_one(term_id) for term_id in named]
        parts.append(_placed(predicate, columns, named, new, dictionary))
    return joined(parts)


def expanded(facts: Facts, classes: Classes, dictionary: Dictionary) -> Tables:
    """Expand facts of representatives to the facts of all members."""
    parts: list[Tables] = []
    for predicate in facts.predicates():
        if predicate == EQUAL:
            continue
        rows = facts.rows(predicate)
        columns = classes.expanded([rows[:, position] for position in range(rows.shape[1])])
        count = len(columns[0]) if columns else len(rows)
        if predicate.relation != TRIPLE:
            parts.append({predicate: _stacked(columns, count)})
            continue
        named = _named(predicate, dictionary)
        parts += [
            _placed(predicate, columns, named, list(new), dictionary)
            for new in product(*(classes.members_of(term_id) for term_id in named))
        ]
    return joined(parts)


def count_expanded(facts: Facts, classes: Classes, dictionary: Dictionary) -> int:
    """Count the facts of `expanded`; expansions of different facts are disjoint."""
    total = 0
    for predicate in facts.predicates():
        if predicate == EQUAL:
            continue
        rows = facts.rows(predicate)
        each = np.ones(len(rows), np.int64)
        for position in range(rows.shape[1]):
            each *= classes.sizes(rows[:, position])
        number = int(each.sum())
        if predicate.relation == TRIPLE:
            for term_id in _named(predicate, dictionary):
                number *= len(classes.members_of(term_id))
        total += number
    return total


def _named(predicate: Predicate, dictionary: Dictionary) -> list[int]:
    """Return the property of a predicate, and its class if it has one."""
    assert predicate.property is not None, "a narrow predicate of triples has a property"
    named = [dictionary.id(predicate.property)]
    if predicate.member_of is not None:
        named.append(dictionary.id(predicate.member_of))
    return named


def _placed(
    predicate: Predicate,
    columns: list[Ids],
    named: list[int],
    new: list[int],
    dictionary: Dictionary,
) -> Tables:
    """Convert columns of a predicate to facts of the property (and class) `new`."""
    if named == new:
        return {predicate: np.stack(columns, axis=1)}
    property_, *class_ = (np.full(len(columns[0]), term_id, np.uint32) for term_id in new)
    return narrow(TRIPLE, [columns[0], property_, *columns[1:], *class_], dictionary)


def _stacked(columns: list[Ids], rows: int) -> Ids:
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0), np.uint32)


def mentions(predicate: Predicate, terms: Ids, dictionary: Dictionary) -> bool:
    """Test whether the property or class of a predicate is among the terms."""
    if predicate.relation != TRIPLE:
        return False
    return any(bool((terms == term_id).any()) for term_id in _named(predicate, dictionary))
