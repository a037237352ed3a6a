"""Modules, and Mat-Mod: the recursive rules of a stratum, each module by an algorithm of its own.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, §4.1, Algorithm
2, Definitions 3–7.

Idea: a module closes its rules in any way that gives what the definitions ask for; what the modules
derive is exchanged between them until nothing is new. Rules that no module is made for form one
that is evaluated semi-naively.

Invariants: before each round, the facts are closed under every module but for Δ; a module is not
given what it derived itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self

from corollary.core.compile import CompiledRule
from corollary.core.engine import Derived, Difference, Engine, F, OnRound
from corollary.core.statistics import Statistics
from corollary.core.tables import body_tables, joined

Certain = Callable[[Any], Any]  # those of some facts that are explicit, or have C_nr > 0


@dataclass(frozen=True)
class Change(Generic[F]):
    """What an update does around a module whose rules are the only recursive ones of a stratum."""

    before: F  # I
    facts: F  # the new facts of lower strata
    deleted: F  # D \\ A of lower strata
    inserted: F  # A \\ D
    lost: F  # facts of the module's predicates that others do not give any more
    gained: F  # facts that others give now, and did not
    given: F | None = None  # explicit facts, if no others are given


class Module(Generic[F]):
    """Some recursive rules, and how to keep facts closed under them: semi-naively, if not said.

    `state` is an immutable value that belongs to the facts: it is kept from update to update, and
    thrown away with an update that fails. None is the state before anything was added.
    """

    name: str
    state: Any = None

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = tuple(rules)
        self.predicates = frozenset(rule.head.predicate for rule in rules)

    def with_state(self, state: Any) -> Self:
        """The same module in another state."""
        module = type(self).__new__(type(self))  # as `copy` does, which takes longer
        module.__dict__.update(self.__dict__, state=state)
        return module

    def add(self, engine: Engine[F], facts: F, delta: F, on_round: OnRound | None) -> Derived[F]:
        """Add[I, I, Δ]: the least J with Π[I ∪ J : Δ ∪ J] ⊆ I ∪ J, less I (Definition 3)."""
        return engine.close(self.rules, facts, delta, on_round=on_round)

    def give(self, engine: Engine[F], facts: F) -> None:
        """Tell of facts that are known already, and that others now derive too.

        A module that is new where there are facts is told of all of them.
        """

    def take(self, engine: Engine[F], facts: F) -> None:
        """Tell of facts that stay, but that others do not derive any more."""

    def diff(self, engine: Engine[F], facts: F, delta: F, negative: F) -> Derived[F]:
        """Diff[I, Δp, Δn] = Π[I : Δp, Δn] for changes of lower strata (Definition 5)."""
        return engine.derive(self.rules, facts, delta=delta, negative_delta=negative)

    def delete(
        self, engine: Engine[F], facts: F, negative: F, delta: F, certain: Certain
    ) -> Derived[F]:
        """Del[Ip, In, Δ, C_nr]: what must be overdeleted with Δ (Definition 6).

        Δ may have facts that are not in Ip: they were deleted before, and have now lost a
        derivation by another module too.
        """
        found, instances = engine.facts({}), 0
        delta = delta.intersection(facts)
        while len(delta):
            step = engine.derive(self.rules, facts, negative=negative, delta=delta)
            instances += step.instances
            facts = facts.difference(delta)
            lost = step.facts.difference(certain(step.facts))
            found = found.union(lost)
            delta = lost.intersection(facts)
        return Derived(found, instances)

    def rederive(self, engine: Engine[F], facts: F, deleted: F) -> Derived[F]:
        """Red: which deleted facts follow from `facts`, in one step or more (Definition 7)."""
        step = engine.derive(self.rules, facts, heads=deleted)
        instances, new = step.instances, step.facts
        total = new
        while len(new):
            facts, deleted = facts.union(new), deleted.difference(new)
            step = engine.derive(self.rules, facts, delta=new, heads=deleted)
            instances += step.instances
            new = step.facts
            total = total.union(new)
        return Derived(total, instances)

    def support(self, engine: Engine[F], facts: F, goals: F) -> F:
        """Facts that goals may follow from by these rules, at least those of one proof each."""
        tables = [
            body_tables(support, engine.dictionary, lambda predicate: True)
            for support in engine.support(self.rules, goals, within=facts)
        ]
        return engine.facts(joined(tables))

    @property
    def tells(self) -> bool:
        """Whether it has an `update` of its own."""
        return type(self).update is not Module.update

    @property
    def given(self) -> F | None:
        """The facts of the module's predicates that others derived, if it knows them all."""
        return None

    def update(self, engine: Engine[F], change: Change[F]) -> Difference[F] | None:
        """By what the facts differ after a change, if the module can tell at once.

        Asked only of modules that know what is `given`, if all recursive rules of the stratum are
        in modules.
        """
        return None


class SemiNaive(Module[F]):
    """The module of all other rules."""

    name = "recursive"


def close(
    modules: Sequence[Module[F]],
    engine: Engine[F],
    facts: F,
    delta: F,
    statistics: Statistics,
    on_round: OnRound | None = None,
    *,
    found: Sequence[F] | None = None,
) -> F:
    """Lines 11–15 of Algorithm 2: what follows from Δ, which the facts hold already.

    `found` are parts Δᵢ of Δ that the modules have found themselves.
    """
    nothing = engine.facts({})
    parts = list(found) if found is not None else [nothing for _ in modules]  # Δᵢ
    derived = nothing
    while len(delta):
        for at, module in enumerate(modules):
            # Δᵢ := Add[I, I, Δ \ Δᵢ]
            others = delta.difference(parts[at]) if len(parts[at]) else delta
            if not len(others):
                parts[at] = nothing
                continue
            done = module.add(engine, facts, others, _after(len(derived), on_round))
            statistics.count(module.name, done.instances)
            statistics.rounds += done.rounds
            parts[at] = done.facts
        # Δ := Δ₁ ∪ … ∪ Δₙ; I := I ∪ Δ
        delta = nothing
        for part in parts:
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
