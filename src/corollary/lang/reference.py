"""The oracle: naive bottom-up evaluation over Python sets.

Written to be obviously right and for nothing else. Every other evaluator is compared with it, so it
shares no evaluation code with them: stratum by stratum, all rules are applied to all facts, again
and again, until nothing new comes out. A substitution maps variables to constants.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from corollary.lang import syntax
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Constant, Rule, Variable
from corollary.lang.values import as_double, kind_of, literal_of, sum_of, value_of

Substitution = dict[Variable, Constant]
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def materialize(program: Program, facts: Iterable[Atom] = ()) -> set[Atom]:
    """All facts that follow from the program and `facts`, these included.

    >>> p = Program.parse("p(?x, ?z) :- e(?x, ?y), p(?y, ?z) . p(?x, ?y) :- e(?x, ?y) .")
    >>> len(materialize(p, Program.parse("e(1, 2) . e(2, 3) . e(3, 4) .").facts))
    9
    """
    known = {*program.facts, *facts}
    for stratum in program.strata:
        size = -1
        while len(known) > size:
            size = len(known)
            for rule in stratum.rules:
                known |= {substitute(rule.head, s) for s in instances(rule, known)}
    return known


def instances(rule: Rule, known: set[Atom]) -> list[Substitution]:
    """Every substitution of the rule's bound variables that makes its body true."""
    found: list[Substitution] = [{}]
    for literal in rule.body:
        if isinstance(literal, Atom):
            found = join(found, literal, known)
        elif isinstance(literal, syntax.Aggregate):
            rows = list(groups(literal, known))
            found = [s | row for s in found for row in rows if s | row == row | s]
    for literal in rule.body:
        if isinstance(literal, syntax.Negation):
            found = [s for s in found if not join([s], literal.atom, known)]
        elif isinstance(literal, syntax.Filter):
            found = [s for s in found if evaluate(literal.expression, s) is True]
    return found


def join(found: list[Substitution], atom: Atom, known: set[Atom]) -> list[Substitution]:
    """The ways to extend the substitutions so that the atom becomes a known fact."""
    facts = [fact for fact in known if fact.relation == atom.relation]
    ways = [matched(atom, fact, s) for s in found for fact in facts]
    return [way for way in ways if way is not None]


def matched(atom: Atom, fact: Atom, given: Substitution) -> Substitution | None:
    """The substitution extended so that the atom becomes the fact, None if it cannot be."""
    extended = dict(given)
    for term, constant in zip(atom.terms, fact.constants(), strict=True):
        value = extended.setdefault(term, constant) if isinstance(term, Variable) else term
        if value != constant:
            return None
    return extended


def substitute(atom: Atom, s: Substitution) -> Atom:
    return Atom(atom.relation, tuple(s[t] if isinstance(t, Variable) else t for t in atom.terms))


def groups(aggregate: syntax.Aggregate, known: set[Atom]) -> Iterator[Substitution]:
    """For each group its key and results as a substitution, unless a result has no value."""
    found: list[Substitution] = [{}]
    for atom in aggregate.atoms:
        found = join(found, atom, known)
    members: dict[tuple[Constant, ...], list[Substitution]] = {}
    for s in found:
        members.setdefault(tuple(s[v] for v in aggregate.group), []).append(s)
    for key, rows in members.items():
        row: dict[Variable, Any] = dict(zip(aggregate.group, key, strict=True))
        for binding in aggregate.bindings:
            row[binding.result] = combine(binding.function, [s[binding.argument] for s in rows])
        if None not in row.values():
            yield row


def combine(function: str, terms: list[Constant]) -> Constant | None:
    """An aggregate function over the terms of one group, as often as they occur; None: no value."""
    if function == "count":
        return literal_of(len(terms))
    values: list[Any] = [value_of(term) for term in terms]
    kinds = {kind_of(value) for value in values}
    if function in ("min", "max"):
        if len(kinds) > 1 or None in kinds or any(v != v for v in values):  # v != v: not a number
            return None
        best = min(values) if function == "min" else max(values)
        # Terms of equal value, such as 1 and 1.0: the first in the order of their text.
        return min((t for t, v in zip(terms, values, strict=True) if v == best), key=Printer().term)
    if kinds != {"number"}:
        return None
    total = sum_of(values)
    if function == "avg":
        total = total / len(terms) if isinstance(total, float) else Fraction(total) / len(terms)
    return literal_of(total)


def evaluate(expression: syntax.Expression, s: Substitution) -> Any:
    """The value of an expression; None is an error, which makes a filter fail."""
    if not isinstance(expression, syntax.Operation):
        return value_of(s[expression] if isinstance(expression, Variable) else expression)
    sign, arguments = expression.operator, expression.arguments
    values: list[Any] = [evaluate(argument, s) for argument in arguments]
    if sign in ("&&", "||", "!"):  # an error decides nothing
        truths = [v if isinstance(v, bool) else None for v in values]
        decisive = sign == "||"
        if sign == "!":
            return None if None in truths else not truths[0]
        return decisive if decisive in truths else None if None in truths else not decisive
    kinds = {kind_of(value) for value in values}
    if kinds == {"number"} and any(isinstance(v, float) for v in values):
        values = [as_double(v) for v in values]
    if sign in ("=", "!="):
        for argument, value in zip(arguments, values, strict=True):
            if value is None and isinstance(argument, syntax.Operation):
                return None
        if kinds == {None}:  # IRIs and other terms without a value: the same term or not
            values = [s[t] if isinstance(t, Variable) else t for t in arguments]
        return (len(kinds) == 1 and values[0] == values[1]) == (sign == "=")
    if len(kinds) > 1 or None in kinds:
        return None
    if sign in _COMPARE:
        return bool(_COMPARE[sign](values[0], values[1]))
    if kinds != {"number"} or (sign == "/" and values[1] == 0):
        return None
    if len(values) == 1:
        return -values[0]
    if sign == "/" and not isinstance(values[0], float):
        values[0] = Fraction(values[0])
    return _COMPUTE[sign](values[0], values[1])
