"""The update of one stratum: the input of every algorithm, and the steps that all share.

The strata of the new program are updated in order. Before a stratum, `facts` holds the new facts of
lower strata and the old facts of this and later strata; `deleted` (D \\ A) and `inserted` (A \\ D)
are the changes of the lower strata. An algorithm computes the facts that the stratum loses;
semi-naive evaluation computes those that it gains (step DR5 of Motik et al. 2015; Algorithm 3,
lines 31–40, of Hu et al. 2019).

Rule changes need no strata of their own: all instances of a removed rule held in the old facts, and
their heads are among `lost`; an added rule is evaluated over the new facts of its stratum. The
remaining rules are ordered by the strata of the new program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from corollary.algorithms.strata import CompiledStratum, reading
from corollary.core.compile import CompiledRule
from corollary.core.engine import Counts, Derived, Engine, F
from corollary.core.statistics import Statistics

R = TypeVar("R")


@dataclass
class Counters(Generic[F]):
    """The derivation counters C_nr and C_r of the counting algorithms."""

    nonrecursive: Counts[F]
    recursive: Counts[F] | None = None

    def add(self, derived: Derived[F], *, recursive: bool, sign: int = 1) -> None:
        """Add or subtract the instances of a counted `derive`; a missing counter is skipped."""
        counts = self.recursive if recursive else self.nonrecursive
        if counts is None:
            return
        changed = counts.plus(derived) if sign > 0 else counts.minus(derived)
        if recursive:
            self.recursive = changed
        else:
            self.nonrecursive = changed


@dataclass(frozen=True)
class Removal(Generic[F]):
    """The facts deleted from a stratum, and those to insert again with their consequences."""

    overdeleted: F
    rederived: F
    remaining: F | None = None  # all facts after the deletion, if already computed


@dataclass
class StratumUpdate(Generic[F]):
    """The update of one stratum."""

    engine: Engine[F]
    stratum: CompiledStratum
    statistics: Statistics
    added_rules: frozenset[CompiledRule]  # rules of the new program only
    before: F  # I
    facts: F
    explicit: F  # E after the update
    deleted: F
    inserted: F
    lost: F  # deleted explicit facts of this stratum, and heads of removed rules
    gained: F  # inserted explicit facts of this stratum
    counters: Counters[F] | None = None
    nothing: F = field(init=False)
    old_rules: tuple[CompiledRule, ...] = field(init=False)  # that the old program has too
    old_recursive: tuple[CompiledRule, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.nothing = self.engine.facts({})
        self.old_rules = self._old(self.stratum.rules)
        self.old_recursive = self._old(self.stratum.recursive)

    def only_own(self, facts: F) -> F:
        """Select the facts of this stratum's predicates."""
        return facts.only(self.stratum.predicates)

    def _old(self, rules: tuple[CompiledRule, ...]) -> tuple[CompiledRule, ...]:
        """Leave out the added rules; without any, engines find their index of the same tuple."""
        if not self.added_rules:
            return rules
        return tuple(rule for rule in rules if rule not in self.added_rules)

    @cached_property
    def surviving(self) -> F:
        """I \\ D of lower strata, and all old facts of this one."""
        return self.facts.difference(self.inserted) if len(self.inserted) else self.facts

    @property
    def propagating(self) -> F:
        """The `surviving` facts that recursive rules read; nothing without such rules.

        Computing them costs as much as there are changed predicates, which may be one per stratum.
        """
        return self.surviving if self.old_recursive else self.nothing

    @cached_property
    def ever(self) -> F:
        """I ∪ A: an instance held and still holds if its negated atoms match nothing here."""
        return self.before.union(self.inserted) if len(self.inserted) else self.before

    def lost_below(self, *, phase: str = "overdeletion") -> F:
        """(E⁻ ∩ Oˢ) ∪ Πₙᵣ[I : D \\ A, A \\ D]; adjusts the counters."""
        if not self.stratum.nonrecursive:
            return self.lost
        rules = self._old(self.stratum.nonrecursive)
        derived = self.lost_instances(rules, phase=phase, counted=self.counters is not None)
        if self.counters is not None:
            self.counters.add(derived, recursive=False, sign=-1)
        return self.lost.union(derived.facts)

    def gained_below(self) -> F:
        """(E⁺ ∩ Oˢ) ∪ Πₙᵣ[(I \\ D) ∪ A : A \\ D, D \\ A]; adjusts the counters."""
        if not self.stratum.nonrecursive:
            return self.gained
        counted = self.counters is not None
        facts = self.gained
        for derived in self.gained_by(self.stratum.nonrecursive, counted=counted):
            if self.counters is not None:
                self.counters.add(derived, recursive=False)
            facts = facts.union(derived.facts)
        return facts

    def gained_by(self, rules: Sequence[CompiledRule], *, counted: bool) -> list[Derived[F]]:
        """Instances that begin with the update: of old rules by the changes, of added rules all."""
        old = self._old(tuple(rules))
        added = [rule for rule in rules if rule in self.added_rules]
        parts = [self.gained_instances(old, counted=counted)] if old else []
        if added:
            derived = self.engine.derive(added, self.facts, counted=counted)
            parts.append(self.count("insertion", derived))
        return parts

    def certain(self, facts: F) -> F:
        """Select the facts that are explicit or derived by a nonrecursive rule."""
        if not len(facts):
            return facts
        explicit = facts.intersection(self.explicit)
        if not self.stratum.nonrecursive:
            return explicit
        others = facts.difference(explicit)
        if self.counters is not None:
            return explicit.union(self.counters.nonrecursive.positive(others))
        return explicit.union(
            self.supported(others, self.facts, self.stratum.nonrecursive, "rederivation")
        )

    def candidates(self, *, phase: str = "overdeletion") -> F:
        """(E⁻ ∩ Oˢ) ∪ Π[I : D \\ A, A \\ D]: facts that lose an instance to other strata."""
        return self.lost.union(self.lost_instances(self.old_rules, phase=phase).facts)

    def lost_instances(
        self, rules: Sequence[CompiledRule], *, phase: str = "overdeletion", counted: bool = False
    ) -> Derived[F]:
        """Π[I : D \\ A, A \\ D]: instances that end because lower strata changed."""
        rules = reading(rules, self.deleted, self.inserted)
        if not rules:
            return Derived(self.nothing, 0, counts={})
        return self.count(
            phase,
            self.engine.derive(
                rules,
                self.before,
                delta=self.deleted,
                negative_delta=self.inserted,
                counted=counted,
            ),
        )

    def gained_instances(
        self, rules: Sequence[CompiledRule], *, counted: bool = False
    ) -> Derived[F]:
        """Π[(I \\ D) ∪ A : A \\ D, D \\ A] for rules of both programs."""
        rules = reading(rules, self.deleted, self.inserted)
        if not rules:
            return Derived(self.nothing, 0, counts={})
        return self.count(
            "insertion",
            self.engine.derive(
                rules,
                self.facts,
                delta=self.inserted,
                negative_delta=self.deleted,
                counted=counted,
            ),
        )

    def consequences(
        self, delta: F, facts: F, *, phase: str = "overdeletion", counted: bool = False
    ) -> Derived[F]:
        """Π[facts : delta] by recursive rules, for facts without those of earlier deltas.

        Callers start with `propagating` and remove each delta after its turn: removing all of them
        again in every round would cost as much as there are rounds.
        """
        return self.count(
            phase,
            self.engine.derive(
                self.old_recursive,
                facts,
                negative=self.ever,
                delta=delta,
                counted=counted,
            ),
        )

    def count(self, phase: str, derived: Derived[F]) -> Derived[F]:
        """Record the instances of a derivation in the statistics."""
        self.statistics.count(phase, derived.instances)
        return derived

    def supported(self, heads: F, facts: F, rules: Sequence[CompiledRule], phase: str) -> F:
        """Select the heads that a rule derives from `facts` in one step."""
        if not len(heads) or not rules:
            return self.nothing
        return self.count(phase, self.engine.derive(rules, facts, heads=heads)).facts


class Algorithm(ABC, Generic[F]):
    """How a stratum is updated: deletion first, then insertion."""

    @abstractmethod
    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Compute the deleted facts; yields after every round."""

    def insert(self, update: StratumUpdate[F], rederived: F) -> F:
        """Insert facts and their consequences into `update.facts`; return those that are new.

        This is semi-naive evaluation from rederived and inserted facts, and from the changes of
        lower strata: step DR5 of DRed, and the loop of FP-update's Algorithm 1.3.
        """
        seeds = update.gained.union(rederived)
        seeds = seeds.union(update.gained_instances(update.old_rules).facts)
        added = [rule for rule in update.stratum.rules if rule in update.added_rules]
        if added:
            derived = update.count("insertion", update.engine.derive(added, update.facts))
            seeds = seeds.union(derived.facts)
        return insert_closure(update, seeds)


def finish(steps: Generator[int, None, R]) -> R:
    """Run a generator to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: R = stop.value
            return result


def insert_closure(update: StratumUpdate[F], seeds: F) -> F:
    """Insert new facts and their consequences by recursive rules; return all inserted facts."""
    new = seeds.difference(update.facts)
    if not len(new):
        return new
    update.facts = update.facts.union(new)
    update.statistics.rounds += 1
    if update.stratum.recursive:
        closed = update.engine.close(update.stratum.recursive, update.facts, new)
        update.count("insertion", closed)
        update.statistics.rounds += closed.rounds
        update.facts = update.facts.union(closed.facts)
        new = new.union(closed.facts)
    return new
