"""An index of rules by the predicates of their bodies and heads.

A small change affects few rules of a large stratum. Scanning every rule in every round would make a
cycle of n rules take n² steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from corollary.core.compile import CompiledRule, Pattern
from corollary.engines.columnar.tuning import tuning
from corollary.lang.stratify import Predicate

_CACHED_INDEXES = 256  # rule sequences per engine


class RuleIndex:
    """Rules by the predicates they read and derive; results keep the order of the rules."""

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
        positions = self._bodies.of(changed)
        if removed:
            positions |= self._negated.of(removed)
        return [self.rules[at] for at in sorted(positions)]

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
        positions = set(self._wide)
        for predicate in predicates:
            positions.update(self._by_predicate.get(predicate, ()))
        return positions


class RuleIndexes:
    """A cache of the indexes of rule sequences; strata pass the same sequence each time."""

    def __init__(self) -> None:
        self._cache: dict[int, RuleIndex] = {}

    def of(self, rules: Sequence[CompiledRule]) -> RuleIndex | None:
        """The index of a sequence; None if it is short enough to be scanned."""
        if len(rules) <= tuning.scanned_rules_limit:
            return None
        cached = self._cache.get(id(rules))
        if cached is not None and cached.rules is rules:
            return cached
        index = RuleIndex(rules)
        if isinstance(rules, tuple):  # a list may change
            if len(self._cache) >= _CACHED_INDEXES:
                del self._cache[next(iter(self._cache))]
            self._cache[id(rules)] = index
        return index
