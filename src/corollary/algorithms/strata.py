"""A program compiled for maintenance: strata, and which of them a change reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import ReferenceType, ref

from corollary.algorithms.aggregates import Aggregation, without_aggregates
from corollary.algorithms.modular.framework import Module, SemiNaive
from corollary.algorithms.modular.recognize import recognized
from corollary.algorithms.tuning import tuning
from corollary.core.compile import TRIPLES, TYPES, CompiledRule, compile_rule, covers, home
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Facts
from corollary.lang.stratify import Predicate, Stratum, stratify
from corollary.lang.syntax import TRIPLE, TYPE, Aggregate, Rule

ModuleKey = tuple[type, frozenset[CompiledRule], frozenset[CompiledRule]]


@dataclass(frozen=True, eq=False)
class CompiledStratum:
    """The rules of a stratum in numbers. A stratum has rules or aggregations, not both."""

    source: Stratum
    predicates: frozenset[Predicate]
    nonrecursive: tuple[CompiledRule, ...]
    recursive: tuple[CompiledRule, ...]
    dictionary: Dictionary
    aggregations: tuple[Aggregation, ...] = ()

    @cached_property
    def rules(self) -> tuple[CompiledRule, ...]:
        """All but the aggregations."""
        return self.nonrecursive + self.recursive

    @cached_property
    def reads(self) -> frozenset[Predicate]:
        """The predicates of body atoms."""
        found = {p.predicate for rule in self.rules for p in (*rule.body, *rule.negated)}
        for aggregation in self.aggregations:
            found |= {p.predicate for p in aggregation.touching.body}
        return frozenset(found)

    @cached_property
    def seeding(self) -> tuple[CompiledRule, ...]:
        """The rules that may have instances in lower strata alone: they begin its evaluation."""
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
        """The modules of the recursive rules; none if there would be no other than `SemiNaive`.

        Nor are there any beside a crowd of other rules, which they would all be closed with again.
        """
        if not self.recursive:
            return ()
        found = recognized(self.recursive, self.dictionary)
        others = [len(module.rules) for module in found if isinstance(module, SemiNaive)]
        if len(others) == len(found) or sum(others) > tuning.module_companion_rules_limit:
            return ()
        return tuple(found)

    @cached_property
    def modular(self) -> bool:
        """Whether all recursive rules are in modules that can tell by what their facts differ."""
        return bool(self.modules) and all(module.tells for module in self.modules)

    def key(self, module: Module[Any]) -> ModuleKey:
        """What a module's state depends on: kind, rules, and others that derive the same."""
        found = self._keys.get((type(module), module.rules))
        if found is None:
            others = competing_rules(module, self.recursive)
            found = type(module), frozenset(module.rules), frozenset(others)
            self._keys[type(module), module.rules] = found
        return found

    @cached_property
    def _keys(self) -> dict[tuple[type, tuple[CompiledRule, ...]], ModuleKey]:
        return {}

    def may_derive(self, predicate: Predicate) -> bool:
        """Whether a body atom may read what the stratum derives."""
        return any(p in self.predicates for p in _meeting(predicate)) or any(
            covers(predicate, derived) for derived in self.predicates
        )


class CompiledStrata:
    """The strata of a program, and an index from predicates to the strata that read them.

    A stratum's number is its place in `strata`.
    """

    strata: list[CompiledStratum]
    compiled: dict[Rule, CompiledRule]
    _base: ReferenceType[CompiledStrata] | None = None  # what it was changed from, and by what
    _came: list[CompiledRule]
    _went: list[CompiledRule]

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
        """The strata of other rules, which differ by these; what stays the same is shared.

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
        new._came = [new.compiled[rule] for rule in added]
        new._went = [self.compiled[rule] for rule in removed]
        new.strata, new._owner, new._readers = [], dict(self._owner), dict(self._readers)
        gone, at = frozenset(removed), 0
        for (first, end), more in cuts:
            new.strata += self.strata[at:first]
            old = self.strata[first:end]
            for stratum in old:
                new._leave(stratum)
            for source in _restratified([stratum.source for stratum in old], gone, more):
                new._enter(new._compile(source))
            at = end
        new.strata += self.strata[at:]
        return new

    def _cuts(
        self, added: Sequence[Rule], removed: Sequence[Rule]
    ) -> list[tuple[tuple[int, int], list[Rule]]] | None:
        """Which stretches of the strata are to be made again, and the rules that come there.

        None if all of them, because some atom is about all triples. The strata are in an order in
        which dependencies go back; a rule that keeps to it changes its own stratum only, and one
        that does not changes what lies between its head and what it reads. Predicates that were
        not derived so far are put between what they read and what reads them.
        """
        heads = [home(rule.head) for rule in (*added, *removed)]
        reads = {rule: [home(atom) for atom, _ in rule.atoms()] for rule in added}
        if any(wide in self._readers or wide in self._owner for wide in (TRIPLES, TYPES)) or any(
            predicate in (TRIPLES, TYPES)
            for found in (heads, *reads.values())
            for predicate in found
        ):
            return None
        if any(isinstance(part, Aggregate) for rule in (*added, *removed) for part in rule.body):
            return None
        number, owner = self._numbers, self._owner
        spans: list[tuple[int, int]] = []
        fresh: list[Rule] = []
        latest, earliest = -1, len(self.strata)
        for rule in removed:
            place = number[owner[home(rule.head)]]
            spans.append((place, place + 1))
        for rule in added:
            places = [number[owner[p]] for p in reads[rule] if p in owner]
            last = max(places, default=-1)
            head = owner.get(home(rule.head))
            if head is None:
                fresh.append(rule)
                latest = max(latest, last)
                readers = self._readers.get(home(rule.head), ())
                earliest = min([earliest, *(number[reader] for reader in readers)])
            else:
                place = number[head]
                spans.append((place, max(place, last) + 1))
        new_heads = {home(rule.head) for rule in fresh}
        for rule in added:
            # An older predicate that is to read a new one counts as a reader of it.
            head = owner.get(home(rule.head))
            if head is not None and any(p in new_heads for p in reads[rule]):
                earliest = min(earliest, number[head])
        if fresh:
            group = (earliest, latest + 1) if earliest <= latest else (latest + 1, latest + 1)
            spans.append(group)
        merged: list[tuple[int, int]] = []
        for first, end in sorted(spans):
            if merged and first < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((first, end))
        cuts: list[tuple[tuple[int, int], list[Rule]]] = [(span, []) for span in merged]
        for rule in added:
            head = owner.get(home(rule.head))
            place = group[0] if head is None else number[head]
            for (first, end), more in cuts:
                if first <= place < end or (head is None and first == place == end):
                    more.append(rule)
                    break
        return cuts

    def difference(self, other: CompiledStrata) -> tuple[list[CompiledRule], list[CompiledRule]]:
        """The rules that the other strata do not have, and those that only they have."""
        if self._base is not None and self._base() is other:
            return self._came, self._went
        mine, others = self.compiled, other.compiled
        return (
            [compiled for rule, compiled in mine.items() if rule not in others],
            [compiled for rule, compiled in others.items() if rule not in mine],
        )

    def _leave(self, stratum: CompiledStratum) -> None:
        for predicate in stratum.predicates:
            del self._owner[predicate]
        for predicate in stratum.reads:
            left = tuple(other for other in self._readers[predicate] if other is not stratum)
            if left:
                self._readers[predicate] = left
            else:
                del self._readers[predicate]

    def _enter(self, stratum: CompiledStratum) -> None:
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
        """The strata in terms."""
        return [stratum.source for stratum in self.strata]

    def owner(self, predicate: Predicate) -> int | None:
        """The stratum whose rules may derive facts of a narrow predicate."""
        for found in _meeting(predicate):
            if found in self._owner:
                return self._numbers[self._owner[found]]
        return None

    def readers(self, predicates: Iterable[Predicate]) -> set[int]:
        """The strata whose rules read one of these narrow predicates."""
        return {
            self._numbers[stratum]
            for predicate in predicates
            for found in _meeting(predicate)
            for stratum in self._readers.get(found, ())
        }

    def concerned(self, facts: Facts) -> int:
        """The number of facts that some rule may read or derive."""
        if len(facts) <= tuning.counted_together_facts_limit:
            return len(facts)
        return len(
            facts.only(
                [
                    predicate
                    for predicate in facts.predicates()
                    if any(p in self._readers or p in self._owner for p in _meeting(predicate))
                ]
            )
        )

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


def _restratified(
    strata: Sequence[Stratum], gone: frozenset[Rule], more: Sequence[Rule]
) -> Sequence[Stratum]:
    """Strata without some rules and with others; one of a single predicate stays what it is."""
    predicates = {predicate for stratum in strata for predicate in stratum.predicates}
    if len(predicates) != 1 or any(home(rule.head) not in predicates for rule in more):
        return stratify([*(r for s in strata for r in s.rules if r not in gone), *more])
    [old], [predicate] = strata, predicates
    found: tuple[list[Rule], list[Rule]] = [], []
    for each, rules in zip(found, (old.nonrecursive, old.recursive), strict=True):
        each += [rule for rule in rules if rule not in gone]
    for rule in more:
        found[any(home(atom) == predicate for atom, _ in rule.atoms())].append(rule)
    if not any(found):
        return ()
    return (Stratum(old.predicates, tuple(found[0]), tuple(found[1])),)


def competing_rules(module: Module[Any], rules: Iterable[CompiledRule]) -> list[CompiledRule]:
    """The rules outside a module that may derive its predicates."""
    return [
        rule for rule in rules if rule not in module.rules and rule.may_derive(module.predicates)
    ]


def reading(rules: Sequence[CompiledRule], *changes: Facts) -> list[CompiledRule]:
    """The rules that read predicates of changed facts; costs what the rules read."""
    read = {p.predicate for rule in rules for p in (*rule.body, *rule.negated)}
    changed = {predicate for facts in changes for predicate in facts.only(read).predicates()}
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
