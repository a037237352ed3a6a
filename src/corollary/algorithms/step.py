"""One stratum of an update: what algorithms see, and what is common to all of them.

The strata of the new program are updated one after the other. Before a stratum, `facts` holds the
new facts of lower strata and the old ones of this and later strata; `deleted` (D \\ A) and
`inserted` (A \\ D) say by what the lower strata differ. An algorithm finds what the stratum loses;
what it gains is found by semi-naive evaluation (step DR5 of Motik et al. 2015; Algorithm 3, lines
31–40, of Hu et al. 2019).

Rules that a program loses or gains need no strata of their own: all instances of a removed rule
held in the old facts, and their heads are among `lost`; an added rule is evaluated in the new facts
of its stratum. Rules that stay are ordered by the strata of the new program.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from corollary.algorithms.strata import CompiledStratum, reading
from corollary.core.compile import CompiledRule
from corollary.core.engine import Counts, Derived, Engine, F
from corollary.core.statistics import Statistics

R = TypeVar("R")


@dataclass
class Counters(Generic[F]):
    """The counts that some algorithms keep: nonrecursive instances, and recursive ones."""

    nonrecursive: Counts[F]
    recursive: Counts[F] | None = None

    def add(self, derived: Derived[F], *, recursive: bool, sign: int = 1) -> None:
        """Add the instances of a counted `derive`, or take them away; what is not kept is not."""
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
    """What leaves a stratum, and what of it must come back (its consequences follow)."""

    overdeleted: F
    rederived: F
    left: F | None = None  # all facts afterwards, where they are known at once


@dataclass
class Step(Generic[F]):
    """The update of one stratum."""

    engine: Engine[F]
    stratum: CompiledStratum
    statistics: Statistics
    added_rules: frozenset[CompiledRule]  # rules that the old program did not have
    before: F  # I
    facts: F
    explicit: F  # E after the update
    deleted: F
    inserted: F
    lost: F  # explicit facts of this stratum that are deleted, heads of removed rules
    gained: F  # explicit facts of this stratum that are inserted
    counters: Counters[F] | None = None

    def only_own(self, facts: F) -> F:
        """The facts of this stratum's predicates."""
        return facts.only(self.stratum.predicates)

    @cached_property
    def nothing(self) -> F:
        """The empty set."""
        return self.engine.facts({})

    @cached_property
    def kept(self) -> tuple[CompiledRule, ...]:
        """The rules that the old program had too."""
        return tuple(rule for rule in self.stratum.rules if rule not in self.added_rules)

    @cached_property
    def kept_recursive(self) -> tuple[CompiledRule, ...]:
        """The recursive ones among them."""
        return tuple(rule for rule in self.stratum.recursive if rule not in self.added_rules)

    @cached_property
    def surviving(self) -> F:
        """I \\ D of lower strata, and all old facts of this one."""
        return self.facts.difference(self.inserted) if len(self.inserted) else self.facts

    @cached_property
    def ever(self) -> F:
        """I ∪ A: what negated atoms must not match, so that an instance held and will hold."""
        return self.before.union(self.inserted) if len(self.inserted) else self.before

    def lost_below(self, *, phase: str = "overdeletion") -> F:
        """(E⁻ ∩ Oˢ) ∪ Πₙᵣ[I : D \\ A, A \\ D]; counters are told."""
        if not self.stratum.nonrecursive:
            return self.lost
        rules = [rule for rule in self.stratum.nonrecursive if rule not in self.added_rules]
        found = self.lost_instances(rules, phase=phase, counted=self.counters is not None)
        if self.counters is not None:
            self.counters.add(found, recursive=False, sign=-1)
        return self.lost.union(found.facts)

    def gained_below(self) -> F:
        """(E⁺ ∩ Oˢ) ∪ Πₙᵣ[(I \\ D) ∪ A : A \\ D, D \\ A]; counters are told."""
        if not self.stratum.nonrecursive:
            return self.gained
        counted = self.counters is not None
        kept = [rule for rule in self.stratum.nonrecursive if rule not in self.added_rules]
        added = [rule for rule in self.stratum.nonrecursive if rule in self.added_rules]
        found = [self.gained_instances(kept, counted=counted)] if kept else []
        if added:
            derived = self.engine.derive(added, self.facts, counted=counted)
            found.append(self.count("insertion", derived))
        facts = self.gained
        for derived in found:
            if self.counters is not None:
                self.counters.add(derived, recursive=False)
            facts = facts.union(derived.facts)
        return facts

    def certain(self, facts: F) -> F:
        """Those facts that are explicit, or that a nonrecursive rule derives."""
        if not len(facts):
            return facts
        explicit = facts.intersection(self.explicit)
        if not self.stratum.nonrecursive:
            return explicit
        left = facts.difference(explicit)
        if self.counters is not None:
            return explicit.union(self.counters.nonrecursive.positive(left))
        return explicit.union(
            self.supported(left, self.facts, self.stratum.nonrecursive, "rederivation")
        )

    def candidates(self, *, phase: str = "overdeletion") -> F:
        """(E⁻ ∩ Oˢ) ∪ Π[I : D \\ A, A \\ D]: facts that lose an instance to other strata."""
        return self.lost.union(self.lost_instances(self.kept, phase=phase).facts)

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
        """Π[(I \\ D) ∪ A : A \\ D, D \\ A] of the rules that stay."""
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
        self, delta: F, processed: F, *, phase: str = "overdeletion", counted: bool = False
    ) -> Derived[F]:
        """Π[I \\ processed : delta] by recursive rules: instances that end with these facts."""
        surviving = self.surviving
        return self.count(
            phase,
            self.engine.derive(
                self.kept_recursive,
                surviving.difference(processed) if len(processed) else surviving,
                negative=self.ever,
                delta=delta,
                counted=counted,
            ),
        )

    def count(self, phase: str, derived: Derived[F]) -> Derived[F]:
        """Put the instances of a derivation into the statistics."""
        self.statistics.count(phase, derived.instances)
        return derived

    def supported(self, heads: F, facts: F, rules: Sequence[CompiledRule], phase: str) -> F:
        """Those heads that a rule derives from `facts` in one step."""
        if not len(heads) or not rules:
            return self.nothing
        return self.count(phase, self.engine.derive(rules, facts, heads=heads)).facts


class Algorithm(Protocol[F]):
    """How a stratum loses facts, and gains them."""

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Find what leaves the stratum; yields after every round."""
        ...

    def insert(self, step: Step[F], rederived: F) -> F:
        """Add to `step.facts` what follows; returns what was added."""
        ...


def finish(steps: Generator[int, None, R]) -> R:
    """Run a generator to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: R = stop.value
            return result


def insert(step: Step[F], rederived: F) -> F:
    """Semi-naive evaluation from what is rederived, inserted, and follows from lower strata."""
    seeds = step.gained.union(rederived).union(step.gained_instances(step.kept).facts)
    added = [rule for rule in step.stratum.rules if rule in step.added_rules]
    if added:
        seeds = seeds.union(step.count("insertion", step.engine.derive(added, step.facts)).facts)
    return spread(step, seeds)


def spread(step: Step[F], seeds: F) -> F:
    """Add new facts and all that the recursive rules derive from them; returns what was added."""
    new = seeds.difference(step.facts)
    if not len(new):
        return new
    step.facts = step.facts.union(new)
    step.statistics.rounds += 1
    if step.stratum.recursive:
        closed = step.engine.close(step.stratum.recursive, step.facts, new)
        step.count("insertion", closed)
        step.statistics.rounds += closed.rounds
        step.facts = step.facts.union(closed.facts)
        new = new.union(closed.facts)
    return new
