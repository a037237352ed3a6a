"""Semi-naive materialization, stratum by stratum.

Paper: Hu, Motik, Horrocks: Modular Materialisation of Datalog Programs, AAAI 2019, Algorithm 1.

Idea: the nonrecursive rules of a stratum are applied once; the recursive ones are applied in
rounds, each considering only rule instances that use a fact of the previous round.

Invariants: before each stratum, I is the materialization of all earlier strata together with the
explicit facts of predicates that no rule derives; no rule instance is considered twice.

Differs from the paper: Algorithm 2 over modules (`modular`) replaces lines 4–6; rules outside
modules are closed by `Engine.close`, which may be faster than evaluation in rounds. Facts of
predicates without a stratum are added to I at the start. A recursive rule with a variable property
or class in its body reads earlier strata through the same atom, so it is also applied to them once,
like a nonrecursive rule.

Cost: every applicable rule instance is considered once; modules consider fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from corollary.algorithms.modular.extremal import Extremal
from corollary.algorithms.modular.framework import Module, SemiNaive, close
from corollary.algorithms.modular.recognize import recognize_modules
from corollary.core.compile import CompiledRule, compile_rule, covers
from corollary.core.engine import Engine, F
from corollary.core.position import enter_stratum, leave_strata
from corollary.core.statistics import Statistics
from corollary.lang.program import Program
from corollary.lang.stratify import Stratum
from corollary.lang.syntax import Rule

OnProgress = Callable[[int, int, int, int], None]  # stratum, strata, round, facts


@dataclass(frozen=True)
class Materialization(Generic[F]):
    """All facts, explicit ones included, with statistics and module states."""

    facts: F
    explicit: F
    statistics: Statistics
    modules: Sequence[Module[F]] = ()  # with their states


def materialize(
    program: Program,
    explicit: F,
    engine: Engine[F],
    *,
    modules: bool = True,
    on_progress: OnProgress | None = None,
) -> Materialization[F]:
    """mat(Π, E). `on_progress` is called after every round and may raise to stop.

    With `modules`, transitive relations and the like are closed by specialized algorithms.
    """
    return materialize_strata(
        program.strata, explicit, engine, modules=modules, on_progress=on_progress
    )


def materialize_strata(
    strata: Sequence[Stratum],
    explicit: F,
    engine: Engine[F],
    *,
    compiled: Mapping[Rule, CompiledRule] | None = None,
    modules: bool = True,
    lemmas: F | None = None,
    on_progress: OnProgress | None = None,
) -> Materialization[F]:
    """mat(Π, E) for the strata of Π; `compiled` rules are reused.

    `lemmas` are derived facts known in advance, none of them explicit; the first round starts from
    them.
    """
    statistics = Statistics("semi-naive", "materialization from scratch")
    used: list[Module[F]] = []
    precompiled = compiled or {}

    def compile_all(rules: Sequence[Rule]) -> list[CompiledRule]:
        return [precompiled.get(rule) or compile_rule(rule, engine.dictionary) for rule in rules]

    seeds = explicit if lemmas is None else explicit.replaced(explicit.only(()), lemmas)
    derived = {predicate for stratum in strata for predicate in stratum.predicates}
    facts = seeds.only(
        [p for p in seeds.predicates() if not any(covers(d, p) for d in derived)]
    )  # I
    for number, stratum in enumerate(strata, 1):
        enter_stratum(number, len(strata))
        nonrecursive = compile_all(stratum.nonrecursive)
        recursive = compile_all(stratum.recursive)

        if stratum.is_extremal:
            module = Extremal[F](stratum, compile_all(stratum.rules), engine.dictionary)
            facts = facts.union(module.close(engine, facts, explicit, statistics))
            continue

        # Δ := (E ∩ Oˢ) ∪ Πˢₙᵣ[I]
        delta = seeds.only(stratum.predicates)
        once = nonrecursive + [rule for rule in recursive if rule.reads_wide]
        if once:
            step = engine.derive(once, facts)
            statistics.count("nonrecursive", step.instances)
            delta = delta.union(step.facts)
        # I := I ∪ Δ
        facts = facts.union(delta)
        statistics.rounds += 1
        known = len(facts)

        def on_round(round_: int, new: int, number: int = number, known: int = known) -> None:
            if on_progress is not None:
                on_progress(number, len(strata), 1 + round_, known + new)

        on_round(0, 0)
        # while Δ ≠ ∅: Δ := Πˢᵣ[I : Δ] \ I; I := I ∪ Δ
        if recursive and len(delta):
            parts: Sequence[Module[F]] = [SemiNaive(recursive)]
            if modules:
                parts = recognize_modules(recursive, engine.dictionary)
                used += parts
            facts = facts.union(close(parts, engine, facts, delta, statistics, on_round))
    leave_strata()
    return Materialization(facts, explicit, statistics, used)
