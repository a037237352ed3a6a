"""Counting, DRed^c and B/F^c: counters of derivations stop deletion early.

Papers: Urbani et al.: DynamiTE, ISWC 2013, §5.2 (counting); Hu, Motik, Horrocks: Modular
Materialisation of Datalog Programs, AAAI 2019, §4.2 (DRed^c).

Idea: for each fact, count the instances of nonrecursive rules that derive it (C_nr), and those of
recursive ones (C_r). A fact that is explicit or has C_nr > 0 is true whatever else is deleted, so
deletion stops there; an overdeleted fact with C_r > 0 is derived by facts that are left. Without
recursive rules C_nr decides everything: that is the counting algorithm.

Invariants: after every update, C_nr(F) and C_r(F) are the numbers of instances of nonrecursive and
recursive rules, in the strata of the program, that derive F from the materialization
(`Maintainer.verify` counts again).

Differs from the papers: explicit facts are told by E, not by a count of one more. B/F^c is the
search of B/F with C_nr in place of its search through nonrecursive rules; it keeps no C_r.

Cost: as DRed, less what the counters stop; every instance of every rule is counted once in the
beginning.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Generic

from corollary.algorithms import step as common
from corollary.algorithms.backward_forward import BackwardForward, Search
from corollary.algorithms.step import Counters, Removal, Step
from corollary.algorithms.strata import CompiledStratum
from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived, Engine, F


class CountedDRed(Generic[F]):
    """DRed^c, and counting where no rule is recursive."""

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Overdeletion that stops at C_nr, one-step rederivation by C_r."""
        new = lost(step)
        new = new.difference(step.certain(new))
        overdeleted = processed = step.nothing
        while len(new):
            overdeleted = overdeleted.union(new)
            if not step.kept_recursive:
                break
            found = step.consequences(new, processed, counted=True)
            _counters(step).add(found, recursive=True, sign=-1)
            processed = overdeleted
            new = found.facts.difference(overdeleted)
            new = new.difference(step.certain(new))
            step.statistics.rounds += 1
            yield 0
        step.statistics.consider("overdeleted", len(overdeleted))
        counts = _counters(step).recursive
        rederived = step.nothing
        if counts is not None and len(overdeleted):
            rederived = counts.positive(overdeleted)
            step.statistics.consider("rederived", len(rederived))
        return Removal(overdeleted, rederived)

    def insert(self, step: Step[F], rederived: F) -> F:
        """Semi-naive evaluation that counts."""
        return insert(step, rederived)


class CountedBackwardForward(BackwardForward[F]):
    """B/F^c."""

    def candidates(self, step: Step[F]) -> F:
        """What loses an instance to lower strata; its counters are told."""
        return lost(step, phase="deletion propagation")

    def search(self, step: Step[F]) -> Search[F]:
        """A search that asks the counter."""
        return _CountedSearch(step)

    def insert(self, step: Step[F], rederived: F) -> F:
        """Semi-naive evaluation that counts."""
        return insert(step, rederived)


class _CountedSearch(Search[F]):
    def derived_below(self, goals: F) -> F:
        return _counters(self.step).nonrecursive.positive(goals)


def insert(step: Step[F], rederived: F) -> F:
    """As `step.insert`, with the instances counted."""
    stratum, engine = step.stratum, step.engine
    counts_recursive = _counters(step).recursive is not None
    seeds = rederived.union(step.gained_below())
    for derived in _gained(step, stratum.recursive, counted=counts_recursive):
        _counters(step).add(derived, recursive=True)
        seeds = seeds.union(derived.facts)
    if not counts_recursive:
        return common.spread(step, seeds)
    new = seeds.difference(step.facts)
    added = new
    while len(new):
        step.facts = step.facts.union(new)
        step.statistics.rounds += 1
        if not stratum.recursive:
            break
        round_ = engine.derive(stratum.recursive, step.facts, delta=new, counted=True)
        _counters(step).add(step.count("insertion", round_), recursive=True)
        new = round_.facts.difference(step.facts)
        added = added.union(new)
    return added


def lost(step: Step[F], *, phase: str = "overdeletion") -> F:
    """Facts that lose an instance to lower strata, after their counters were told."""
    below = step.lost_below(phase=phase)
    counted = _counters(step).recursive is not None
    again = step.lost_instances(step.kept_recursive, phase=phase, counted=counted)
    _counters(step).add(again, recursive=True, sign=-1)
    return below.union(again.facts)


def recount(
    engine: Engine[F],
    strata: Sequence[CompiledStratum],
    facts: F,
    *,
    recursive: bool,
    modules: bool,
) -> Counters[F]:
    """The counters of a materialization, from scratch.

    Modules consider too few instances to count them: C_r is for the other strata.
    """
    below, again = engine.counts(), engine.counts()
    for stratum in strata:
        if stratum.nonrecursive:
            below = below.plus(engine.derive(stratum.nonrecursive, facts, counted=True))
        if stratum.recursive and recursive and not (modules and stratum.modules):
            again = again.plus(engine.derive(stratum.recursive, facts, counted=True))
    return Counters(below, again if recursive else None)


def _gained(step: Step[F], rules: Sequence[CompiledRule], *, counted: bool) -> list[Derived[F]]:
    kept = [rule for rule in rules if rule not in step.added_rules]
    added = [rule for rule in rules if rule in step.added_rules]
    found = [step.gained_instances(kept, counted=counted)] if kept else []
    if added:
        derived = step.engine.derive(added, step.facts, counted=counted)
        found.append(step.count("insertion", derived))
    return found


def _counters(step: Step[F]) -> Counters[F]:
    assert step.counters is not None, "the maintainer counts for this algorithm"
    return step.counters
