"""Updates of strata with modules: at once, by DRed^c-Mod, or by Backward/Forward over modules.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §4.2, Algorithm
3; Backward/Forward in the same framework is what the paper leaves as future work.

Idea: deletion goes from module to module as addition does; a module may overdelete and rederive in
its own way. Facts that are explicit or have nonrecursive derivations are certain, and not deleted.

Invariants: before and after an update, a module knows as external all facts of its predicates that
are explicit or that rules outside of it derive; after `delete` and the rederivation, every module
is closed under its rules, but for what other modules add.

Differs from the paper: whether a fact is certain is told by C_nr where the algorithm counts, and
else by looking for an instance. If all recursive rules of a stratum are in modules, no fact that is
derived there can give a module another external fact; then `Settled` tells each module what it is
not given any more, and what it is given, and the module says by what its facts differ.

The paper gives Δ \\ Δᵢ to a module, which leaves out what it has deleted itself; here it is given
what others have deleted, so that a fact that both have deleted is not external any more.

`ModularBackwardForward` deletes nothing that has a proof. The consequences of what is deleted, as
the modules' Del finds them, are *checked*: backward chaining by the modules' `support` collects
facts that could prove them, up to certain ones, and the modules close the certain facts among these
(Mat-Mod); what is in the result is proved, and the others are deleted. This takes all candidates of
a round together, and finds every proof instead of stopping at the first.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Generic

from corollary.algorithms.modular.framework import Change, Module, SemiNaive, close
from corollary.algorithms.step import Removal, Step
from corollary.algorithms.strata import CompiledStratum, competing_rules
from corollary.core.compile import CompiledRule
from corollary.core.engine import F
from corollary.lang.stratify import Predicate


class Settled(Generic[F]):
    """A stratum whose recursive rules are all in modules that can tell the difference."""

    def __init__(self, modules: Sequence[Module[F]]) -> None:
        self.modules = modules
        self._inserted: F | None = None

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Find what the stratum loses, and what it gains."""
        losing, gaining = step.lost_below(), step.gained_below()
        deleted = inserted = step.nothing
        closed = frozenset[Predicate]().union(*(module.predicates for module in self.modules))
        if not closed >= step.stratum.predicates:
            # Coarse strata may have predicates without recursive rules.
            deleted = losing.without(closed)
            deleted = deleted.difference(step.certain(deleted))
            inserted = gaining.without(closed).difference(step.facts)
        # Then all that is given is explicit.
        alone = len(self.modules) == 1 and not step.stratum.nonrecursive
        left: F | None = None
        for module in self.modules:
            given = module.given
            if given is None:
                given = step.nothing
            lost = losing.only(module.predicates).intersection(given)
            change = Change(
                step.before,
                step.facts,
                step.deleted,
                step.inserted,
                lost.difference(step.certain(lost)),
                gaining.only(module.predicates).difference(given),
                step.explicit if alone else None,
            )
            found = module.update(step.engine, change)
            assert found is not None, "such modules can tell"
            step.statistics.count(module.name, found.instances)
            if (
                found.facts is not None
                and len(self.modules) == 1
                and not len(deleted) + len(inserted)
            ):
                left = step.facts.without(module.predicates).union(found.facts)
            deleted, inserted = deleted.union(found.deleted), inserted.union(found.inserted)
        self._inserted = inserted
        step.statistics.rounds += 1
        if left is None:
            left = step.facts.replaced(deleted, inserted)
        yield 0
        return Removal(deleted, step.nothing, left)

    def insert(self, step: Step[F], rederived: F) -> F:
        """What was found, and is there already."""
        assert self._inserted is not None, "`delete` comes before"
        return self._inserted


class Begun(Generic[F]):
    """The same for modules that are new, and have no state: all is derived anew."""

    def __init__(self, modules: Sequence[Module[F]]) -> None:
        self.modules = modules
        self._facts: F | None = None

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Close what others give; what is not in the result is lost."""
        step.lost_below()
        step.gained_below()
        below = step.facts.without(step.stratum.predicates)
        given = step.only_own(step.explicit)
        if step.stratum.seeding:
            derived = step.engine.derive(step.stratum.seeding, below)
            given = given.union(step.count("nonrecursive", derived).facts)
        yield 0
        found = close(self.modules, step.engine, below.union(given), given, step.statistics)
        self._facts = given.union(found)
        return Removal(step.only_own(step.facts).difference(self._facts), step.nothing)

    def insert(self, step: Step[F], rederived: F) -> F:
        """Add what the stratum did not have."""
        assert self._facts is not None, "`delete` comes before"
        new = self._facts.difference(step.facts)
        step.facts = step.facts.union(new)
        return new


class ModularDRed(Generic[F]):
    """DRed^c-Mod; without counters, nonrecursive derivations are looked for."""

    def __init__(self, modules: Sequence[Module[F]]) -> None:
        self.modules = modules
        self._given: F  # from below
        self._rederived: list[F] = []  # by each module

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Procedures OVERDELETE, and lines 33–34 of REDERIVE-INSERT."""
        self._given = given_to(self.modules, step)
        modules = kept(self.modules, step)
        delta = losses(modules, step)
        given = [delta for _ in modules]  # Δ \\ Δᵢ
        overdeleted = step.nothing
        while len(delta):
            surviving = step.surviving.difference(overdeleted)
            parts = consequences(modules, step, surviving, given)
            overdeleted = overdeleted.union(delta)
            # What a module has deleted itself, and another one too, is not external any more.
            given = [union(step, parts[:at] + parts[at + 1 :]) for at in range(len(parts))]
            delta = union(step, parts)
            step.statistics.rounds += 1
            yield 0
        step.statistics.consider("overdeleted", len(overdeleted))
        rederived = step.nothing
        self._rederived = [step.nothing for _ in self.modules]
        if len(overdeleted):
            left = step.facts.difference(overdeleted)
            for at, module in enumerate(self.modules):
                done = module.rederive(step.engine, left, overdeleted)
                step.statistics.count(module.name, done.instances)
                self._rederived[at] = done.facts
                rederived = rederived.union(done.facts)
        return Removal(overdeleted, rederived)

    def insert(self, step: Step[F], rederived: F) -> F:
        """Lines 32, 35–40."""
        return insert(self.modules, step, self._given.union(rederived), self._rederived)


class ModularBackwardForward(Generic[F]):
    """Backward/Forward over modules, with a counter or without."""

    def __init__(self, modules: Sequence[Module[F]]) -> None:
        self.modules = modules
        self._given: F  # from below

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Delete what has no proof; then look at what followed from it."""
        self._given = given_to(self.modules, step)
        modules = kept(self.modules, step)
        new = losses(modules, step, phase="deletion propagation")
        deleted = proved = seen = step.nothing
        while len(new):
            seen = seen.union(new)
            proved = proved.union(self._proved(step, new, deleted))
            gone = new.difference(proved)
            if not len(gone):
                break
            surviving = step.surviving.difference(deleted)
            parts = consequences(modules, step, surviving, [gone for _ in modules])
            deleted = deleted.union(gone)
            new = union(step, parts).difference(deleted).difference(proved)
            new = new.difference(step.certain(new))
            step.statistics.rounds += 1
            yield 0
        self._take(step, seen.difference(deleted), step.facts.difference(deleted))
        return Removal(deleted, step.nothing)

    def _take(self, step: Step[F], proved: F, left: F) -> None:
        """Facts that stay for the module's own rules alone are not external."""
        for module, others in rivals(self.modules, step.stratum):
            own = proved.only(module.predicates)
            own = own.difference(step.certain(own))
            own = own.difference(step.supported(own, left, others, "rederivation"))
            if len(own):
                module.take(step.engine, own)

    def _proved(self, step: Step[F], goals: F, deleted: F) -> F:
        """Those goals that follow from certain facts and lower strata."""
        left = step.facts.difference(deleted)
        checked = certain = step.nothing
        open_ = goals
        while len(open_):
            checked = checked.union(open_)
            sure = step.certain(open_)
            certain = certain.union(sure)
            open_ = open_.difference(sure)
            found = step.nothing
            for module in self.modules:
                found = found.union(module.support(step.engine, left, open_))
            open_ = step.only_own(found).intersection(left).difference(checked)
        step.statistics.consider("checked", len(checked))
        below = step.facts.without(step.stratum.predicates)
        once = [rule for rule in step.stratum.recursive if rule.reads_wide]
        if once:  # such rules read lower strata by the same atoms
            derived = step.engine.derive(once, below.union(certain), heads=checked)
            certain = certain.union(step.count("saturation", derived).facts)
        fresh = [module.with_state(None) for module in self.modules]
        true = below.union(certain)
        found = close(fresh, step.engine, true, certain, step.statistics)
        return certain.union(found).intersection(goals)

    def insert(self, step: Step[F], rederived: F) -> F:
        """As DRed^c-Mod."""
        nothing = [step.nothing for _ in self.modules]
        return insert(self.modules, step, self._given, nothing)


def kept(modules: Sequence[Module[F]], step: Step[F]) -> list[Module[F]]:
    """The modules for deletion: added rules had no instances."""
    return [
        SemiNaive([rule for rule in module.rules if rule not in step.added_rules])
        if isinstance(module, SemiNaive)
        else module
        for module in modules
    ]


def losses(modules: Sequence[Module[F]], step: Step[F], *, phase: str = "overdeletion") -> F:
    """Lines 22–25: facts that lose an instance to lower strata, and are not certain."""
    delta = step.lost_below(phase=phase)
    for module in modules:
        found = module.diff(step.engine, step.before, step.deleted, step.inserted)
        step.statistics.count(module.name, found.instances)
        delta = delta.union(found.facts)
    return delta.difference(step.certain(delta))


def consequences(
    modules: Sequence[Module[F]], step: Step[F], surviving: F, given: Sequence[F]
) -> list[F]:
    """Lines 27–28: Δᵢ := Del[I \\ (D \\ A), I ∪ A, Δ \\ Δᵢ, C_nr]."""
    out = []
    for module, delta in zip(modules, given, strict=True):
        done = module.delete(step.engine, surviving, step.ever, delta, step.certain)
        step.statistics.count(module.name, done.instances)
        out.append(done.facts)
    return out


def given_to(modules: Sequence[Module[F]], step: Step[F]) -> F:
    """Line 32: what is given from below. Facts among it that are known become external now.

    They are certain from here on, so that they are not deleted, and may prove others.
    """
    given = step.gained_below()
    known = given.intersection(step.facts)
    for module in modules:
        own = known.only(module.predicates)
        if len(own):
            module.give(step.engine, own)
    return given


def insert(modules: Sequence[Module[F]], step: Step[F], delta: F, parts: Sequence[F]) -> F:
    """Lines 35–40; `parts` of Δ were rederived by the modules themselves."""
    new = delta.difference(step.facts)
    step.facts = step.facts.union(new)
    # With what is rederived: instances of that and of changes below are nobody's consequences.
    found_below = step.nothing
    for module in modules:
        found = module.diff(step.engine, step.facts, step.inserted, step.deleted)
        step.statistics.count(module.name, found.instances)
        found_below = found_below.union(found.facts)
    added = [rule for rule in step.stratum.recursive if rule in step.added_rules]
    if added:
        found = step.count("insertion", step.engine.derive(added, step.facts))
        found_below = found_below.union(found.facts)
    more = found_below.difference(step.facts)
    step.facts = step.facts.union(more)
    delta = new.union(more)
    derived = close(modules, step.engine, step.facts, delta, step.statistics, found=parts)
    step.facts = step.facts.union(derived)
    delta = delta.union(derived)
    for at, (module, others) in enumerate(rivals(modules, step.stratum)):
        # What others rederived, or derive now, is external, known to the module or not.
        found = step.engine.derive(
            others,
            step.facts,
            delta=step.inserted.union(delta),
            negative_delta=step.deleted,
        )
        step.count("external", found)
        given = found.facts.union(union(step, [*parts[:at], *parts[at + 1 :]]))
        module.give(step.engine, given.only(module.predicates).intersection(step.facts))
    return delta


def rivals(
    modules: Sequence[Module[F]], stratum: CompiledStratum
) -> list[tuple[Module[F], list[CompiledRule]]]:
    """For each module the recursive rules outside that derive the same predicates."""
    return [(module, competing_rules(module, stratum.recursive)) for module in modules]


def union(step: Step[F], parts: Sequence[F]) -> F:
    """Δ₁ ∪ … ∪ Δₙ."""
    found = step.nothing
    for part in parts:
        found = found.union(part)
    return found
