"""The states of modules between updates.

Invariant: a stored state belongs to the facts and to the rules of its module and of the competing
rules (`CompiledStratum.key`). Either all modules of a stratum have a state or none has, except for
the semi-naive module, which has none and whose rules may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic

from corollary.algorithms.modular.framework import Module, SemiNaive
from corollary.algorithms.reasoner import refuse_difference
from corollary.algorithms.seminaive import Materialization
from corollary.algorithms.strata import (
    CompiledStrata,
    CompiledStratum,
    ModuleKey,
    competing_rules,
)
from corollary.algorithms.tuning import tuning
from corollary.core.compile import CompiledRule
from corollary.core.engine import Engine, F


class ModuleStates(Generic[F]):
    """The states of the modules of a program; nothing else reads or writes them."""

    def __init__(self, states: Mapping[ModuleKey, Any] | None = None) -> None:
        self._states = dict(states or {})

    @classmethod
    def of(
        cls, strata: CompiledStrata, materialization: Materialization[F], engine: Engine[F]
    ) -> ModuleStates[F]:
        """The states after a materialization, with all external facts of the modules."""
        explicit, facts = materialization.explicit, materialization.facts
        used = {frozenset(module.rules): module for module in materialization.modules}
        states = cls()
        for stratum in strata.strata:
            modules = [
                used.get(frozenset(module.rules), module.with_state(None))
                for module in stratum.modules
            ]
            if stratum.modular:
                # A module that closed its facts itself knows its external facts.
                if not all(frozenset(module.rules) in used for module in modules):
                    for module in modules:
                        worth_keeping(module, stratum, engine, explicit, facts)
                states.save(stratum, modules)
            elif all(worth_keeping(m, stratum, engine, explicit, facts) for m in modules):
                states.save(stratum, modules)
        return states

    def copy(self) -> ModuleStates[F]:
        """A copy to change."""
        return ModuleStates(self._states)

    def load(self, stratum: CompiledStratum) -> tuple[list[Module[F]], bool]:
        """The modules of a stratum with their states, and whether they have states."""
        has_states = all(
            isinstance(module, SemiNaive) or stratum.key(module) in self._states
            for module in stratum.modules
        )
        return [
            module.with_state(self._states.get(stratum.key(module)) if has_states else None)
            for module in stratum.modules
        ], has_states

    def save(self, stratum: CompiledStratum, modules: Sequence[Module[F]]) -> None:
        """Replace the states of a stratum by those of the modules."""
        for module in stratum.modules:
            self._states.pop(stratum.key(module), None)
        for module in modules:
            self._states[stratum.key(module)] = module.state

    def drop_others(self, strata: CompiledStrata) -> None:
        """Drop the states of modules that these strata do not have."""
        keys = {stratum.key(module) for stratum in strata.strata for module in stratum.modules}
        self._states = {key: state for key, state in self._states.items() if key in keys}

    def external(self, stratum: CompiledStratum, module: Module[F]) -> F | None:
        """The external facts of a module, if it has a state and tracks them."""
        key = stratum.key(module)
        return module.with_state(self._states[key]).external if key in self._states else None

    def derived_by(
        self, strata: CompiledStrata, rules: frozenset[CompiledRule], facts: F
    ) -> dict[CompiledRule, F]:
        """For rules of fully modular strata: the facts that no other rule derives."""
        derived: dict[CompiledRule, F] = {}
        for stratum in strata.strata:
            if rules.isdisjoint(stratum.recursive) or not stratum.modular:
                continue
            for module in stratum.modules:
                external = self.external(stratum, module)
                if external is not None:
                    own = facts.only(module.predicates).difference(external)
                    derived |= {rule: own for rule in module.rules if rule in rules}
        return derived

    def verify(self, strata: CompiledStrata, engine: Engine[F], explicit: F, facts: F) -> None:
        """Derive the external facts again; raise `OperationFailed` if they differ."""
        for stratum in strata.strata:
            for module in stratum.modules:
                external = self.external(stratum, module)
                if external is not None:
                    expected = external_facts(module, stratum, engine, explicit, facts)
                    what = f"the external facts of {module.name} are wrong"
                    refuse_difference(external, expected, what)


def worth_keeping(
    module: Module[F], stratum: CompiledStratum, engine: Engine[F], explicit: F, facts: F
) -> bool:
    """Give a module its external facts; return whether they are few compared with all its facts.

    If other rules derive nearly all of its facts, as for two transitive relations that are inverse
    to each other, searching the external facts costs as much as the rules; closing the stratum
    again is then faster.
    """
    if isinstance(module, SemiNaive):
        return True
    external = external_facts(module, stratum, engine, explicit, facts)
    module.add_external(engine, external)
    return tuning.module_external_ratio * len(external) <= max(
        tuning.module_external_facts_minimum, len(facts.only(module.predicates))
    )


def external_facts(
    module: Module[F], stratum: CompiledStratum, engine: Engine[F], explicit: F, facts: F
) -> F:
    """Return the facts of a module's predicates that are explicit or derived by other rules."""
    competing = competing_rules(module, stratum.rules)
    external = explicit.only(module.predicates)
    if competing:
        external = external.union(engine.derive(competing, facts).facts.only(module.predicates))
    return external
