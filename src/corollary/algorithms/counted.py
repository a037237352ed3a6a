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

Differs from the papers: explicit facts are recognized by E, not by an extra count. B/F^c is the
search of B/F with C_nr instead of the search through nonrecursive rules; it keeps no C_r.

Cost: as DRed, less the deletions that the counters stop; every instance of every rule is counted
once initially.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from corollary.algorithms.backward_forward import BackwardForward, Search
from corollary.algorithms.strata import CompiledStratum
from corollary.algorithms.stratum import (
    Algorithm,
    Counters,
    Removal,
    StratumUpdate,
    insert_closure,
)
from corollary.core.engine import Engine, F


class CountedDRed(Algorithm[F]):
    """DRed^c, and counting where no rule is recursive."""

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Overdeletion that stops at C_nr, one-step rederivation by C_r."""
        new = lost(update)
        new = new.difference(update.certain(new))
        overdeleted, remaining = update.nothing, update.propagating
        while len(new):
            overdeleted = overdeleted.union(new)
            if not update.old_recursive:
                break
            consequences = update.consequences(new, remaining, counted=True)
            _counters(update).add(consequences, recursive=True, sign=-1)
            remaining = remaining.difference(new)
            new = consequences.facts.difference(overdeleted)
            new = new.difference(update.certain(new))
            update.statistics.rounds += 1
            yield 0
        update.statistics.consider("overdeleted", len(overdeleted))
        counts = _counters(update).recursive
        rederived = update.nothing
        if counts is not None and len(overdeleted):
            rederived = counts.positive(overdeleted)
            update.statistics.consider("rederived", len(rederived))
        return Removal(overdeleted, rederived)

    def insert(self, update: StratumUpdate[F], rederived: F) -> F:
        """Semi-naive evaluation with counting."""
        return insert(update, rederived)


class CountedBackwardForward(BackwardForward[F]):
    """B/F^c."""

    def candidates(self, update: StratumUpdate[F]) -> F:
        """The facts that lose an instance to lower strata; adjusts the counters."""
        return lost(update, phase="deletion propagation")

    def search(self, update: StratumUpdate[F]) -> Search[F]:
        """Create a search that uses C_nr."""
        return _CountedSearch(update)

    def insert(self, update: StratumUpdate[F], rederived: F) -> F:
        """Semi-naive evaluation with counting."""
        return insert(update, rederived)


class _CountedSearch(Search[F]):
    def derived_below(self, goals: F) -> F:
        return _counters(self.update).nonrecursive.positive(goals)


def insert(update: StratumUpdate[F], rederived: F) -> F:
    """As `Algorithm.insert`, with the instances counted."""
    stratum, engine = update.stratum, update.engine
    counts_recursive = _counters(update).recursive is not None
    seeds = rederived.union(update.gained_below())
    for derived in update.gained_by(stratum.recursive, counted=counts_recursive):
        _counters(update).add(derived, recursive=True)
        seeds = seeds.union(derived.facts)
    if not counts_recursive:
        return insert_closure(update, seeds)
    new = seeds.difference(update.facts)
    added = new
    while len(new):
        update.facts = update.facts.union(new)
        update.statistics.rounds += 1
        if not stratum.recursive:
            break
        round_ = engine.derive(stratum.recursive, update.facts, delta=new, counted=True)
        _counters(update).add(update.count("insertion", round_), recursive=True)
        new = round_.facts.difference(update.facts)
        added = added.union(new)
    return added


def lost(update: StratumUpdate[F], *, phase: str = "overdeletion") -> F:
    """Return the facts that lose an instance to lower strata; adjusts the counters."""
    below = update.lost_below(phase=phase)
    counted = _counters(update).recursive is not None
    again = update.lost_instances(update.old_recursive, phase=phase, counted=counted)
    _counters(update).add(again, recursive=True, sign=-1)
    return below.union(again.facts)


def recount(
    engine: Engine[F],
    strata: Sequence[CompiledStratum],
    facts: F,
    *,
    recursive: bool,
    modules: bool,
) -> Counters[F]:
    """Compute the counters of a materialization from scratch.

    Modules do not consider every instance, so C_r covers the other strata only.
    """
    below, again = engine.counts(), engine.counts()
    for stratum in strata:
        if stratum.extremal is not None:
            continue
        if stratum.nonrecursive:
            below = below.plus(engine.derive(stratum.nonrecursive, facts, counted=True))
        if stratum.recursive and recursive and not (modules and stratum.modules):
            again = again.plus(engine.derive(stratum.recursive, facts, counted=True))
    return Counters(below, again if recursive else None)


def _counters(update: StratumUpdate[F]) -> Counters[F]:
    assert update.counters is not None, "the maintainer counts for this algorithm"
    return update.counters
