"""Substitution of terms for variables, and matching of atoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    Aggregate,
    Atom,
    Bind,
    BodyLiteral,
    Expression,
    Filter,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)

Values = Mapping[Variable, Term]


def substituted_atom(atom: Atom, values: Values) -> Atom:
    """Substitute values for the variables of an atom."""
    # No constant is a key, so constants need no test of their own.
    terms = [values.get(term, term) for term in atom.terms]  # type: ignore[arg-type]
    return replace(atom, terms=tuple(terms))


def substituted(rule: Rule, values: Values) -> Rule:
    """Substitute values for the variables of a rule without aggregates.

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
    """Substitute values for the variables of a body literal other than an aggregate."""
    match part:
        case Atom():
            return substituted_atom(part, values)
        case Negation(atom):
            return Negation(substituted_atom(atom, values), part.span)
        case Filter(expression):
            return Filter(_expression(expression, values), part.span)
        case Bind(expression, variable, extremum):
            value, result = _expression(expression, values), values.get(variable, variable)
            if isinstance(result, Variable):
                return Bind(value, result, extremum, part.span)
            return Filter(Operation("sameTerm", (value, result)), part.span)
        case Aggregate():
            raise AssertionError("rules with aggregates are not substituted")


def substituted_aggregate(aggregate: Aggregate, values: Values) -> Aggregate:
    """Substitute values for the group and the results of an aggregate."""
    group = {variable: values[variable] for variable in aggregate.group}
    bindings = [
        replace(b, argument=group.get(b.argument, b.argument), result=values[b.result])  # type: ignore[arg-type]
        for b in aggregate.bindings
    ]
    return Aggregate(
        tuple(substituted_atom(atom, group) for atom in aggregate.atoms),
        cast("tuple[Variable, ...]", tuple(group.values())),
        tuple(bindings),
    )


def matched(pattern: Atom, atom: Atom, given: Values) -> dict[Variable, Term] | None:
    """Extend a substitution so that the pattern becomes the atom; None if impossible.

    >>> from corollary.lang.parser import parse_atom
    >>> pattern, atom = parse_atom("p(?x, ?x)", {}, ""), parse_atom("p(1, 2)", {}, "")
    >>> matched(pattern, pattern, {}) is None, matched(pattern, atom, {}) is None
    (False, True)
    """
    if pattern.relation != atom.relation or len(pattern.terms) != len(atom.terms):
        return None
    values = dict(given)
    for mine, other in zip(pattern.terms, atom.terms, strict=True):
        if (values.setdefault(mine, other) if isinstance(mine, Variable) else mine) != other:
            return None
    return values


def label_values(atom: Atom, predicate: Predicate) -> dict[Variable, Term] | None:
    """The values that make a triple atom one of a predicate; None if it cannot be one."""
    values: dict[Variable, Term] = {}
    label = (predicate.property, predicate.member_of)
    for term, value in zip(atom.terms[1:], label, strict=True):
        if value is not None:
            known = values.setdefault(term, value) if isinstance(term, Variable) else term
            if known != value:
                return None
    return values


def _expression(expression: Expression, values: Values) -> Expression:
    if isinstance(expression, Operation):
        arguments = tuple(_expression(argument, values) for argument in expression.arguments)
        return replace(expression, arguments=arguments)
    return values.get(expression, expression) if isinstance(expression, Variable) else expression
