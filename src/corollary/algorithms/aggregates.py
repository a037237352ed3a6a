"""Aggregates as relations of their own, so that the other rules have none.

`H :- …, AGGREGATE(A ON g BIND f(v) AS r)` becomes `H :- …, N(g, r)` together with
`N(g, r) :- AGGREGATE(A ON g BIND f(v) AS r)`, where N is a relation that no program can name. What
is left to maintain of aggregates is then one kind of rule, whose head holds one fact for a group:
when its input changes, the groups that it belongs to are evaluated again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corollary.core.compile import CompiledRule, compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, F
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    Aggregate,
    Atom,
    Binding,
    BodyLiteral,
    Rule,
    Variable,
    is_auxiliary,
)

_PREFIX = "AGGREGATE "  # a space: no relation of a program is named so
_TOUCHED = "TOUCHED GROUPS"


def is_internal(predicate: Predicate) -> bool:
    """Whether the predicate is an aggregate's own, or auxiliary: its facts are no results."""
    return predicate.relation.startswith(_PREFIX) or is_auxiliary(predicate.relation)


def without_aggregates(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules with aggregates replaced by atoms, and a rule for each aggregate.

    >>> from corollary.lang.program import Program
    >>> text = "n(?x, ?c) :- p(?x), AGGREGATE(e(?x, ?y) ON ?x BIND count(?y) AS ?c) ."
    >>> for rule in without_aggregates(Program.parse(text).rules):
    ...     print(len(rule.head.terms), [type(part).__name__ for part in rule.body])
    2 ['Atom', 'Atom']
    2 ['Aggregate']
    """
    found: dict[Rule, None] = {}
    for rule in rules:
        body: list[BodyLiteral] = []
        own: list[Rule] = []
        for part in rule.body:
            if isinstance(part, Aggregate):
                definition = _definition(part)
                own.append(definition)
                body.append(Atom(definition.head.relation, tuple(part.variables())))
            else:
                body.append(part)
        found.setdefault(Rule(rule.head, tuple(body), rule.name, rule.span) if own else rule)
        found.update(dict.fromkeys(own))
    return tuple(found)


def _definition(aggregate: Aggregate) -> Rule:
    """The rule of an aggregate; the same for aggregates that differ in names of variables only."""
    names: dict[Variable, Variable] = {}

    def renamed(atom: Atom) -> Atom:
        terms = (
            names.setdefault(t, Variable(f"v{len(names)}")) if isinstance(t, Variable) else t
            for t in atom.terms
        )
        return Atom(atom.relation, tuple(terms))

    atoms = tuple(map(renamed, aggregate.atoms))
    group = tuple(names[variable] for variable in aggregate.group)
    bindings = tuple(
        Binding(binding.function, names[binding.argument], Variable(f"r{number}"))
        for number, binding in enumerate(aggregate.bindings)
    )
    body = Aggregate(atoms, group, bindings)
    head = Atom("", tuple(body.variables()))
    text = Printer().rule(Rule(head, (body,)))
    return Rule(Atom(_PREFIX + text, head.terms), (body,))


@dataclass(frozen=True, eq=False)
class Aggregation:
    """The rules that keep an aggregate's relation N up to date."""

    rule: CompiledRule
    touching: CompiledRule  # touched(g) :- A
    present: CompiledRule  # N(g, r) :- touched(g), N(g, r)
    evaluated: CompiledRule  # N(g, r) :- AGGREGATE(A, touched(g) ON g BIND f(v) AS r)

    @classmethod
    def of(cls, rule: CompiledRule, dictionary: Dictionary) -> Aggregation:
        """The aggregation of a rule whose body is an aggregate."""
        [aggregate] = rule.source.body
        assert isinstance(aggregate, Aggregate), "the other rules have no aggregates"
        head, group = rule.source.head, tuple(dict.fromkeys(aggregate.group))
        touched = Atom(_TOUCHED, group)
        body = Aggregate((*aggregate.atoms, touched), aggregate.group, aggregate.bindings)
        return cls(
            rule,
            compile_rule(Rule(touched, aggregate.atoms), dictionary),
            compile_rule(Rule(head, (touched, head)), dictionary),
            compile_rule(Rule(head, (body,)), dictionary),
        )

    def evaluate(
        self, engine: Engine[F], before: F, facts: F, deleted: F, inserted: F
    ) -> tuple[F, F]:
        """The facts of N that come and go when its input changes from `before` to `facts`."""
        groups = engine.derive([self.touching], before, delta=deleted).facts
        groups = groups.union(engine.derive([self.touching], facts, delta=inserted).facts)
        if not len(groups):
            return groups, groups
        old = engine.derive([self.present], before.union(groups)).facts
        new = engine.derive([self.evaluated], facts.union(groups)).facts
        return new.difference(old), old.difference(new)
