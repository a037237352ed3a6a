"""The oracle: naive bottom-up evaluation over Python sets.

Every other evaluator is compared with it, so it shares no evaluation code with them: all rules of a
stratum are applied to all facts until a fixpoint. A substitution maps variables to terms.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from corollary.lang import syntax
from corollary.lang.functions import FUNCTIONS
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom, Constant, Rule, Variable
from corollary.lang.values import as_double, kind_of, literal_of, sum_of, value_of

Substitution = dict[Variable, Constant]
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def materialize(program: Program, facts: Iterable[Atom] = ()) -> set[Atom]:
    """The materialization of a program and `facts`.

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


def violations(program: Program, known: set[Atom]) -> list[tuple[Rule, Substitution]]:
    """Every constraint with each substitution that makes its body true."""
    return [(rule, s) for rule in program.constraints for s in instances(rule, known)]


def instances(rule: Rule, known: set[Atom]) -> list[Substitution]:
    """Every substitution of the rule's bound variables that makes its body true."""
    found: list[Substitution] = [{}]
    for literal in rule.body:
        if isinstance(literal, Atom):
            found = join(found, literal, known)
        elif isinstance(literal, syntax.Aggregate):
            found = [s | g for g in groups(literal, known) for s in found if s | g == g | s]
    for literal in rule.body:
        if isinstance(literal, syntax.Negation):
            found = [s for s in found if not join([s], literal.atom, known)]
        elif isinstance(literal, syntax.Filter):
            found = [s for s in found if evaluate(literal.expression, s) is True]
    return found


def join(found: list[Substitution], atom: Atom, known: set[Atom]) -> list[Substitution]:
    """Extend the substitutions in all ways that turn the atom into a known fact."""
    facts = [fact for fact in known if fact.relation == atom.relation]
    return [way for s in found for fact in facts if (way := matched(atom, fact, s)) is not None]


def matched(atom: Atom, fact: Atom, given: Substitution) -> Substitution | None:
    """Extend the substitution so that the atom becomes the fact; None if impossible."""
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
        for b in aggregate.bindings:
            row[b.result] = combine(b.function, [s[b.argument] for s in rows])
        if None not in row.values():
            yield row


def combine(function: str, terms: list[Constant]) -> Constant | None:
    """An aggregate function over the multiset of terms of one group; None: no value."""
    if function == "count":
        return literal_of(len(terms))
    values: list[Any] = list(map(value_of, terms))
    kinds = set(map(kind_of, values))
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
    if sign in FUNCTIONS:
        return FUNCTIONS[sign].call(*(s[t] if isinstance(t, Variable) else t for t in arguments))
    values: list[Any] = [evaluate(argument, s) for argument in arguments]
    if sign in ("&&", "||", "!"):  # errors do not decide
        truths, decisive = [v if isinstance(v, bool) else None for v in values], sign != "&&"
        found = decisive in truths or (None if None in truths else False)
        return found if sign == "||" or found is None else not found
    kinds = {kind_of(value) for value in values}
    if kinds == {"number"} and any(isinstance(v, float) for v in values):
        values = [as_double(v) for v in values]
    if sign in ("=", "!="):
        pairs = zip(arguments, values, strict=True)
        if any(value is None and isinstance(part, syntax.Operation) for part, value in pairs):
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
    if sign == "/" and not isinstance(values[0], float):
        values[0] = Fraction(values[0])
    return -values[0] if len(values) == 1 else _COMPUTE[sign](values[0], values[1])
