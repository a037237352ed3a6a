"""A program compiled for maintenance: strata, and which of them a change reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from corollary.algorithms.aggregates import Aggregation, without_aggregates
from corollary.algorithms.modular.framework import Module, SemiNaive
from corollary.algorithms.modular.recognize import recognized
from corollary.core.compile import TRIPLES, TYPES, CompiledRule, compile_rule, covers
from corollary.core.dictionary import Dictionary
from corollary.lang.stratify import Predicate, Stratum, stratify
from corollary.lang.syntax import TRIPLE, TYPE, Rule

ModuleKey = tuple[type, frozenset[CompiledRule], frozenset[CompiledRule]]


@dataclass(frozen=True, eq=False)
class CompiledStratum:
    """The rules of a stratum in numbers. A stratum has rules or aggregations, not both."""

    number: int
    predicates: frozenset[Predicate]
    nonrecursive: tuple[CompiledRule, ...]
    recursive: tuple[CompiledRule, ...]
    dictionary: Dictionary
    aggregations: tuple[Aggregation, ...] = ()

    @property
    def rules(self) -> tuple[CompiledRule, ...]:
        """All but the aggregations."""
        return self.nonrecursive + self.recursive

    @cached_property
    def nonlinear(self) -> tuple[CompiledRule, ...]:
        """Recursive rules that read the stratum more than once."""
        return tuple(
            rule
            for rule in self.recursive
            if sum(self.may_derive(pattern.predicate) for pattern in rule.body) > 1
        )

    @cached_property
    def modules(self) -> tuple[Module[Any], ...]:
        """The modules of the recursive rules; none if there would be no other than `SemiNaive`."""
        if not self.recursive:
            return ()
        found = recognized(self.recursive, self.dictionary)
        return () if all(isinstance(module, SemiNaive) for module in found) else tuple(found)

    @cached_property
    def modular(self) -> bool:
        """Whether all recursive rules are in modules that can tell by what their facts differ."""
        return bool(self.modules) and all(module.tells for module in self.modules)

    def key(self, module: Module[Any]) -> ModuleKey:
        """What a module's state depends on: kind, rules, and others that derive the same."""
        others = [
            rule
            for rule in self.recursive
            if rule not in module.rules and rule.head.predicate in module.predicates
        ]
        return type(module), frozenset(module.rules), frozenset(others)

    def may_derive(self, predicate: Predicate) -> bool:
        """Whether a body atom may read what the stratum derives."""
        return any(p in self.predicates for p in _meeting(predicate)) or any(
            covers(predicate, derived) for derived in self.predicates
        )


class CompiledStrata:
    """The strata of a program, and an index from predicates to the strata that read them."""

    def __init__(
        self,
        rules: Sequence[Rule],
        dictionary: Dictionary,
        *,
        coarse: bool = False,
        compiled: Mapping[Rule, CompiledRule] | None = None,
    ) -> None:
        normal = without_aggregates(rules)
        known = compiled or {}
        self.compiled: dict[Rule, CompiledRule] = {
            rule: known.get(rule) or compile_rule(rule, dictionary) for rule in normal
        }
        self.sources = stratify(normal, coarse=coarse)
        self.strata = [
            self._compile(number, stratum, dictionary)
            for number, stratum in enumerate(self.sources)
        ]
        self._owner = {p: s.number for s in self.strata for p in s.predicates}
        self._readers: dict[Predicate, list[int]] = {}
        for stratum in self.strata:
            for predicate in _read_by(stratum):
                self._readers.setdefault(predicate, []).append(stratum.number)

    def _compile(self, number: int, stratum: Stratum, dictionary: Dictionary) -> CompiledStratum:
        nonrecursive = tuple(self.compiled[rule] for rule in stratum.nonrecursive)
        aggregations = tuple(Aggregation.of(r, dictionary) for r in nonrecursive if r.groupings)
        return CompiledStratum(
            number,
            stratum.predicates,
            () if aggregations else nonrecursive,
            tuple(self.compiled[rule] for rule in stratum.recursive),
            dictionary,
            aggregations,
        )

    def owner(self, predicate: Predicate) -> int | None:
        """The stratum whose rules may derive facts of a narrow predicate."""
        for found in _meeting(predicate):
            if found in self._owner:
                return self._owner[found]
        return None

    def readers(self, predicates: Iterable[Predicate]) -> set[int]:
        """The strata whose rules read one of these narrow predicates."""
        return {
            number
            for predicate in predicates
            for found in _meeting(predicate)
            for number in self._readers.get(found, ())
        }

    def kinds(self, *, modules: bool) -> dict[CompiledRule, str]:
        """Whether each rule is nonrecursive, recursive, or recursive in a stratum with modules."""
        found: dict[CompiledRule, str] = {}
        for stratum in self.strata:
            found |= dict.fromkeys(stratum.nonrecursive, "nonrecursive")
            kind = "modular" if modules and stratum.modules else "recursive"
            found |= dict.fromkeys(stratum.recursive, kind)
            found |= {aggregation.rule: "nonrecursive" for aggregation in stratum.aggregations}
        return found

    @cached_property
    def derived(self) -> frozenset[Predicate]:
        """The predicates that rules derive."""
        return frozenset(self._owner)


def reading(rules: Iterable[CompiledRule], changed: Collection[Predicate]) -> list[CompiledRule]:
    """The rules that read one of the changed predicates."""
    met = {wide for predicate in changed for wide in _meeting(predicate)}
    return [
        rule
        for rule in rules
        if any(p.predicate in met for p in rule.body)
        or any(p.predicate in met for p in rule.negated)
    ]


def _meeting(predicate: Predicate) -> tuple[Predicate, ...]:
    """A narrow predicate, and the wide ones that it belongs to."""
    if predicate.relation != TRIPLE or predicate.property is None:
        return (predicate,)
    return (predicate, TYPES, TRIPLES) if predicate.property == TYPE else (predicate, TRIPLES)


def _read_by(stratum: CompiledStratum) -> set[Predicate]:
    found = {p.predicate for rule in stratum.rules for p in (*rule.body, *rule.negated)}
    for aggregation in stratum.aggregations:
        found |= {p.predicate for p in aggregation.touching.body}
    return found
