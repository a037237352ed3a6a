"""Compile rules: variables and constants become integers, atoms are grouped by predicate.

A triple with a constant property becomes an atom of that property with two arguments, and one with
a constant class an atom of that class with one. An atom with a variable property (or class) is
*wide*: it reads, or derives into, all triples (all classes) with three (two) arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from corollary.core.dictionary import Dictionary
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    TRIPLE,
    TYPE,
    Aggregate,
    Atom,
    Bind,
    Constant,
    Expression,
    Filter,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
    expression_variables,
)

Argument = int  # a variable's number (≥ 0), or -1 - id for the constant with that id


def constant_id(argument: Argument) -> int:
    """The id of a constant argument."""
    return -1 - argument


TRIPLES = Predicate(TRIPLE)
TYPES = Predicate(TRIPLE, TYPE)


def narrow_predicate(atom: Atom) -> Predicate:
    """The narrowest predicate of a fact: its relation, its property, or its class.

    >>> from corollary.lang.program import Program
    >>> narrow_predicate(Program.parse("[<a>, <p>, <b>] .").facts[0]).property
    IRI(value='p')
    """
    if atom.relation != TRIPLE:
        return Predicate(atom.relation)
    _, property_, object_ = atom.terms
    if isinstance(property_, Variable):
        return TRIPLES
    if property_ != TYPE:
        return Predicate(TRIPLE, property_)
    return TYPES if isinstance(object_, Variable) else Predicate(TRIPLE, TYPE, object_)


def narrow_terms(atom: Atom) -> tuple[Term, ...]:
    """The open terms of an atom: subject and object, or the member of a class."""
    return open_terms(atom, narrow_predicate(atom))


def open_terms(atom: Atom, predicate: Predicate) -> tuple[Term, ...]:
    """The terms of an atom that its predicate does not fix."""
    if predicate.relation != TRIPLE or predicate.property is None:
        return atom.terms
    subject, _, object_ = atom.terms
    return (subject,) if predicate.member_of is not None else (subject, object_)


def covers(wide: Predicate, narrow: Predicate) -> bool:
    """Whether the facts of `narrow` belong to `wide`."""
    return wide == narrow or (
        narrow.relation == wide.relation == TRIPLE
        and (wide.property is None or (wide == TYPES and narrow.property == TYPE))
    )


@dataclass(frozen=True)
class Pattern:
    """A compiled atom."""

    predicate: Predicate
    arguments: tuple[Argument, ...]

    @property
    def wide(self) -> bool:
        """Whether the atom covers many predicates: all triples or all classes."""
        return self.predicate is TRIPLES or self.predicate is TYPES

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """The variables in order of first occurrence."""
        return tuple(dict.fromkeys(a for a in self.arguments if a >= 0))


@dataclass(frozen=True)
class Condition:
    """A filter: its expression over numbered variables (see `core.expressions`).

    With a `target`, it is a `BIND` instead: that variable is the value of the expression. A target
    that no atom binds is a function of the others, so it adds no rule instances.
    """

    expression: CompiledExpression
    variables: tuple[int, ...]
    target: int | None = None

    @property
    def all_variables(self) -> tuple[int, ...]:
        """The variables of the expression and the target."""
        return self.variables if self.target is None else (*self.variables, self.target)

    def renumbered(self, numbers: Mapping[int, int]) -> Condition:
        """Renumber the variables of the filter.

        >>> Condition(("<", (3, 5)), (3, 5)).renumbered({3: 0, 5: 1})
        Condition(expression=('<', (0, 1)), variables=(0, 1), target=None)
        """

        return Condition(
            substituted_expression(self.expression, numbers),
            tuple(numbers[v] for v in self.variables),
            None if self.target is None else numbers[self.target],
        )

    def with_constants(self, values: Mapping[int, Constant]) -> Condition:
        """Replace variables of the expression by constants.

        >>> from corollary.lang.syntax import IRI
        >>> Condition(("=", (3, 5)), (3, 5)).with_constants({3: IRI("a")}).variables
        (5,)
        """
        kept = tuple(v for v in self.variables if v not in values)
        if len(kept) == len(self.variables):
            return self
        numbers = {**dict(zip(kept, kept, strict=True)), **values}
        return Condition(substituted_expression(self.expression, numbers), kept, self.target)


CompiledExpression = int | Constant | tuple[str, tuple["CompiledExpression", ...]]


def substituted_expression(
    part: CompiledExpression, values: Mapping[int, int | Constant]
) -> CompiledExpression:
    """Replace every variable of an expression by another one, or by a constant.

    >>> substituted_expression(("+", (3, 3)), {3: 0})
    ('+', (0, 0))
    """
    if isinstance(part, tuple):
        operator, arguments = part
        return operator, tuple(substituted_expression(inner, values) for inner in arguments)
    return values[part] if isinstance(part, int) else part


class AggregateFunction(NamedTuple):
    """A function over the terms of a variable; if `distinct`, each term of a group counts once."""

    name: str
    variable: int
    distinct: bool = False
    separator: str = " "

    @property
    def counts_rows(self) -> bool:
        """Whether the result does not depend on the terms."""
        return self.name == "count" and not self.distinct


@dataclass(frozen=True)
class Grouping:
    """An aggregate: the atoms (with variables of their own numbering), the group, the functions.

    `inner` numbers the variables of the atoms from 0; `outer[i]` is the rule's variable of the
    i-th result column: first the group variables, then one result for each function.
    """

    patterns: tuple[Pattern, ...]
    group: tuple[int, ...]
    functions: tuple[AggregateFunction, ...]
    outer: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """A compiled rule, compared by identity, so that engines can cache plans for it.

    The variables of `BIND`s that no atom binds follow the bound ones; those of negated atoms that
    occur nowhere else are numbered last. Among the conditions, a `BIND` precedes its readers.
    """

    source: Rule
    head: Pattern
    body: tuple[Pattern, ...]
    negated: tuple[Pattern, ...]
    conditions: tuple[Condition, ...]
    groupings: tuple[Grouping, ...]
    bound: int  # variables 0 … bound-1 get their values from `body` and `groupings`

    @cached_property
    def reads_wide(self) -> bool:
        """Whether some body atom is wide.

        A recursive rule reads both its own stratum and lower strata through such an atom, so it
        may have instances before the stratum has any facts.
        """
        return any(pattern.wide for pattern in self.body)

    @cached_property
    def computes(self) -> bool:
        """Whether a `BIND` computes values."""
        return any(condition.target is not None for condition in self.conditions)

    @cached_property
    def valued(self) -> int:
        """The number of variables that have values: the bound ones, and those of `BIND`s."""
        targets = (c.target for c in self.conditions if c.target is not None)
        return max(self.bound, 1 + max(targets, default=-1))

    def may_derive(self, predicates: Collection[Predicate]) -> bool:
        """Whether the rule may derive a fact of one of these predicates; its head may be wide."""
        head = self.head.predicate
        return head in predicates or (
            self.head.wide and any(covers(head, predicate) for predicate in predicates)
        )


def compile_rule(rule: Rule, dictionary: Dictionary) -> CompiledRule:
    """Compile a rule, encoding its constants by the dictionary.

    A rule without constants is independent of the dictionary, and is compiled once.
    """
    cached = rule.memory.get("compiled")
    if isinstance(cached, CompiledRule):
        return cached
    numbers: dict[Variable, int] = {}
    constants = False

    def argument(term: Term, scope: dict[Variable, int]) -> Argument:
        nonlocal constants
        if isinstance(term, Variable):
            return scope.setdefault(term, len(scope))
        constants = True
        return -1 - dictionary.id(term)

    def pattern(atom: Atom, scope: dict[Variable, int]) -> Pattern:
        predicate = narrow_predicate(atom)
        terms = open_terms(atom, predicate)
        return Pattern(predicate, tuple([argument(term, scope) for term in terms]))

    def grouping(aggregate: Aggregate) -> Grouping:
        inner: dict[Variable, int] = {}
        patterns = tuple(pattern(atom, inner) for atom in aggregate.atoms)
        return Grouping(
            patterns,
            tuple(inner[variable] for variable in aggregate.group),
            tuple(
                AggregateFunction(b.function, inner[b.argument], b.distinct, b.separator)
                for b in aggregate.bindings
            ),
            tuple(argument(variable, numbers) for variable in aggregate.variables()),
        )

    def expression(part: Expression) -> CompiledExpression:
        if isinstance(part, Operation):
            return (part.operator, tuple(expression(argument) for argument in part.arguments))
        return numbers[part] if isinstance(part, Variable) else part

    body = tuple(pattern(atom, numbers) for atom in rule.body if isinstance(atom, Atom))
    groupings = tuple(grouping(part) for part in rule.body if isinstance(part, Aggregate))
    bound = len(numbers)
    filters = (part for part in rule.body if isinstance(part, Filter))
    parts: list[Bind | Filter] = [*rule.binds, *filters]
    conditions = tuple(
        Condition(
            expression(part.expression),
            tuple(dict.fromkeys(numbers[v] for v in expression_variables(part.expression))),
            argument(part.variable, numbers) if isinstance(part, Bind) else None,
        )
        for part in parts
    )
    head = pattern(rule.head, numbers)
    # Each negated atom has existential variables of its own, even if two atoms use one name.
    negated = tuple(
        pattern(part.atom, dict(numbers)) for part in rule.body if isinstance(part, Negation)
    )
    compiled = CompiledRule(rule, head, body, negated, conditions, groupings, bound)
    if not constants:
        rule.memory["compiled"] = compiled
    return compiled
