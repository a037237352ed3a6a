"""Rules that need not be unfolded, given what is pre-materialized.

Paper: Urbani, Piro, van Harmelen, Bal: Hybrid Reasoning on OWL RL, Semantic Web 5, 2014, §6,
Example 10, and §6.1.

Idea: a rule whose head is an instance of a pre-materialized pattern is a look-up. Of two rules that
derive the same given the pre-materialized facts, one is enough: r₂ is a *duplicate* of r₁ if r₁
matches it, but for atoms of r₁ that are pre-materialized and hold wherever those of r₂ do. That is
so for prp-eqp1 and prp-eqp2 where owl:equivalentProperty is symmetric, for cax-eqc1 and cax-eqc2,
and for scm-sco and prp-trp where rdfs:subClassOf is said to be transitive.

Invariant: which rules are duplicates is a function of the rules, the patterns and the facts. Pairs
(`candidates`) depend on the first two only; whether a pair counts (`duplicates`) is decided again
whenever facts of `CleanUp.predicates` change, so that a rule comes back with the facts that made it
a duplicate.

Differs from the paper: one criterion for both of its sources of duplicates, checked on the facts;
prp-inv1 and prp-inv2 are duplicates where owl:inverseOf is symmetric, and where it is not its
symmetric closure is not added, as its triples do not follow. Rules that are written out for a
schema have no atoms of it left, and are equal where they are duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from corollary.algorithms.hybrid_goals import Patterns, may_meet
from corollary.core.changes import Changes
from corollary.core.compile import compile_rule, home
from corollary.core.engine import Engine, F
from corollary.lang.stratify import Predicate
from corollary.lang.substitute import matched, substituted_atom
from corollary.lang.syntax import Atom, Negation, Rule, Term

_MISSING = "MISSING"  # the relation of a check that must derive nothing


@dataclass(frozen=True)
class Duplicate:
    """A rule that derives nothing that another one does not, if some atoms hold."""

    rule: Rule
    of: Rule
    given: tuple[Atom, ...]  # atoms of the rule that are pre-materialized
    needed: tuple[Atom, ...]  # which must hold wherever these do

    @property
    def is_ground(self) -> bool:
        """Whether what is needed are facts."""
        return not any(True for atom in self.needed for _ in atom.variables())


class CleanUp(Generic[F]):
    """The clean-up before the patterns are materialized: it may rely on explicit facts only.

    Pre-materialized facts are not known yet, so a pair counts if all it needs are explicit facts.

    >>> from corollary.core.dictionary import Dictionary
    >>> from corollary.core.tables import encode
    >>> from corollary.engines.columnar.engine import ColumnarEngine
    >>> from corollary.lang.parser import parse_atom
    >>> from corollary.lang.program import Program
    >>> rules = Program.parse("q(?x) :- on(1), p(?x) . q(?x) :- p(?x), s(?x) .").rules
    >>> engine = ColumnarEngine(Dictionary())
    >>> cleaning = CleanUp(rules, [parse_atom("on(?x)", {}, "")], engine)
    >>> def dropped(text):
    ...     facts = Program.parse(text).facts
    ...     return cleaning.dropped(engine.facts(encode(facts, engine.dictionary)))
    >>> len(dropped("on(1) . p(7) .")), len(dropped("on(2) . p(7) ."))
    (1, 0)
    """

    def __init__(self, rules: Sequence[Rule], patterns: Sequence[Atom], engine: Engine[F]) -> None:
        self._engine = engine
        self._pairs = [pair for pair in candidates(rules, Patterns(patterns)) if pair.is_ground]
        self.predicates: frozenset[Predicate] = frozenset(
            home(atom) for pair in self._pairs for atom in pair.needed
        )

    def depends_on(self, changes: Changes[F]) -> bool:
        """Whether a change of facts may change which rules are dropped."""
        if not self.predicates:
            return False
        changed = (*changes.inserted.predicates(), *changes.deleted.predicates())
        return not self.predicates.isdisjoint(changed)

    def dropped(self, explicit: F) -> frozenset[Rule]:
        """The rules that other rules stand for, as long as these explicit facts are there."""
        found = duplicates(self._pairs, explicit, self._engine, growing=True)
        return frozenset(pair.rule for pair in found)


def look_ups(rules: Sequence[Rule], patterns: Patterns) -> list[Rule]:
    """The rules whose heads are pre-materialized."""
    return [rule for rule in rules if patterns.cover(rule.head)]


def candidates(rules: Sequence[Rule], patterns: Patterns) -> list[Duplicate]:
    """Pairs of rules that may be duplicates, whatever the facts are."""
    general = [
        rule
        for rule in rules
        if all(isinstance(part, Atom) for part in rule.body)
        and any(patterns.cover(part) for part in rule.body if isinstance(part, Atom))
    ]
    found = []
    for one in general:
        for two in rules:
            if one is not two and may_meet(home(one.head), home(two.head)):
                found += list(_matches(one, two, patterns))[:1]
    return found


def duplicates(
    pairs: Sequence[Duplicate], facts: F, engine: Engine[F], *, growing: bool = False
) -> list[Duplicate]:
    """Those of the pairs that are duplicates, given facts; no two rules replace each other.

    If more facts will come (`growing`), only what facts alone say counts.
    """
    found: list[Duplicate] = []
    gone: set[Rule] = set()
    for pair in pairs:
        if pair.rule not in gone and pair.of not in gone and _holds(pair, facts, engine, growing):
            found.append(pair)
            gone.add(pair.rule)
    return found


def _holds(pair: Duplicate, facts: F, engine: Engine[F], growing: bool) -> bool:
    if growing and not pair.is_ground:
        return False
    for atom in pair.needed:
        rule = Rule(Atom(_MISSING, ()), (*(() if growing else pair.given), Negation(atom)))
        if len(engine.derive([compile_rule(rule, engine.dictionary)], facts).facts):
            return False
    return True


def _matches(one: Rule, two: Rule, patterns: Patterns) -> Iterator[Duplicate]:
    """The ways in which the first rule does what the second one does."""
    values = matched(one.head, two.head, {})
    if values is None:
        return
    theirs = [part for part in two.body if isinstance(part, Atom)]
    given = tuple(atom for atom in theirs if patterns.cover(atom))
    mine = [part for part in one.body if isinstance(part, Atom)]
    schema = [atom for atom in mine if patterns.cover(atom)]
    data = [atom for atom in mine if atom not in schema]
    bound = {variable for atom in given for variable in atom.variables()}

    def search(at: int, values: dict[Term, Term]) -> Iterator[dict[Term, Term]]:
        if at == len(data):
            yield values
            return
        for atom in theirs:
            more = matched(data[at], atom, values)
            if more is not None:
                yield from search(at + 1, more)

    for found in search(0, values):
        needed = tuple(substituted_atom(atom, found) for atom in schema)
        # A variable that the match leaves open would be read as existential.
        if all(v in found for atom in schema for v in atom.variables()) and all(
            v in bound for atom in needed for v in atom.variables()
        ):
            yield Duplicate(two, one, given, needed)
