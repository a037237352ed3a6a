"""Rules by the predicates of their bodies and heads.

A small change concerns few of the rules of a large stratum. Looking at every rule in every round
would make a cycle of n rules take n² steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from corollary.core.compile import CompiledRule, Pattern
from corollary.engines.columnar.tuning import tuning
from corollary.lang.stratify import Predicate

_CACHED = 256  # indexes of rule sequences that an engine keeps


class RuleIndex:
    """Positions of rules by what they read and derive; answers are in the order of the rules."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = rules
        self._bodies = _Positions(rule.body for rule in rules)
        self._negated = _Positions(rule.negated for rule in rules)
        self._heads = _Positions((rule.head,) for rule in rules)

    def reading(
        self, changed: Collection[Predicate], removed: Collection[Predicate] = ()
    ) -> Sequence[CompiledRule]:
        """The rules that read one of these predicates, or negate one of `removed`."""
        if len(changed) + len(removed) >= len(self.rules):
            return self.rules
        found = self._bodies.of(changed)
        if removed:
            found |= self._negated.of(removed)
        return [self.rules[at] for at in sorted(found)]

    def deriving(self, heads: Collection[Predicate]) -> Sequence[CompiledRule]:
        """The rules that may derive one of these predicates."""
        if len(heads) >= len(self.rules):
            return self.rules
        return [self.rules[at] for at in sorted(self._heads.of(heads))]


class _Positions:
    """Positions of rules by the predicates of some of their atoms."""

    def __init__(self, atoms: Iterable[Iterable[Pattern]]) -> None:
        self._by_predicate: dict[Predicate, list[int]] = {}
        self._wide: set[int] = set()
        for at, patterns in enumerate(atoms):
            for pattern in patterns:
                if pattern.wide:
                    self._wide.add(at)
                else:
                    self._by_predicate.setdefault(pattern.predicate, []).append(at)

    def of(self, predicates: Iterable[Predicate]) -> set[int]:
        found = set(self._wide)
        for predicate in predicates:
            found.update(self._by_predicate.get(predicate, ()))
        return found


class RuleIndexes:
    """Indexes of the rule sequences that an engine was given; strata ask with the same ones."""

    def __init__(self) -> None:
        self._known: dict[int, RuleIndex] = {}

    def of(self, rules: Sequence[CompiledRule]) -> RuleIndex | None:
        """The index of a sequence; None if it is so short that all of its rules are looked at."""
        if len(rules) <= tuning.scanned_rules_limit:
            return None
        known = self._known.get(id(rules))
        if known is not None and known.rules is rules:
            return known
        index = RuleIndex(rules)
        if isinstance(rules, tuple):  # a list may change
            if len(self._known) >= _CACHED:
                del self._known[next(iter(self._known))]
            self._known[id(rules)] = index
        return index
