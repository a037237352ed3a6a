"""Drop rules that are redundant given the pre-materialized facts.

Paper: Urbani, Piro, van Harmelen, Bal: Hybrid Reasoning on OWL RL, Semantic Web 5, 2014, §6,
Example 10, and §6.1.

Idea: a rule whose head is an instance of a pre-materialized pattern is a look-up. Of two rules that
derive the same given the pre-materialized facts, one is enough: r₂ is a *duplicate* of r₁ if r₁
matches it, except for pre-materialized atoms of r₁ that hold wherever those of r₂ do. Examples are
prp-eqp1 and prp-eqp2 if owl:equivalentProperty is symmetric, cax-eqc1 and cax-eqc2, and scm-sco and
prp-trp if rdfs:subClassOf is declared transitive.

Invariant: the duplicates are a function of the rules, the patterns and the facts. The pairs
(`candidates`) depend on rules and patterns only; whether a pair holds (`duplicates`) is reevaluated
after every update, so that a rule is restored when the facts that made it a duplicate are deleted.

Differs from the paper: rules are dropped after pre-materialization, for queries; one criterion,
checked on the facts, covers both of its sources of duplicates. prp-inv1 and prp-inv2 are duplicates
if owl:inverseOf is symmetric; otherwise its symmetric closure is not added, as those triples are
not entailed. Rules specialized to a schema have no schema atoms left, and are equal if they are
duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corollary.algorithms.hybrid_goals import Patterns, may_overlap
from corollary.core.compile import compile_rule, narrow_predicate
from corollary.core.engine import Engine, F
from corollary.lang.substitute import matched, substituted_atom
from corollary.lang.syntax import Atom, Negation, Rule, Term, Variable

_MISSING = "MISSING"  # the relation of a check that must derive nothing


@dataclass(frozen=True)
class Duplicate:
    """A rule that another one makes redundant, provided that some atoms hold."""

    rule: Rule
    of: Rule
    given: tuple[Atom, ...]  # pre-materialized atoms of the rule
    needed: tuple[Atom, ...]  # atoms that must hold wherever `given` does


def candidates(rules: Sequence[Rule], patterns: Patterns) -> list[Duplicate]:
    """The pairs of rules that may be duplicates, independent of the facts."""
    general = [
        rule
        for rule in rules
        if all(isinstance(part, Atom) for part in rule.body)
        and any(patterns.cover(part) for part in rule.body if isinstance(part, Atom))
    ]
    pairs = []
    for one in general:
        for two in rules:
            if one is not two and may_overlap(
                narrow_predicate(one.head), narrow_predicate(two.head)
            ):
                pairs += list(_matches(one, two, patterns))[:1]
    return pairs


def duplicates(pairs: Sequence[Duplicate], facts: F, engine: Engine[F]) -> list[Duplicate]:
    """Select the pairs that hold in the facts; no two rules replace each other."""
    selected: list[Duplicate] = []
    dropped: set[Rule] = set()
    for pair in pairs:
        if dropped.isdisjoint((pair.rule, pair.of)) and _holds(pair, facts, engine):
            selected.append(pair)
            dropped.add(pair.rule)
    return selected


def _holds(pair: Duplicate, facts: F, engine: Engine[F]) -> bool:
    for atom in pair.needed:
        rule = Rule(Atom(_MISSING, ()), (*pair.given, Negation(atom)))
        if len(engine.derive([compile_rule(rule, engine.dictionary)], facts).facts):
            return False
    return True


def _matches(one: Rule, two: Rule, patterns: Patterns) -> Iterator[Duplicate]:
    """The ways in which the first rule makes the second one redundant."""
    values = matched(one.head, two.head, {})
    if values is None:
        return
    theirs = [part for part in two.body if isinstance(part, Atom)]
    given = tuple(atom for atom in theirs if patterns.cover(atom))
    mine = [part for part in one.body if isinstance(part, Atom)]
    schema = [atom for atom in mine if patterns.cover(atom)]
    data = [atom for atom in mine if atom not in schema]
    bound = {variable for atom in given for variable in atom.variables()}

    def search(at: int, values: dict[Variable, Term]) -> Iterator[dict[Variable, Term]]:
        if at == len(data):
            yield values
            return
        for atom in theirs:
            more = matched(data[at], atom, values)
            if more is not None:
                yield from search(at + 1, more)

    for substitution in search(0, values):
        needed = tuple(substituted_atom(atom, substitution) for atom in schema)
        # A variable left open by the match would be read as existential.
        if all(v in substitution for atom in schema for v in atom.variables()) and all(
            v in bound for atom in needed for v in atom.variables()
        ):
            yield Duplicate(two, one, given, needed)
