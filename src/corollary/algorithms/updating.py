"""One update: stratum by stratum, on values that are thrown away if it fails."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic

from corollary.algorithms.counted import CountedBackwardForward
from corollary.algorithms.kinds import KINDS, Kind, State
from corollary.algorithms.modular.framework import Module, SemiNaive
from corollary.algorithms.modular.update import Begun, Settled
from corollary.algorithms.step import Algorithm, Counters, Step, finish
from corollary.algorithms.strata import (
    CompiledStrata,
    CompiledStratum,
    ModuleKey,
    competing_rules,
)
from corollary.algorithms.tuning import tuning
from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived, Engine, F
from corollary.core.statistics import Statistics
from corollary.lang.stratify import Predicate

OnStratum = Callable[[int, int, int, int], None]  # stratum, strata, rounds so far, facts


class Update(Generic[F]):
    """The working state of one update."""

    def __init__(
        self,
        engine: Engine[F],
        kind: Kind,
        state: State[F],
        strata: CompiledStrata,
        explicit: F,
        statistics: Statistics,
        *,
        modules: bool,
        on_progress: OnStratum | None,
    ) -> None:
        assert kind.make is not None, "rematerialization is no update"
        self.algorithm: Algorithm[F] = kind.make()
        self.engine = engine
        self.strata = strata
        self.before = self.facts = state.facts
        self.explicit = explicit
        self.statistics = statistics
        self.counters = replace(state.counters) if state.counters is not None else None
        self.deleted = self.inserted = self.engine.facts({})
        self._on_progress = on_progress
        self._modular = kind.modular if modules else None
        self._with_modules = 0  # strata
        # For small changes of strata that modules do not help; with C_nr alone, DRed^c would not
        # rederive.
        self._plain = CountedBackwardForward() if kind.counts[1] else self.algorithm
        self._was = state.strata
        self.modules: dict[ModuleKey, Any] = dict(state.modules)
        self._lost = self._gained = self.deleted

    def run(self, removed: F, inserted: F) -> tuple[F, F]:
        """Update stratum by stratum; returns what was inserted and deleted."""
        self._lost, self._gained = removed, inserted
        added = self._change_rules()
        self._update_underived()
        touched = self.strata.readers([*self.deleted.predicates(), *self.inserted.predicates()])
        touched |= self._owners([*self._lost.predicates(), *self._gained.predicates()])
        if added:
            touched |= self._owners(rule.head.predicate for rule in added)
        waiting = sorted(touched)
        while waiting:
            number = heapq.heappop(waiting)
            stratum = self.strata.strata[number]
            if stratum.aggregations:
                changed = self._aggregate(stratum, added)
            else:
                changed = self._step(stratum, added)
            for reader in self.strata.readers(changed):
                if reader > number and reader not in touched:
                    touched.add(reader)
                    heapq.heappush(waiting, reader)
            if self._on_progress is not None:
                total = len(self.strata.strata)
                self._on_progress(number + 1, total, self.statistics.rounds, len(self.facts))
        if self._with_modules:
            n = self._with_modules
            text = f"modules in {n} strat{'um' if n == 1 else 'a'}"
            untouched = self.statistics.reason == KINDS["auto"].about
            self.statistics.reason = text if untouched else f"{self.statistics.reason}, {text}"
        return self.inserted, self.deleted

    def _change_rules(self) -> frozenset[CompiledRule]:
        """Heads of removed rules are lost; counters follow. Returns the rules that are new."""
        old, new = self._was.compiled, self.strata.compiled
        if old is new:
            return frozenset()
        added, removed = self.strata.difference(self._was)
        kinds_before: dict[CompiledRule, str] = {}
        kinds_now: dict[CompiledRule, str] = {}
        if self.counters is not None:
            kinds_before, kinds_now = (
                strata.kinds(modules=self._modular is not None)
                for strata in (self._was, self.strata)
            )
        # Predicates that no rule derives any more are forgotten as a whole.
        others = [r for r in removed if r.head.wide or self._owners([r.head.predicate])]
        derived_by = self._derived_by_modules(frozenset(others))
        for rule in others:
            if rule in derived_by:
                self._lost = self._lost.union(derived_by[rule].only(self.strata.derived))
                continue
            derived = self.engine.derive([rule], self.before, counted=self.counters is not None)
            self.statistics.count("rule removal", derived.instances)
            self._lost = self._lost.union(derived.facts.only(self.strata.derived))
            if self.counters is not None:
                self._count(derived, kinds_before[rule], sign=-1)
        self._forget([rule.head.predicate for rule in removed])
        if self.counters is not None:
            for rule in (compiled for source, compiled in new.items() if source in old):
                was, now = kinds_before[rule], kinds_now[rule]
                if was != now:
                    derived = self.engine.derive([rule], self.before, counted=True)
                    self._count(derived, was, sign=-1)
                    self._count(derived, now, sign=1)
        # A state that is not kept up to date is of no use later.
        if self._modular is not None:
            keys = {s.key(module) for s in self.strata.strata if s.modules for module in s.modules}
            self.modules = {key: state for key, state in self.modules.items() if key in keys}
        return frozenset(added)

    def _count(self, derived: Derived[F], kind: str, *, sign: int) -> None:
        """Tell the counters; instances in modules are not counted."""
        if self.counters is not None and kind != "modular":
            self.counters.add(derived, recursive=kind == "recursive", sign=sign)

    def _derived_by_modules(self, removed: frozenset[CompiledRule]) -> dict[CompiledRule, F]:
        """For removed rules of modules that decide everything: what was not given by others."""
        found: dict[CompiledRule, F] = {}
        if self._modular is None:
            return found
        for stratum in self._was.strata:
            if removed.isdisjoint(stratum.recursive) or not stratum.modular:
                continue
            for module in stratum.modules:
                key = stratum.key(module)
                if key not in self.modules or removed.isdisjoint(module.rules):
                    continue
                given = module.with_state(self.modules[key]).given
                if given is not None:
                    facts = self.before.only(module.predicates).difference(given)
                    found |= {rule: facts for rule in module.rules if rule in removed}
        return found

    def _forget(self, heads: list[Predicate]) -> None:
        """Predicates that no rule derives any more keep their explicit facts."""
        derived = self.strata.derived
        facts = self.before.only(heads).without(derived)
        self._lost = self._lost.union(facts)
        if self.counters is not None:
            gone = list(facts.predicates())
            self.counters.nonrecursive = self.counters.nonrecursive.without(gone)
            if self.counters.recursive is not None:
                self.counters.recursive = self.counters.recursive.without(gone)

    def _update_underived(self) -> None:
        """Facts of predicates that no rule derives: nothing but explicit ones."""
        derived = self.strata.derived
        lost, gained = self._lost.without(derived), self._gained.without(derived)
        if self._was is not self.strata:  # what a removed rule derived may be explicit too
            lost, gained = lost.difference(self.explicit), gained.difference(self.facts)
        self._lost, self._gained = self._lost.only(derived), self._gained.only(derived)
        self.facts = self.facts.replaced(lost, gained, shared=self.explicit)
        self._remember(lost, gained)

    def _owners(self, predicates: Iterable[Predicate]) -> set[int]:
        return {owner for p in predicates if (owner := self.strata.owner(p)) is not None}

    def _apply(self, lost: F, gained: F) -> list[Predicate]:
        """Replace facts; returns the predicates that changed."""
        if len(lost):
            self.facts = self.facts.difference(lost)
        if len(gained):
            self.facts = self.facts.union(gained)
        return self._remember(lost, gained)

    def _remember(self, lost: F, gained: F) -> list[Predicate]:
        """Add to D \\ A and A \\ D; returns the predicates that changed."""
        if len(lost):
            self.deleted = self.deleted.union(lost)
        if len(gained):
            self.inserted = self.inserted.union(gained)
        return [*lost.predicates(), *gained.predicates()]

    def _aggregate(
        self, stratum: CompiledStratum, added: frozenset[CompiledRule]
    ) -> list[Predicate]:
        changed = []
        for aggregation in stratum.aggregations:
            if aggregation.rule in added:
                gained = self.engine.derive([aggregation.rule], self.facts).facts
                changed += self._apply(self.engine.facts({}), gained)
                continue
            gained, lost = aggregation.evaluate(
                self.engine, self.before, self.facts, self.deleted, self.inserted
            )
            changed += self._apply(lost, gained)
        return changed

    def _step(self, stratum: CompiledStratum, added: frozenset[CompiledRule]) -> list[Predicate]:
        step = Step(
            self.engine,
            stratum,
            self.statistics,
            added,
            self.before,
            self.facts,
            self.explicit,
            self.deleted,
            self.inserted,
            self._lost.only(stratum.predicates),
            self._gained.only(stratum.predicates),
            self.counters,
        )
        algorithm, modules = self._algorithm(step)
        if modules and self.counters is not None:
            # C_r is for strata without modules.
            step.counters = Counters(self.counters.nonrecursive)
        removal = finish(algorithm.delete(step))
        if removal.left is not None:
            step.facts = removal.left
        elif len(removal.overdeleted):
            step.facts = step.facts.difference(removal.overdeleted)
        new = algorithm.insert(step, removal.rederived)
        self.facts = step.facts
        if step.counters is not None and self.counters is not None:
            self.counters.nonrecursive = step.counters.nonrecursive
        if algorithm is self._plain:
            modules = ()
        if isinstance(algorithm, Begun) and not stratum.modular:
            # What is given changes its kind with the rules only.
            changed = bool(added) or self._was is not self.strata
            modules = modules if changed and begun(modules, step) else ()
        for module in stratum.modules:
            self.modules.pop(stratum.key(module), None)
        for module in modules:
            self.modules[stratum.key(module)] = module.state
        lost, gained = removal.overdeleted, new
        # Where facts were made anew, nothing both leaves and comes.
        if removal.left is None and len(lost) and len(gained):
            lost, gained = lost.difference(new), new.difference(removal.overdeleted)
        return self._remember(lost, gained)

    def _algorithm(self, step: Step[F]) -> tuple[Algorithm[F], Sequence[Module[F]]]:
        """How the stratum is updated, and its modules."""
        stratum = step.stratum
        if self._modular is None or not stratum.modules:
            return self.algorithm, ()
        # The rules of no module have no state, and may change.
        known = all(
            isinstance(module, SemiNaive) or stratum.key(module) in self.modules
            for module in stratum.modules
        )
        modules = [
            module.with_state(self.modules.get(stratum.key(module)) if known else None)
            for module in stratum.modules
        ]
        if not known and not stratum.modular and self._is_small(step):
            return self._plain, modules
        self._with_modules += 1
        if not known:
            return Begun(modules), modules
        return (Settled if stratum.modular else self._modular)(modules), modules

    def _is_small(self, step: Step[F]) -> bool:
        """Whether so little changes for a stratum that it is not closed again for that."""
        new = any(
            rule in step.added_rules
            for module in step.stratum.modules
            if not isinstance(module, SemiNaive)
            for rule in module.rules
        )
        changes = (step.deleted, step.inserted, step.lost, step.gained)
        return not new and tuning.module_change_facts * sum(map(len, changes)) < len(
            step.only_own(step.facts)
        )


def begun(modules: Sequence[Module[F]], step: Step[F]) -> bool:
    """Tell new modules of the facts that other rules derive; whether it pays to keep that."""
    return all(
        worth_keeping(module, step.stratum, step.engine, step.explicit, step.facts)
        for module in modules
    )


def worth_keeping(
    module: Module[F], stratum: CompiledStratum, engine: Engine[F], explicit: F, facts: F
) -> bool:
    """Tell a module of what is given to it, and whether that is little of what it derives.

    If other rules give nearly all of its facts, as where two transitive relations are inverse to
    each other, a search of what is given costs as much as the rules; then the stratum is closed
    again, which takes less time.
    """
    if isinstance(module, SemiNaive):
        return True
    given = given_to(module, stratum, engine, explicit, facts)
    module.give(engine, given)
    return tuning.module_given_ratio * len(given) <= max(
        tuning.module_given_facts_minimum, len(facts.only(module.predicates))
    )


def given_to(
    module: Module[F], stratum: CompiledStratum, engine: Engine[F], explicit: F, facts: F
) -> F:
    """The facts of a module's predicates that are explicit, or that other rules derive."""
    others = competing_rules(module, stratum.rules)
    given = explicit.only(module.predicates)
    if others:
        given = given.union(engine.derive(others, facts).facts.only(module.predicates))
    return given
