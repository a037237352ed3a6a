"""Update strata with modules: by direct diffs, DRed^c-Mod, or modular Backward/Forward.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §4.2, Algorithm
3; Backward/Forward in the same framework is what the paper leaves as future work.

Idea: deletion propagates from module to module as addition does; a module may overdelete and
rederive in its own way. Facts that are explicit or have nonrecursive derivations are certain, and
are not deleted.

Invariants: before and after an update, the external facts of a module are all facts of its
predicates that are explicit or derived by rules outside it; after `delete` and rederivation, every
module is closed under its rules, but for facts that other modules add.

Differs from the paper: C_nr decides whether a fact is certain where the algorithm counts, otherwise
a search for an instance. If all recursive rules of a stratum are in modules, no fact derived there
can become external to another module; then `DirectDiff` passes each module the external facts that
it loses and gains, and the module returns the diff of its facts.

The paper passes Δ \\ Δᵢ to a module, without its own deletions; here a module receives what the
others deleted, so that a fact that both deleted is no longer external.

`ModularBackwardForward` deletes nothing that has a proof. The consequences of deleted facts, as the
modules' Del computes them, are *checked*: backward chaining by the modules' `support` collects
facts that could prove them, up to certain ones, and the modules close the certain facts among these
(Mat-Mod); facts in the result are proved, the others are deleted. This checks all candidates of a
round together, and finds every proof instead of stopping at the first.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from corollary.algorithms.modular.framework import Change, Module, SemiNaive, close
from corollary.algorithms.strata import competing_rules
from corollary.algorithms.stratum import Algorithm, Removal, StratumUpdate
from corollary.core.engine import F
from corollary.lang.stratify import Predicate


class ModularAlgorithm(Algorithm[F]):
    """An algorithm over the modules of a stratum, whose states it changes."""

    def __init__(self, modules: Sequence[Module[F]]) -> None:
        self.modules = modules


class DirectDiff(ModularAlgorithm[F]):
    """Update a stratum whose recursive rules are all in modules that compute their diff."""

    _inserted: F

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Compute the facts that the stratum loses and gains."""
        losing, gaining = update.lost_below(), update.gained_below()
        deleted = inserted = update.nothing
        closed = frozenset[Predicate]().union(*(module.predicates for module in self.modules))
        if not closed >= update.stratum.predicates:
            # Coarse strata may have predicates without recursive rules.
            deleted = losing.without(closed)
            deleted = deleted.difference(update.certain(deleted))
            inserted = gaining.without(closed).difference(update.facts)
        # A lone module without nonrecursive rules has explicit facts as its only external ones.
        alone = len(self.modules) == 1 and not update.stratum.nonrecursive
        remaining: F | None = None
        for module in self.modules:
            external = module.external
            if external is None:
                external = update.nothing
            lost = losing.only(module.predicates).intersection(external)
            change = Change(
                update.before,
                update.facts,
                update.deleted,
                update.inserted,
                lost.difference(update.certain(lost)),
                gaining.only(module.predicates).difference(external),
                update.explicit if alone else None,
            )
            diff = module.update(update.engine, change)
            assert diff is not None, "the module computes its diff"
            update.statistics.count(module.name, diff.instances)
            if (
                diff.facts is not None
                and len(self.modules) == 1
                and not len(deleted) + len(inserted)
            ):
                remaining = update.facts.without(module.predicates).union(diff.facts)
            deleted, inserted = deleted.union(diff.deleted), inserted.union(diff.inserted)
        self._inserted = inserted
        update.statistics.rounds += 1
        if remaining is None:
            remaining = update.facts.replaced(deleted, inserted)
        yield 0
        return Removal(deleted, update.nothing, remaining)

    def insert(self, update: StratumUpdate[F], rederived: F) -> F:
        """Return the insertions, which `delete` has already applied."""
        return self._inserted


class Rebuild(ModularAlgorithm[F]):
    """Rematerialize a stratum whose modules have no state yet."""

    _facts: F

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Close the external facts; facts outside the closure are lost."""
        update.lost_below()
        update.gained_below()
        below = update.facts.without(update.stratum.predicates)
        seeds = update.only_own(update.explicit)
        if update.stratum.seeding:
            derived = update.engine.derive(update.stratum.seeding, below)
            seeds = seeds.union(update.count("nonrecursive", derived).facts)
        yield 0
        closure = close(self.modules, update.engine, below.union(seeds), seeds, update.statistics)
        self._facts = seeds.union(closure)
        return Removal(update.only_own(update.facts).difference(self._facts), update.nothing)

    def insert(self, update: StratumUpdate[F], rederived: F) -> F:
        """Insert the facts that are new to the stratum."""
        new = self._facts.difference(update.facts)
        update.facts = update.facts.union(new)
        return new


class ModularDRed(ModularAlgorithm[F]):
    """DRed^c-Mod; without counters, it searches for nonrecursive derivations."""

    _gained: F  # from lower strata
    _rederived: list[F]  # per module

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Procedures OVERDELETE, and lines 33–34 of REDERIVE-INSERT."""
        self._gained = gain_from_below(self.modules, update)
        modules = old_modules(self.modules, update)
        delta = losses(modules, update)
        deltas = [delta for _ in modules]  # Δ \\ Δᵢ
        overdeleted = update.nothing
        while len(delta):
            surviving = update.surviving.difference(overdeleted)
            parts = consequences(modules, update, surviving, deltas)
            overdeleted = overdeleted.union(delta)
            # A fact that a module and another one both deleted is no longer external.
            deltas = [union(update, parts[:at] + parts[at + 1 :]) for at in range(len(parts))]
            delta = union(update, parts)
            update.statistics.rounds += 1
            yield 0
        update.statistics.consider("overdeleted", len(overdeleted))
        rederived = update.nothing
        self._rederived = [update.nothing for _ in self.modules]
        if len(overdeleted):
            remaining = update.facts.difference(overdeleted)
            for at, module in enumerate(self.modules):
                derived = module.rederive(update.engine, remaining, overdeleted)
                update.statistics.count(module.name, derived.instances)
                self._rederived[at] = derived.facts
                rederived = rederived.union(derived.facts)
        return Removal(overdeleted, rederived)

    def insert(self, update: StratumUpdate[F], rederived: F) -> F:
        """Lines 32, 35–40."""
        return insert(self.modules, update, self._gained.union(rederived), self._rederived)


class ModularBackwardForward(ModularAlgorithm[F]):
    """Backward/Forward over modules, with or without a counter."""

    _gained: F  # from lower strata

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Delete facts without a proof; then check their consequences."""
        self._gained = gain_from_below(self.modules, update)
        modules = old_modules(self.modules, update)
        new = losses(modules, update, phase="deletion propagation")
        deleted = proved = seen = update.nothing
        while len(new):
            seen = seen.union(new)
            proved = proved.union(self._prove(update, new, deleted))
            unproved = new.difference(proved)
            if not len(unproved):
                break
            surviving = update.surviving.difference(deleted)
            parts = consequences(modules, update, surviving, [unproved for _ in modules])
            deleted = deleted.union(unproved)
            new = union(update, parts).difference(deleted).difference(proved)
            new = new.difference(update.certain(new))
            update.statistics.rounds += 1
            yield 0
        self._remove_external(update, seen.difference(deleted), update.facts.difference(deleted))
        return Removal(deleted, update.nothing)

    def _remove_external(self, update: StratumUpdate[F], proved: F, remaining: F) -> None:
        """Unmark facts that only the module's own rules still derive."""
        for module in self.modules:
            competing = competing_rules(module, update.stratum.recursive)
            own = proved.only(module.predicates)
            own = own.difference(update.certain(own))
            own = own.difference(update.supported(own, remaining, competing, "rederivation"))
            if len(own):
                module.remove_external(update.engine, own)

    def _prove(self, update: StratumUpdate[F], goals: F, deleted: F) -> F:
        """Return the goals that follow from certain facts and lower strata."""
        remaining = update.facts.difference(deleted)
        checked = certain = update.nothing
        open_ = goals
        while len(open_):
            checked = checked.union(open_)
            sure = update.certain(open_)
            certain = certain.union(sure)
            open_ = open_.difference(sure)
            support = update.nothing
            for module in self.modules:
                support = support.union(module.support(update.engine, remaining, open_))
            open_ = update.only_own(support).intersection(remaining).difference(checked)
        update.statistics.consider("checked", len(checked))
        below = update.facts.without(update.stratum.predicates)
        once = [rule for rule in update.stratum.recursive if rule.reads_wide]
        if once:  # such rules read lower strata through the same atoms
            derived = update.engine.derive(once, below.union(certain), heads=checked)
            certain = certain.union(update.count("saturation", derived).facts)
        fresh = [module.with_state(None) for module in self.modules]
        true = below.union(certain)
        closure = close(fresh, update.engine, true, certain, update.statistics)
        return certain.union(closure).intersection(goals)

    def insert(self, update: StratumUpdate[F], rederived: F) -> F:
        """As DRed^c-Mod."""
        nothing = [update.nothing for _ in self.modules]
        return insert(self.modules, update, self._gained, nothing)


def old_modules(modules: Sequence[Module[F]], update: StratumUpdate[F]) -> list[Module[F]]:
    """Return the modules for deletion, without added rules: these had no instances."""
    return [
        SemiNaive([rule for rule in module.rules if rule not in update.added_rules])
        if isinstance(module, SemiNaive)
        else module
        for module in modules
    ]


def losses(
    modules: Sequence[Module[F]], update: StratumUpdate[F], *, phase: str = "overdeletion"
) -> F:
    """Lines 22–25: facts that lose an instance to lower strata, and are not certain."""
    delta = update.lost_below(phase=phase)
    for module in modules:
        derived = module.diff(update.engine, update.before, update.deleted, update.inserted)
        update.statistics.count(module.name, derived.instances)
        delta = delta.union(derived.facts)
    return delta.difference(update.certain(delta))


def consequences(
    modules: Sequence[Module[F]], update: StratumUpdate[F], surviving: F, deltas: Sequence[F]
) -> list[F]:
    """Lines 27–28: Δᵢ := Del[I \\ (D \\ A), I ∪ A, Δ \\ Δᵢ, C_nr]."""
    parts = []
    for module, delta in zip(modules, deltas, strict=True):
        overdeleted = module.delete(update.engine, surviving, update.ever, delta, update.certain)
        update.statistics.count(module.name, overdeleted.instances)
        parts.append(overdeleted.facts)
    return parts


def gain_from_below(modules: Sequence[Module[F]], update: StratumUpdate[F]) -> F:
    """Line 32: return the facts gained from lower strata; mark known ones as external.

    These are certain from here on: they are not deleted, and may prove others.
    """
    gained = update.gained_below()
    known = gained.intersection(update.facts)
    for module in modules:
        own = known.only(module.predicates)
        if len(own):
            module.add_external(update.engine, own)
    return gained


def insert(
    modules: Sequence[Module[F]], update: StratumUpdate[F], delta: F, parts: Sequence[F]
) -> F:
    """Lines 35–40; `parts` of Δ were rederived by the modules themselves."""
    new = delta.difference(update.facts)
    update.facts = update.facts.union(new)
    # Over the rederived facts too: no other step covers instances that join them with changes of
    # lower strata.
    from_below = update.nothing
    for module in modules:
        derived = module.diff(update.engine, update.facts, update.inserted, update.deleted)
        update.statistics.count(module.name, derived.instances)
        from_below = from_below.union(derived.facts)
    added = [rule for rule in update.stratum.recursive if rule in update.added_rules]
    if added:
        derived = update.count("insertion", update.engine.derive(added, update.facts))
        from_below = from_below.union(derived.facts)
    more = from_below.difference(update.facts)
    update.facts = update.facts.union(more)
    delta = new.union(more)
    closure = close(modules, update.engine, update.facts, delta, update.statistics, own_parts=parts)
    update.facts = update.facts.union(closure)
    delta = delta.union(closure)
    for at, module in enumerate(modules):
        # Facts that others rederived, or derive now, are external, known to the module or not.
        derived = update.engine.derive(
            competing_rules(module, update.stratum.recursive),
            update.facts,
            delta=update.inserted.union(delta),
            negative_delta=update.deleted,
        )
        update.count("external", derived)
        external = derived.facts.union(union(update, [*parts[:at], *parts[at + 1 :]]))
        module.add_external(
            update.engine, external.only(module.predicates).intersection(update.facts)
        )
    return delta


def union(update: StratumUpdate[F], parts: Sequence[F]) -> F:
    """Δ₁ ∪ … ∪ Δₙ."""
    facts = update.nothing
    for part in parts:
        facts = facts.union(part)
    return facts
