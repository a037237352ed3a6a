"""`owl:sameAs` by representatives: facts and rules with every term replaced by its representative.

The rules of equality (eq-sym, eq-trans, eq-rep-s, eq-rep-p, eq-rep-o) then have nothing left to do,
and are taken out of the program. A filter looks at terms themselves, not at what they stand for, so
that a rule with one becomes several: for each variable of the filter, one that looks at the
representative and one that looks at the other members, which `EQUAL` lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations, permutations, product

import numpy as np

from corollary.core.compile import home
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Facts
from corollary.core.tables import Tables, joined, narrow
from corollary.errors import InvalidInput
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    IRI,
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
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
EQUAL = Predicate("_=")  # a representative with each other member; no identifier looks like this
NEEDED = ("eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o")
_SAME = "_same"  # of owl-rl: equalities between different terms


@cache
def equality_rules() -> dict[Rule, str]:
    """The rules that representatives make superfluous, in all their forms, with their names.

    They are those of `owl-rl`, and the same with `owl:sameAs` in the place of `_same`, as the
    standard has them.

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
    """Whether the rule derives nothing but that a term is the same as itself (eq-ref).

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
    """The rules and constraints that are left for a program that is kept by representatives.

    The program must have the rules of equality, and neither negation nor aggregates.
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
        if any(isinstance(part, Negation | Aggregate) for part in rule.body):
            text = Printer(program.prefixes).rule(rule)
            raise InvalidInput(
                "E312",
                f"terms cannot be replaced by representatives under NOT or AGGREGATE: {text}",
                "use equality by rules",
            )
    if not any(_reads(rule, _SAME) for rule in left):
        left = [rule for rule in left if rule.head.relation != _SAME]
    return tuple(left)


def _reads(rule: Rule, relation: str) -> bool:
    return any(atom.relation == relation for atom, _ in rule.atoms())


def constants(program: Iterable[Rule], dictionary: Dictionary) -> Ids:
    """The terms that rules name in atoms; what filters name stands for itself."""
    found: dict[Constant, None] = {}
    for rule in program:
        for atom in (rule.head, *(atom for atom, _ in rule.atoms())):
            found.update(dict.fromkeys(atom.constants()))
    return dictionary.encode(found)


def rewritten_rule(rule: Rule, classes: Classes, dictionary: Dictionary) -> Iterator[Rule]:
    """The rule in terms of representatives; several if filters have variables (see above)."""
    head = rewritten_atom(rule.head, classes, dictionary)
    body: list[BodyLiteral] = [
        rewritten_atom(part, classes, dictionary) if isinstance(part, Atom) else part
        for part in rule.body
    ]
    filters = [part for part in body if isinstance(part, Filter)]
    looked_at = list(dict.fromkeys(v for part in filters for v in part.variables()))
    for number in range(len(looked_at) + 1):
        for chosen in combinations(looked_at, number):
            # The filter keeps the variable; the atoms get one for the representative.
            stands = {v: Variable(f"{v.name}~") for v in chosen}
            parts = [_renamed(p, stands) if isinstance(p, Atom) else p for p in body]
            links = [Atom(EQUAL.relation, (stands[v], v)) for v in chosen]
            yield Rule(_renamed(head, stands), (*parts, *links), rule.name, rule.span)


def _renamed(atom: Atom, names: dict[Variable, Variable]) -> Atom:
    if not names:
        return atom
    terms = (names.get(t, t) if isinstance(t, Variable) else t for t in atom.terms)
    return Atom(atom.relation, tuple(terms), atom.span)


def rewritten_atom(atom: Atom, classes: Classes, dictionary: Dictionary) -> Atom:
    """The atom with representatives in the place of its constants."""

    def term(old: Term) -> Term:
        if isinstance(old, Variable):
            return old
        new = classes.of_one(term_id := dictionary.id(old))
        return old if new == term_id else dictionary.term(new)

    return Atom(atom.relation, tuple(map(term, atom.terms)), atom.span)


def rewritten(facts: Facts, classes: Classes, dictionary: Dictionary) -> Tables:
    """Facts with every term, property and class replaced by its representative.

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
    """All facts that facts of representatives stand for."""
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
    """How many facts `expanded` would give: what facts stand for never overlaps."""
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
    """The property of a predicate, and its class if it has one."""
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
    """Columns of a predicate as facts of the one with the property (and class) `new`."""
    if named == new:
        return {predicate: np.stack(columns, axis=1)}
    property_ = dictionary.term(new[0])
    if property_ == TYPE and predicate.member_of is not None:
        return {Predicate(TRIPLE, TYPE, dictionary.term(new[1])): np.stack(columns, axis=1)}
    if predicate.member_of is not None:  # rdf:type is replaced by another property
        columns = [columns[0], np.full(len(columns[0]), new[1], np.uint32)]
    if property_ != TYPE:
        return {Predicate(TRIPLE, property_): np.stack(columns, axis=1)}
    middle = np.full(len(columns[0]), new[0], np.uint32)
    return narrow(TRIPLE, [columns[0], middle, columns[1]], dictionary)


def _stacked(columns: list[Ids], rows: int) -> Ids:
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0), np.uint32)


def mentions(predicate: Predicate, terms: set[Constant]) -> bool:
    """Whether the predicate is a property or class among the terms."""
    return predicate.property in terms or predicate.member_of in terms


def place(predicate: Predicate, arity: int) -> Atom:
    """An atom that matches every fact of a narrow predicate.

    >>> home(place(Predicate("p"), 2))
    Predicate('p', None, None)
    """
    variables = tuple(Variable(f"v{position}") for position in range(arity))
    if predicate.relation != TRIPLE:
        return Atom(predicate.relation, variables)
    assert predicate.property is not None, "a narrow predicate of triples has a property"
    if predicate.member_of is not None:
        return Atom(TRIPLE, (variables[0], predicate.property, predicate.member_of))
    atom = Atom(TRIPLE, (variables[0], predicate.property, variables[1]))
    assert home(atom) == predicate
    return atom
