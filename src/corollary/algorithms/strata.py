"""A program compiled for maintenance: its strata, and which of them a change affects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import ReferenceType, ref

from corollary.algorithms.aggregates import Aggregation, without_aggregates
from corollary.algorithms.modular.extremal import Extremal
from corollary.algorithms.modular.framework import Module, SemiNaive
from corollary.algorithms.modular.recognize import recognize_modules
from corollary.algorithms.tuning import tuning
from corollary.core.compile import (
    TRIPLES,
    TYPES,
    CompiledRule,
    compile_rule,
    covers,
    narrow_predicate,
)
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.lang.stratify import Predicate, Stratum, stratify
from corollary.lang.syntax import TRIPLE, TYPE, Aggregate, Rule

ModuleKey = tuple[type, frozenset[CompiledRule], frozenset[CompiledRule]]


@dataclass(frozen=True, eq=False)
class CompiledStratum:
    """The compiled rules of a stratum: either rules or aggregations, not both."""

    source: Stratum
    predicates: frozenset[Predicate]
    nonrecursive: tuple[CompiledRule, ...]
    recursive: tuple[CompiledRule, ...]
    dictionary: Dictionary
    aggregations: tuple[Aggregation, ...] = ()

    @cached_property
    def rules(self) -> tuple[CompiledRule, ...]:
        """All rules except the aggregations."""
        return self.nonrecursive + self.recursive

    @cached_property
    def reads(self) -> frozenset[Predicate]:
        """The predicates of body atoms."""
        predicates = {p.predicate for rule in self.rules for p in (*rule.body, *rule.negated)}
        for aggregation in self.aggregations:
            predicates |= {p.predicate for p in aggregation.affecting.body}
        return frozenset(predicates)

    @cached_property
    def extremal(self) -> Extremal[Any] | None:
        """The module of its relations if they keep the least or greatest values."""
        if not self.source.is_extremal:
            return None
        return Extremal(self.source, self.rules, self.dictionary)

    @cached_property
    def seeding(self) -> tuple[CompiledRule, ...]:
        """The rules that may have instances in lower strata alone; evaluation starts with them."""
        return self.nonrecursive + tuple(rule for rule in self.recursive if rule.reads_wide)

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
        """The modules of the recursive rules, or none if `SemiNaive` would be the only one.

        A stratum with many other recursive rules has no modules either: rebuilding a module closes
        the whole stratum.
        """
        if not self.recursive or self.extremal is not None:
            return ()
        modules = recognize_modules(self.recursive, self.dictionary)
        others = [len(module.rules) for module in modules if isinstance(module, SemiNaive)]
        if len(others) == len(modules) or sum(others) > tuning.module_companion_rules_limit:
            return ()
        # A rule with a variable property in its head puts all triples into one stratum.
        if any(self.may_derive(predicate) for module in modules for predicate in module.below):
            return ()
        return tuple(modules)

    @cached_property
    def modular(self) -> bool:
        """Whether all recursive rules are in modules that compute their own diff."""
        return bool(self.modules) and all(module.computes_diff for module in self.modules)

    def key(self, module: Module[Any]) -> ModuleKey:
        """The key of a module's state: its type, its rules, and its competing rules."""
        key = self._keys.get((type(module), module.rules))
        if key is None:
            others = competing_rules(module, self.recursive)
            key = type(module), frozenset(module.rules), frozenset(others)
            self._keys[type(module), module.rules] = key
        return key

    @cached_property
    def _keys(self) -> dict[tuple[type, tuple[CompiledRule, ...]], ModuleKey]:
        return {}

    def may_derive(self, predicate: Predicate) -> bool:
        """Whether a body atom of this predicate may match facts that the stratum derives."""
        return any(p in self.predicates for p in with_wide(predicate)) or any(
            covers(predicate, derived) for derived in self.predicates
        )


class CompiledStrata:
    """The strata of a program, indexed by the predicates that they derive and read.

    A stratum's number is its index in `strata`.
    """

    strata: list[CompiledStratum]
    compiled: dict[Rule, CompiledRule]
    _base: ReferenceType[CompiledStrata] | None = None  # the strata that `changed` started from
    _added: list[CompiledRule]  # compared with `_base`
    _removed: list[CompiledRule]

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
        self.compiled = {rule: known.get(rule) or compile_rule(rule, dictionary) for rule in normal}
        self._dictionary = dictionary
        self._coarse = coarse
        self.strata = [self._compile(stratum) for stratum in stratify(normal, coarse=coarse)]
        self._owner = {p: stratum for stratum in self.strata for p in stratum.predicates}
        self._readers: dict[Predicate, tuple[CompiledStratum, ...]] = {}
        for stratum in self.strata:
            for predicate in stratum.reads:
                self._readers[predicate] = (*self._readers.get(predicate, ()), stratum)

    def changed(
        self, rules: Sequence[Rule], added: Sequence[Rule], removed: Sequence[Rule]
    ) -> CompiledStrata:
        """The strata of `rules`, which differ by `added` and `removed`; unchanged ones are shared.

        >>> from corollary.lang.program import Program
        >>> text = "b(?x) :- a(?x) . c(?x) :- b(?x) . d(?x) :- c(?x) . e(?x) :- d(?x) ."
        >>> program = Program.parse(text)
        >>> strata = CompiledStrata(program.rules, Dictionary())
        >>> more = Program.parse("b(?x) :- c(?x) .").rules
        >>> cyclic = strata.changed(program.rules + more, more, ())
        >>> [sorted(p.relation for p in stratum.predicates) for stratum in cyclic.strata]
        [['b', 'c'], ['d'], ['e']]
        >>> cyclic.strata[1] is strata.strata[2]
        True
        """
        cuts = None if self._coarse else self._cuts(added, removed)
        if cuts is None:
            return CompiledStrata(
                rules, self._dictionary, coarse=self._coarse, compiled=self.compiled
            )
        new = copy(self)
        new._base = ref(self)
        for name in ("derived", "_numbers"):
            new.__dict__.pop(name, None)
        new.compiled = dict(self.compiled)
        for rule in removed:
            new.compiled.pop(rule, None)
        new.compiled |= {rule: compile_rule(rule, self._dictionary) for rule in added}
        new._added = [new.compiled[rule] for rule in added]
        new._removed = [self.compiled[rule] for rule in removed]
        new.strata, new._owner, new._readers = [], dict(self._owner), dict(self._readers)
        removed_rules, at = frozenset(removed), 0
        for (first, end), new_rules in cuts:
            new.strata += self.strata[at:first]
            old = self.strata[first:end]
            for stratum in old:
                new._unregister(stratum)
            sources = [stratum.source for stratum in old]
            for source in _restratify(sources, removed_rules, new_rules):
                new._append(new._compile(source))
            at = end
        new.strata += self.strata[at:]
        return new

    def _cuts(
        self, added: Sequence[Rule], removed: Sequence[Rule]
    ) -> list[tuple[tuple[int, int], list[Rule]]] | None:
        """The ranges of strata to restratify, each with its added rules.

        None if all strata must be restratified, because some atom covers all triples. The strata
        are in topological order: a rule that respects it changes its own stratum only; any other
        rule changes all strata from its head to the last one it reads. Newly derived predicates
        are placed between the strata that they read and those that read them.
        """
        if any(stratum.source.is_extremal for stratum in self.strata) or any(
            rule.extremum is not None for rule in added
        ):
            return None
        heads = [narrow_predicate(rule.head) for rule in (*added, *removed)]
        reads = {rule: [narrow_predicate(atom) for atom, _ in rule.atoms()] for rule in added}
        if any(wide in self._readers or wide in self._owner for wide in (TRIPLES, TYPES)) or any(
            predicate in (TRIPLES, TYPES)
            for predicates in (heads, *reads.values())
            for predicate in predicates
        ):
            return None
        if any(isinstance(part, Aggregate) for rule in (*added, *removed) for part in rule.body):
            return None
        number, owner = self._numbers, self._owner
        cuts: list[tuple[tuple[int, int], list[Rule]]] = []
        fresh: list[Rule] = []
        latest, earliest = -1, len(self.strata)
        for rule in removed:
            place = number[owner[narrow_predicate(rule.head)]]
            cuts.append(((place, place + 1), []))
        for rule in added:
            last = max((number[owner[p]] for p in reads[rule] if p in owner), default=-1)
            head = owner.get(narrow_predicate(rule.head))
            if head is None:
                fresh.append(rule)
                latest = max(latest, last)
                readers = self._readers.get(narrow_predicate(rule.head), ())
                earliest = min([earliest, *(number[reader] for reader in readers)])
            else:
                cuts.append(((number[head], max(number[head], last) + 1), [rule]))
        new_heads = {narrow_predicate(rule.head) for rule in fresh}
        for rule in added:
            # An existing predicate that will read a new one counts as its reader.
            head = owner.get(narrow_predicate(rule.head))
            if head is not None and any(p in new_heads for p in reads[rule]):
                earliest = min(earliest, number[head])
        if fresh:
            cuts.append(((min(earliest, latest + 1), latest + 1), fresh))
        merged: list[tuple[tuple[int, int], list[Rule]]] = []
        for (first, end), rules in sorted(cuts, key=lambda cut: cut[0]):
            if merged and first < merged[-1][0][1]:
                (start, other_end), others = merged[-1]
                others.extend(rules)
                merged[-1] = ((start, max(end, other_end)), others)
            else:
                merged.append(((first, end), rules))
        return merged

    def difference(self, other: CompiledStrata) -> tuple[list[CompiledRule], list[CompiledRule]]:
        """The rules missing from the other strata, and those missing from these."""
        if self._base is not None and self._base() is other:
            return self._added, self._removed
        mine, others = self.compiled, other.compiled
        return (
            [compiled for rule, compiled in mine.items() if rule not in others],
            [compiled for rule, compiled in others.items() if rule not in mine],
        )

    def _unregister(self, stratum: CompiledStratum) -> None:
        for predicate in stratum.predicates:
            del self._owner[predicate]
        for predicate in stratum.reads:
            readers = tuple(other for other in self._readers[predicate] if other is not stratum)
            if readers:
                self._readers[predicate] = readers
            else:
                del self._readers[predicate]

    def _append(self, stratum: CompiledStratum) -> None:
        self.strata.append(stratum)
        self._owner |= dict.fromkeys(stratum.predicates, stratum)
        for predicate in stratum.reads:
            self._readers[predicate] = (*self._readers.get(predicate, ()), stratum)

    def _compile(self, stratum: Stratum) -> CompiledStratum:
        nonrecursive = tuple(self.compiled[rule] for rule in stratum.nonrecursive)
        aggregations = tuple(
            Aggregation.of(r, self._dictionary) for r in nonrecursive if r.groupings
        )
        return CompiledStratum(
            stratum,
            stratum.predicates,
            () if aggregations else nonrecursive,
            tuple(self.compiled[rule] for rule in stratum.recursive),
            self._dictionary,
            aggregations,
        )

    @cached_property
    def _numbers(self) -> dict[CompiledStratum, int]:
        return {stratum: number for number, stratum in enumerate(self.strata)}

    @property
    def sources(self) -> list[Stratum]:
        """The uncompiled strata."""
        return [stratum.source for stratum in self.strata]

    def owner(self, predicate: Predicate) -> int | None:
        """The stratum whose rules may derive facts of a narrow predicate."""
        for candidate in with_wide(predicate):
            if candidate in self._owner:
                return self._numbers[self._owner[candidate]]
        return None

    def readers(self, predicates: Iterable[Predicate]) -> set[int]:
        """The strata whose rules read one of these narrow predicates."""
        return {
            self._numbers[stratum]
            for predicate in predicates
            for candidate in with_wide(predicate)
            for stratum in self._readers.get(candidate, ())
        }

    def count_relevant(self, facts: Facts) -> int:
        """Count the facts that some rule may read or derive."""
        if len(facts) <= tuning.counted_together_facts_limit:
            return len(facts)
        return len(
            facts.only(
                [
                    predicate
                    for predicate in facts.predicates()
                    if any(p in self._readers or p in self._owner for p in with_wide(predicate))
                ]
            )
        )

    def kinds(self, *, modules: bool) -> dict[CompiledRule, str]:
        """Classify rules as nonrecursive, recursive, or modular: recursive in a modular stratum."""
        kinds: dict[CompiledRule, str] = {}
        for stratum in self.strata:
            if stratum.extremal is not None:
                kinds |= dict.fromkeys(stratum.rules, "modular")
                continue
            kinds |= dict.fromkeys(stratum.nonrecursive, "nonrecursive")
            kind = "modular" if modules and stratum.modules else "recursive"
            kinds |= dict.fromkeys(stratum.recursive, kind)
            kinds |= {aggregation.rule: "nonrecursive" for aggregation in stratum.aggregations}
        return kinds

    @cached_property
    def derived(self) -> frozenset[Predicate]:
        """The predicates that rules derive."""
        return frozenset(self._owner)


def _restratify(
    strata: Sequence[Stratum], removed: frozenset[Rule], added: Sequence[Rule]
) -> Sequence[Stratum]:
    """Stratify again with changed rules; the only stratum of a single predicate is edited."""
    predicates = {predicate for stratum in strata for predicate in stratum.predicates}
    if len(predicates) != 1 or any(narrow_predicate(rule.head) not in predicates for rule in added):
        return stratify([*(r for s in strata for r in s.rules if r not in removed), *added])
    [old], [predicate] = strata, predicates
    nonrecursive = [rule for rule in old.nonrecursive if rule not in removed]
    recursive = [rule for rule in old.recursive if rule not in removed]
    for rule in added:
        is_recursive = any(narrow_predicate(atom) == predicate for atom, _ in rule.atoms())
        (recursive if is_recursive else nonrecursive).append(rule)
    if not nonrecursive and not recursive:
        return ()
    return (Stratum(old.predicates, tuple(nonrecursive), tuple(recursive)),)


def competing_rules(module: Module[Any], rules: Iterable[CompiledRule]) -> list[CompiledRule]:
    """The rules outside a module that may derive its predicates."""
    return [
        rule for rule in rules if rule not in module.rules and rule.may_derive(module.predicates)
    ]


def reading(rules: Sequence[CompiledRule], *changes: Facts) -> list[CompiledRule]:
    """Select the rules that read changed predicates; linear in what the rules read."""
    changed = [predicate for facts in changes for predicate in facts.predicates()]
    if len(changed) > len(rules):
        read = {p.predicate for rule in rules for p in (*rule.body, *rule.negated)}
        changed = [predicate for facts in changes for predicate in facts.only(read).predicates()]
    affected = {wide for predicate in changed for wide in with_wide(predicate)}
    return [
        rule
        for rule in rules
        if any(p.predicate in affected for p in rule.body)
        or any(p.predicate in affected for p in rule.negated)
    ]


def with_wide(predicate: Predicate) -> tuple[Predicate, ...]:
    """A predicate and the wide ones that cover it."""
    if predicate.relation != TRIPLE or predicate is TRIPLES:
        return (predicate,)
    if predicate.property == TYPE and predicate is not TYPES:
        return (predicate, TYPES, TRIPLES)
    return (predicate, TRIPLES)
