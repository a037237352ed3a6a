"""One update, stratum by stratum, on working values that are discarded if it fails."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Generic

from corollary.algorithms.modular.framework import Module
from corollary.algorithms.modular.states import worth_keeping
from corollary.algorithms.modular.update import ModularAlgorithm, Rebuild
from corollary.algorithms.registry import KINDS, Kind, State
from corollary.algorithms.seminaive import OnProgress
from corollary.algorithms.strata import CompiledStratum
from corollary.algorithms.stratum import Algorithm, Counters, StratumUpdate, finish
from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived, Engine, F
from corollary.core.position import enter_stratum, leave_strata
from corollary.core.statistics import Statistics
from corollary.lang.stratify import Predicate


class UpdateRun(Generic[F]):
    """The working state of one update."""

    def __init__(
        self,
        engine: Engine[F],
        kind: Kind,
        old: State[F],
        new: State[F],
        statistics: Statistics,
        *,
        modules: bool,
        on_progress: OnProgress | None,
    ) -> None:
        """`new` has the new rules, strata and explicit facts, and otherwise the old values."""
        assert kind.make is not None, "rematerialization is not incremental"
        self.algorithm: Algorithm[F] = kind.make()
        self.engine = engine
        self.strata, self._old_strata = new.strata, old.strata
        self.before = self.facts = old.facts
        self.explicit = new.explicit
        self.statistics = statistics
        self.counters = replace(old.counters) if old.counters is not None else None
        self.modules = old.modules.copy()
        self.deleted = self.inserted = self.engine.facts({})
        self._on_progress = on_progress
        self._kind = kind
        self._uses_modules = modules
        self._modular_strata = 0
        self._lost = self._gained = self.deleted

    def run(self, removed: F, inserted: F) -> tuple[F, F]:
        """Update stratum by stratum; return the inserted and deleted facts."""
        self._lost, self._gained = removed, inserted
        added = self._change_rules()
        self._update_underived()
        affected = self.strata.readers([*self.deleted.predicates(), *self.inserted.predicates()])
        affected |= self._owners([*self._lost.predicates(), *self._gained.predicates()])
        if added:
            affected |= self._owners(rule.head.predicate for rule in added)
        queue = sorted(affected)
        while queue:
            number = heapq.heappop(queue)
            stratum = self.strata.strata[number]
            enter_stratum(number + 1, len(self.strata.strata))
            if stratum.aggregations:
                changed = self._aggregate(stratum, added)
            elif stratum.extremal is not None:
                changed = self._improve(stratum)
            else:
                changed = self._update_stratum(stratum, added)
            for reader in self.strata.readers(changed):
                if reader > number and reader not in affected:
                    affected.add(reader)
                    heapq.heappush(queue, reader)
            if self._on_progress is not None:
                total = len(self.strata.strata)
                self._on_progress(number + 1, total, self.statistics.rounds, len(self.facts))
        leave_strata()
        if self._modular_strata:
            n = self._modular_strata
            text = f"modules in {n} strat{'um' if n == 1 else 'a'}"
            untouched = self.statistics.reason == KINDS["auto"].about
            self.statistics.reason = text if untouched else f"{self.statistics.reason}, {text}"
        return self.inserted, self.deleted

    def _change_rules(self) -> frozenset[CompiledRule]:
        """Collect the heads of removed rules, adjust the counters; return the added rules."""
        old, new = self._old_strata.compiled, self.strata.compiled
        if old is new:
            return frozenset()
        added, removed = self.strata.difference(self._old_strata)
        kinds_before: dict[CompiledRule, str] = {}
        kinds_now: dict[CompiledRule, str] = {}
        if self.counters is not None:
            kinds_before, kinds_now = (
                strata.kinds(modules=self._uses_modules)
                for strata in (self._old_strata, self.strata)
            )
        # Predicates that no rule derives any more are dropped as a whole.
        still_derived = [r for r in removed if r.head.wide or self._owners([r.head.predicate])]
        derived_by = self.modules.derived_by(
            self._old_strata, frozenset(still_derived), self.before
        )
        for rule in still_derived:
            if rule in derived_by:
                self._lost = self._lost.union(derived_by[rule].only(self.strata.derived))
                continue
            derived = self.engine.derive([rule], self.before, counted=self.counters is not None)
            self.statistics.count("rule removal", derived.instances)
            self._lost = self._lost.union(derived.facts.only(self.strata.derived))
            if self.counters is not None:
                self._count(derived, kinds_before[rule], sign=-1)
        self._drop_underived([rule.head.predicate for rule in removed])
        if self.counters is not None:
            for rule in (compiled for source, compiled in new.items() if source in old):
                was, now = kinds_before[rule], kinds_now[rule]
                if was != now:
                    derived = self.engine.derive([rule], self.before, counted=True)
                    self._count(derived, was, sign=-1)
                    self._count(derived, now, sign=1)
        if self._uses_modules:
            self.modules.drop_others(self.strata)
        return frozenset(added)

    def _count(self, derived: Derived[F], kind: str, *, sign: int) -> None:
        """Adjust the counters; instances in modules are not counted."""
        if self.counters is not None and kind != "modular":
            self.counters.add(derived, recursive=kind == "recursive", sign=sign)

    def _drop_underived(self, heads: list[Predicate]) -> None:
        """Drop the derived facts of predicates that no rule derives any more."""
        derived = self.strata.derived
        facts = self.before.only(heads).without(derived)
        self._lost = self._lost.union(facts)
        if self.counters is not None:
            dropped = list(facts.predicates())
            self.counters.nonrecursive = self.counters.nonrecursive.without(dropped)
            if self.counters.recursive is not None:
                self.counters.recursive = self.counters.recursive.without(dropped)

    def _update_underived(self) -> None:
        """Update the predicates that no rule derives: their facts are the explicit ones."""
        derived = self.strata.derived
        lost, gained = self._lost.without(derived), self._gained.without(derived)
        if self._old_strata is not self.strata:  # heads of removed rules may be explicit too
            lost, gained = lost.difference(self.explicit), gained.difference(self.facts)
        self._lost, self._gained = self._lost.only(derived), self._gained.only(derived)
        self.facts = self.facts.replaced(lost, gained, shared=self.explicit)
        self._record(lost, gained)

    def _owners(self, predicates: Iterable[Predicate]) -> set[int]:
        return {owner for p in predicates if (owner := self.strata.owner(p)) is not None}

    def _apply(self, lost: F, gained: F) -> list[Predicate]:
        """Replace facts; return the predicates that changed."""
        if len(lost):
            self.facts = self.facts.difference(lost)
        if len(gained):
            self.facts = self.facts.union(gained)
        return self._record(lost, gained)

    def _record(self, lost: F, gained: F) -> list[Predicate]:
        """Add to D \\ A and A \\ D; return the predicates that changed."""
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

    def _improve(self, stratum: CompiledStratum) -> list[Predicate]:
        assert stratum.extremal is not None, "checked before"
        self._modular_strata += 1
        improved = stratum.extremal.update(
            self.engine,
            self.before,
            self.facts,
            self.explicit,
            self.deleted,
            self.inserted,
            self._lost.only(stratum.predicates),
            self._gained.only(stratum.predicates),
            self.statistics,
        )
        self.facts = improved.facts
        return self._record(improved.lost, improved.gained)

    def _update_stratum(
        self, stratum: CompiledStratum, added: frozenset[CompiledRule]
    ) -> list[Predicate]:
        update = StratumUpdate(
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
        modules: Sequence[Module[F]] = ()
        has_states = False
        if self._uses_modules:
            modules, has_states = self.modules.load(stratum)
        if modules and self.counters is not None:
            # C_r covers strata without modules only.
            update.counters = Counters(self.counters.nonrecursive)
        algorithm = self._kind.algorithm_of(update, self.algorithm, modules, has_states=has_states)
        is_modular = isinstance(algorithm, ModularAlgorithm)
        self._modular_strata += is_modular
        removal = finish(algorithm.delete(update))
        if removal.remaining is not None:
            update.facts = removal.remaining
        elif len(removal.overdeleted):
            update.facts = update.facts.difference(removal.overdeleted)
        new = algorithm.insert(update, removal.rederived)
        self.facts = update.facts
        if update.counters is not None and self.counters is not None:
            self.counters.nonrecursive = update.counters.nonrecursive
        keeps_states = is_modular
        if isinstance(algorithm, Rebuild) and not stratum.modular:
            # Whether states pay off changes only with the rules.
            has_new_rules = bool(added) or self._old_strata is not self.strata
            keeps_states = has_new_rules and all(
                worth_keeping(module, stratum, self.engine, self.explicit, self.facts)
                for module in modules
            )
        if self._uses_modules:
            self.modules.save(stratum, modules if keeps_states else ())
        lost, gained = removal.overdeleted, new
        # If the module computed the remaining facts, `lost` and `gained` are disjoint already.
        if removal.remaining is None and len(lost) and len(gained):
            lost, gained = lost.difference(new), new.difference(removal.overdeleted)
        return self._record(lost, gained)
