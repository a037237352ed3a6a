"""Terms in the place of variables, and what they must be for atoms to match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from corollary.lang.syntax import (
    Aggregate,
    Atom,
    BodyLiteral,
    Expression,
    Filter,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)

Values = Mapping[Term, Term]


def substituted_atom(atom: Atom, values: Values) -> Atom:
    """The atom with values in the place of variables."""
    return replace(atom, terms=tuple([values.get(term, term) for term in atom.terms]))


def substituted(rule: Rule, values: Values) -> Rule:
    """The rule with values in the place of variables; it has no aggregates.

    >>> from corollary.lang.program import Program
    >>> from corollary.lang.printer import Printer
    >>> from corollary.lang.syntax import IRI, Variable
    >>> rule = Program.parse("[?x, ?q, ?y] :- [?p, rdfs:subPropertyOf, ?q], [?x, ?p, ?y] .").rules[
    ...     0
    ... ]
    >>> print(Printer().rule(substituted(rule, {Variable("q"): IRI("knows")})))
    [?x, <knows>, ?y] :- [?p, rdfs:subPropertyOf, <knows>], [?x, ?p, ?y] .
    """
    if not values:
        return rule
    body = tuple([substituted_literal(part, values) for part in rule.body])
    return Rule(substituted_atom(rule.head, values), body, rule.name, rule.span)


def substituted_literal(part: BodyLiteral, values: Values) -> BodyLiteral:
    """A part of a body with values in the place of variables; it is no aggregate."""
    match part:
        case Atom():
            return substituted_atom(part, values)
        case Negation(atom):
            return Negation(substituted_atom(atom, values), part.span)
        case Filter(expression):
            return Filter(_expression(expression, values), part.span)
        case Aggregate():
            raise AssertionError("a rule with an aggregate is taken as it is")


def matched(pattern: Atom, atom: Atom, given: Values) -> dict[Term, Term] | None:
    """The values of variables by which a pattern is an atom, beside those given; None if it is not.

    >>> from corollary.lang.parser import parse_atom
    >>> pattern, atom = parse_atom("p(?x, ?x)", {}, ""), parse_atom("p(1, 2)", {}, "")
    >>> matched(pattern, pattern, {}) is None, matched(pattern, atom, {}) is None
    (False, True)
    """
    if pattern.relation != atom.relation or len(pattern.terms) != len(atom.terms):
        return None
    found = dict(given)
    for mine, other in zip(pattern.terms, atom.terms, strict=True):
        if (found.setdefault(mine, other) if isinstance(mine, Variable) else mine) != other:
            return None
    return found


def _expression(expression: Expression, values: Values) -> Expression:
    if isinstance(expression, Operation):
        arguments = tuple(_expression(argument, values) for argument in expression.arguments)
        return replace(expression, arguments=arguments)
    return values.get(expression, expression)
