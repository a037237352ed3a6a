"""The rules that answer some goals, compiled, and their evaluation stratum by stratum.

A plan depends on rules only: the facts that it is evaluated over may be any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from corollary.algorithms.hybrid_goals import is_asked
from corollary.algorithms.hybrid_rewrite import Rewriting
from corollary.algorithms.modular.framework import close
from corollary.algorithms.modular.recognize import recognized
from corollary.algorithms.strata import CompiledStrata
from corollary.core.compile import CompiledRule
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, F
from corollary.core.statistics import Statistics
from corollary.core.tables import encode
from corollary.lang.syntax import Rule


class GoalPlan(Generic[F]):
    """Rules for some goals, compiled."""

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
        self._few = coarse
        self.seeds = encode(rewriting.seeds, dictionary)
        self.heads = [p for p in self.strata.derived if not is_asked(p)]

    def evaluate(self, engine: Engine[F], facts: F) -> F:
        """The facts with all that the rules derive from them, stratum by stratum.

        In each stratum all rules are applied once, from the few values that are asked for; then
        those that are recursive to what is new. Explicit facts of the stratum are no delta.
        """
        compiled = self.strata.compiled
        for source, stratum in zip(self.strata.sources, self.strata.strata, strict=True):
            rules = [compiled[rule] for rule in source.rules]
            if stratum.modules:
                recursive = [compiled[rule] for rule in source.recursive]
                once = [r for r in rules if r not in recursive or r.reads_wide]
                delta = facts.only(source.predicates)
                if once:
                    delta = delta.union(self._applied(engine, once, facts))
                facts = facts.union(delta)
                parts = recognized(recursive, engine.dictionary)
                facts = facts.union(close(parts, engine, facts, delta, Statistics("hybrid", "")))
                continue
            new = self._applied(engine, rules, facts).difference(facts)
            if not len(new):
                continue
            facts = facts.union(new)
            if stratum.recursive:
                facts = facts.union(engine.close(stratum.recursive, facts, new).facts)
        return facts

    def _applied(self, engine: Engine[F], rules: Sequence[CompiledRule], facts: F) -> F:
        """What rules derive at once.

        Each instance of a rule that reads what is asked for uses one of these few facts: an engine
        that looks up what a few facts join with is told so.
        """
        asked = [p for p in facts.predicates() if is_asked(p)]
        guarded = [r for r in rules if any(is_asked(p.predicate) for p in r.body)]
        if not self._few or not asked or not guarded:
            return engine.derive(rules, facts).facts
        found = engine.derive(guarded, facts, delta=facts.only(asked)).facts
        others = [rule for rule in rules if rule not in guarded]
        return found.union(engine.derive(others, facts).facts) if others else found
