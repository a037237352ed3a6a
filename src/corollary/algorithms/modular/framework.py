"""Mat-Mod: the recursive rules of a stratum in modules.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, Algorithm 2.

Idea: a module closes its rules in any way that gives what Definition 3 asks for; what the modules
derive is exchanged between them until nothing is new. Rules that no module is made for form one
that is evaluated semi-naively.

Invariants: before each round, the facts are closed under every module but for Δ; a module is not
given what it derived itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol

from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived, Engine, F, OnRound
from corollary.core.statistics import Statistics


class Module(Protocol[F]):
    """Some rules, and how to close facts under them during one materialization."""

    name: str

    def add(self, engine: Engine[F], facts: F, delta: F, on_round: OnRound | None) -> Derived[F]:
        """Add[I, I, Δ]: the least J with Π[I ∪ J : Δ ∪ J] ⊆ I ∪ J, less I (Definition 3)."""
        ...


class SemiNaive(Generic[F]):
    """The module of all other rules."""

    name = "recursive"

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = rules

    def add(self, engine: Engine[F], facts: F, delta: F, on_round: OnRound | None) -> Derived[F]:
        """Rounds of `derive`, as the engine does them."""
        return engine.close(self.rules, facts, delta, on_round=on_round)


def close(
    modules: Sequence[Module[F]],
    engine: Engine[F],
    facts: F,
    delta: F,
    statistics: Statistics,
    on_round: OnRound | None = None,
) -> F:
    """Lines 11–15 of Algorithm 2: what follows from Δ, which the facts hold already."""
    nothing = engine.facts({})
    found = [nothing for _ in modules]  # Δᵢ
    derived = nothing
    while len(delta):
        for at, module in enumerate(modules):
            # Δᵢ := Add[I, I, Δ \ Δᵢ]
            others = delta.difference(found[at]) if len(found[at]) else delta
            if not len(others):
                found[at] = nothing
                continue
            done = module.add(engine, facts, others, _after(len(derived), on_round))
            statistics.count(module.name, done.instances)
            statistics.rounds += done.rounds
            found[at] = done.facts
        # Δ := Δ₁ ∪ … ∪ Δₙ; I := I ∪ Δ
        delta = nothing
        for part in found:
            delta = delta.union(part)
        if len(modules) == 1:
            return delta
        facts = facts.union(delta)
        derived = derived.union(delta)
    return derived


def _after(derived: int, on_round: OnRound | None) -> OnRound | None:
    """`on_round` for rounds that come when so many facts were derived."""
    if on_round is None:
        return None
    return lambda round_, new: on_round(round_, derived + new)
