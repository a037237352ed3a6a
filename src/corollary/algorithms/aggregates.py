"""Replace aggregates by relations of their own, so that ordinary rules have none.

`H :- …, AGGREGATE(A ON g BIND f(v) AS r)` becomes `H :- …, N(g, r)` together with
`N(g, r) :- AGGREGATE(A ON g BIND f(v) AS r)`, where N is a relation that no program can name. Only
the second kind of rule aggregates; it derives one fact per group, and is maintained by reevaluating
the groups whose input changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from corollary.core.compile import CompiledRule, compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, F
from corollary.lang.printer import Printer
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import (
    Aggregate,
    Atom,
    BodyLiteral,
    Rule,
    Variable,
    is_auxiliary,
)

_PREFIX = "AGGREGATE "  # with a space, so that no program can name it
_AFFECTED = "AFFECTED GROUPS"


def is_internal(predicate: Predicate) -> bool:
    """Whether facts are hidden: of an auxiliary relation, or one that no program can name."""
    return " " in predicate.relation or is_auxiliary(predicate.relation)


def without_aggregates(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Replace the aggregates of rules by atoms, and add a rule for each aggregate.

    >>> from corollary.lang.program import Program
    >>> text = "n(?x, ?c) :- p(?x), AGGREGATE(e(?x, ?y) ON ?x BIND count(?y) AS ?c) ."
    >>> for rule in without_aggregates(Program.parse(text).rules):
    ...     print(len(rule.head.terms), [type(part).__name__ for part in rule.body])
    2 ['Atom', 'Atom']
    2 ['Aggregate']
    """
    normal: dict[Rule, None] = {}
    for rule in rules:
        body: list[BodyLiteral] = []
        definitions: list[Rule] = []
        for part in rule.body:
            if isinstance(part, Aggregate):
                definition = _definition(part)
                definitions.append(definition)
                body.append(Atom(definition.head.relation, tuple(part.variables())))
            else:
                body.append(part)
        if definitions:
            rule = Rule(rule.head, tuple(body), rule.name, rule.span)
        normal.setdefault(rule)
        normal.update(dict.fromkeys(definitions))
    return tuple(normal)


def _definition(aggregate: Aggregate) -> Rule:
    """The defining rule of an aggregate; independent of the names of variables."""
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
        replace(binding, argument=names[binding.argument], result=Variable(f"r{number}"))
        for number, binding in enumerate(aggregate.bindings)
    )
    body = Aggregate(atoms, group, bindings)
    head = Atom("", tuple(body.variables()))
    text = Printer().rule(Rule(head, (body,)))
    return Rule(Atom(_PREFIX + text, head.terms), (body,))


@dataclass(frozen=True, eq=False)
class Aggregation:
    """The rules that maintain an aggregate's relation N."""

    rule: CompiledRule
    affecting: CompiledRule  # affected(g) :- A
    old_results: CompiledRule  # N(g, r) :- affected(g), N(g, r)
    new_results: CompiledRule  # N(g, r) :- AGGREGATE(A, affected(g) ON g BIND f(v) AS r)

    @classmethod
    def of(cls, rule: CompiledRule, dictionary: Dictionary) -> Aggregation:
        """Create the aggregation of a rule whose body is an aggregate."""
        [aggregate] = rule.source.body
        assert isinstance(aggregate, Aggregate), "the other rules have no aggregates"
        head, group = rule.source.head, tuple(dict.fromkeys(aggregate.group))
        affected = Atom(_AFFECTED, group)
        body = Aggregate((*aggregate.atoms, affected), aggregate.group, aggregate.bindings)
        return cls(
            rule,
            compile_rule(Rule(affected, aggregate.atoms), dictionary),
            compile_rule(Rule(head, (affected, head)), dictionary),
            compile_rule(Rule(head, (body,)), dictionary),
        )

    def evaluate(
        self, engine: Engine[F], before: F, facts: F, deleted: F, inserted: F
    ) -> tuple[F, F]:
        """Return the insertions and deletions of N for the change from `before` to `facts`."""
        groups = engine.derive([self.affecting], before, delta=deleted).facts
        groups = groups.union(engine.derive([self.affecting], facts, delta=inserted).facts)
        if not len(groups):
            return groups, groups
        old = engine.derive([self.old_results], before.union(groups)).facts
        new = engine.derive([self.new_results], facts.union(groups)).facts
        return new.difference(old), old.difference(new)
