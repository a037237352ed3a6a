"""Compile the rules that answer goals, and evaluate them stratum by stratum.

A plan depends on the rules only, so it can be reused for any facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from corollary.algorithms.hybrid_goals import is_asked
from corollary.algorithms.hybrid_rewrite import Rewriting
from corollary.algorithms.modular.framework import close
from corollary.algorithms.strata import CompiledStrata
from corollary.core.compile import CompiledRule
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, F
from corollary.core.statistics import Statistics
from corollary.core.tables import encode
from corollary.lang.syntax import Rule


class GoalPlan(Generic[F]):
    """The compiled rules for some goals."""

    def __init__(
        self,
        rewriting: Rewriting,
        dictionary: Dictionary,
        compiled: dict[Rule, CompiledRule],
        *,
        coarse: bool,
    ) -> None:
        self.rewriting = rewriting
        self.strata = CompiledStrata(
            tuple(rewriting.rules), dictionary, coarse=coarse, compiled=compiled
        )
        compiled.update(self.strata.compiled)
        self._starts_from_values = coarse
        self.seeds = encode(rewriting.seeds, dictionary)
        self.heads = [p for p in self.strata.derived if not is_asked(p)]

    def evaluate(self, engine: Engine[F], facts: F) -> F:
        """Materialize the rules over the facts, stratum by stratum.

        In each stratum, all rules are applied once, starting from the bound values of goals; then
        the recursive ones to the new facts. The delta excludes explicit facts of the stratum.
        """
        compiled = self.strata.compiled
        for source, stratum in zip(self.strata.sources, self.strata.strata, strict=True):
            if stratum.extremal is not None:
                closed = stratum.extremal.close(engine, facts, facts, Statistics("hybrid", ""))
                facts = facts.union(closed)
                continue
            if stratum.modules:
                delta = facts.only(stratum.predicates)
                if stratum.seeding:
                    delta = delta.union(self._apply(engine, stratum.seeding, facts))
                facts = facts.union(delta)
                modules = [module.with_state(None) for module in stratum.modules]
                facts = facts.union(close(modules, engine, facts, delta, Statistics("hybrid", "")))
                continue
            rules = [compiled[rule] for rule in source.rules]
            new = self._apply(engine, rules, facts).difference(facts)
            if not len(new):
                continue
            facts = facts.union(new)
            if stratum.recursive:
                facts = facts.union(engine.close(stratum.recursive, facts, new).facts)
        return facts

    def _apply(self, engine: Engine[F], rules: Sequence[CompiledRule], facts: F) -> F:
        """Derive facts in one step.

        Every instance of a guarded rule uses a bound value; these few facts are passed as the delta
        to engines that start joins from a delta.
        """
        asked = [p for p in facts.predicates() if is_asked(p)]
        guarded = [r for r in rules if any(is_asked(p.predicate) for p in r.body)]
        if not self._starts_from_values or not asked or not guarded:
            return engine.derive(rules, facts).facts
        derived = engine.derive(guarded, facts, delta=facts.only(asked)).facts
        others = [rule for rule in rules if rule not in guarded]
        return derived.union(engine.derive(others, facts).facts) if others else derived
