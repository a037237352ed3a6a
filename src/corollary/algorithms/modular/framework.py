"""Modules, and Mat-Mod: close a stratum's recursive rules, each module by its own algorithm.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §4.1, Algorithm
2, Definitions 3–7.

Idea: a module closes its rules in any way that meets the definitions; the modules exchange the
facts that they derive until nothing is new. The rules outside all specialized modules form one
semi-naive module.

Invariants: before each round, the facts are closed under every module but for Δ; a module never
receives facts that it derived itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self

from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived, Difference, Engine, F, OnRound
from corollary.core.statistics import Statistics
from corollary.core.tables import body_tables, joined
from corollary.lang.stratify import Predicate

Certain = Callable[[Any], Any]  # selects the facts that are explicit or have C_nr > 0


@dataclass(frozen=True)
class Change(Generic[F]):
    """The changes around a module, in a stratum whose recursive rules are all in modules."""

    before: F  # I
    facts: F  # the new facts of lower strata
    deleted: F  # D \\ A of lower strata
    inserted: F  # A \\ D
    lost: F  # facts of the module's predicates that are no longer external
    gained: F  # facts of the module's predicates that become external
    explicit: F | None = None  # explicit facts, if all external facts are explicit


class Module(Generic[F]):
    """Recursive rules with an algorithm that closes facts under them; semi-naive by default.

    `state` is an immutable value that belongs to the facts: it lives from update to update, and is
    discarded with an update that fails. None is the state before anything was added.
    """

    name: str
    state: Any = None
    below: Sequence[Predicate] = ()  # predicates that the module's stratum must not derive

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = tuple(rules)
        self.predicates = frozenset(rule.head.predicate for rule in rules)

    def with_state(self, state: Any) -> Self:
        """Copy the module with another state."""
        module = type(self).__new__(type(self))  # what `copy` does, but faster
        module.__dict__.update(self.__dict__, state=state)
        return module

    def add(self, engine: Engine[F], facts: F, delta: F, on_round: OnRound | None) -> Derived[F]:
        """Add[I, I, Δ]: the least J with Π[I ∪ J : Δ ∪ J] ⊆ I ∪ J, less I (Definition 3)."""
        return engine.close(self.rules, facts, delta, on_round=on_round)

    def add_external(self, engine: Engine[F], facts: F) -> None:
        """Mark known facts as external: other rules derive them now too.

        A new module over existing facts receives all its external facts this way.
        """

    def remove_external(self, engine: Engine[F], facts: F) -> None:
        """Unmark external facts: they remain, but other rules no longer derive them."""

    def diff(self, engine: Engine[F], facts: F, delta: F, negative: F) -> Derived[F]:
        """Diff[I, Δp, Δn] = Π[I : Δp, Δn] for changes of lower strata (Definition 5)."""
        return engine.derive(self.rules, facts, delta=delta, negative_delta=negative)

    def delete(
        self, engine: Engine[F], facts: F, negative: F, delta: F, certain: Certain
    ) -> Derived[F]:
        """Del[Ip, In, Δ, C_nr]: the facts to overdelete with Δ (Definition 6).

        Δ may hold facts that are not in Ip: they were deleted before, and have now lost a
        derivation by another module too.
        """
        overdeleted, instances = engine.facts({}), 0
        delta = delta.intersection(facts)
        while len(delta):
            derived = engine.derive(self.rules, facts, negative=negative, delta=delta)
            instances += derived.instances
            facts = facts.difference(delta)
            lost = derived.facts.difference(certain(derived.facts))
            overdeleted = overdeleted.union(lost)
            delta = lost.intersection(facts)
        return Derived(overdeleted, instances)

    def rederive(self, engine: Engine[F], facts: F, deleted: F) -> Derived[F]:
        """Red: the deleted facts that follow from `facts` in one or more steps (Definition 7)."""
        derived = engine.derive(self.rules, facts, heads=deleted)
        instances, new = derived.instances, derived.facts
        total = new
        while len(new):
            facts, deleted = facts.union(new), deleted.difference(new)
            derived = engine.derive(self.rules, facts, delta=new, heads=deleted)
            instances += derived.instances
            new = derived.facts
            total = total.union(new)
        return Derived(total, instances)

    def support(self, engine: Engine[F], facts: F, goals: F) -> F:
        """Return body facts of the goals by these rules; at least those of one proof per goal."""
        tables = [
            body_tables(support, engine.dictionary, lambda predicate: True)
            for support in engine.support(self.rules, goals, within=facts)
        ]
        return engine.facts(joined(tables))

    @property
    def computes_diff(self) -> bool:
        """Whether the module implements `update`."""
        return type(self).update is not Module.update

    @property
    def external(self) -> F | None:
        """The explicit or otherwise derived facts of its predicates, if the module tracks them."""
        return None

    def update(self, engine: Engine[F], change: Change[F]) -> Difference[F] | None:
        """Compute the diff of the facts directly, without deletion and rederivation.

        Called only if all recursive rules of the stratum are in modules that track `external`.
        """
        return None


class SemiNaive(Module[F]):
    """The module of the rules outside all specialized modules."""

    name = "recursive"


def close(
    modules: Sequence[Module[F]],
    engine: Engine[F],
    facts: F,
    delta: F,
    statistics: Statistics,
    on_round: OnRound | None = None,
    *,
    own_parts: Sequence[F] | None = None,
) -> F:
    """Lines 11–15 of Algorithm 2: return the consequences of Δ ⊆ `facts`.

    `own_parts` are the parts Δᵢ of Δ that the modules derived themselves.
    """
    nothing = engine.facts({})
    parts = list(own_parts) if own_parts is not None else [nothing for _ in modules]  # Δᵢ
    derived = nothing
    while len(delta):
        for at, module in enumerate(modules):
            # Δᵢ := Add[I, I, Δ \ Δᵢ]
            others = delta.difference(parts[at]) if len(parts[at]) else delta
            if not len(others):
                parts[at] = nothing
                continue
            addition = module.add(engine, facts, others, _offset(len(derived), on_round))
            statistics.count(module.name, addition.instances)
            statistics.rounds += addition.rounds
            parts[at] = addition.facts
        # Δ := Δ₁ ∪ … ∪ Δₙ; I := I ∪ Δ
        delta = nothing
        for part in parts:
            delta = delta.union(part)
        if len(modules) == 1:
            return delta
        facts = facts.union(delta)
        derived = derived.union(delta)
    return derived


def _offset(derived: int, on_round: OnRound | None) -> OnRound | None:
    """Wrap `on_round` to add the number of facts that earlier rounds derived."""
    if on_round is None:
        return None
    return lambda round_, new: on_round(round_, derived + new)
