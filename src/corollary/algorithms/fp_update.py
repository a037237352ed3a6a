"""FP-update: two fixpoints, one for what may go and one for what stays.

Paper: Kotowski, Bry, Brodt: Reasoning as Axioms Change: Incremental View Maintenance Reconsidered,
RR 2011, Algorithms 1.2 and 1.3, stratum by stratum (§7.1), for facts and rules (§7.2).

Idea: U, all facts that depend on something removed, is computed by the original rules over the old
fixpoint; K = I \\ U is kept without a check, and the new fixpoint is that of K.

Invariants: U ∪ K = I and U ∩ K = ∅; what the second fixpoint adds to K is O, the facts of U that
are supported otherwise.

Differs from the paper: the first Δ = T(K) \\ K, which it computes naively over all of K, is asked
for the heads in U only. Where nothing is inserted this is the same set, as all of T(K) is in U ∪ K.

Cost: all consequences of what is removed, and again for what is supported otherwise.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic

from corollary.algorithms import step as common
from corollary.algorithms.dred import rederive
from corollary.algorithms.step import Removal, Step
from corollary.core.engine import F


class FPUpdate(Generic[F]):
    """Unsure facts, then the fixpoint of those kept."""

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Algorithm 1.2, and the initialization of Algorithm 1.3."""
        unsure = step.nothing  # F of Algorithm 1.2
        delta = step.candidates()  # Δ := T_D(T_P^ω)
        while len(delta):
            unsure = unsure.union(delta)
            # Δ := T_P(T_P^ω, Δ) \ F: the old fixpoint as a whole, not only what is not yet unsure
            delta = step.consequences(delta, step.nothing).facts.difference(unsure)
            step.statistics.rounds += 1
            yield 0
        step.statistics.consider("unsure", len(unsure))
        return rederive(step, unsure)  # K := T_P^ω \ U; Δ := T_{P\D}(K) \ K

    def insert(self, step: Step[F], rederived: F) -> F:
        """The loop of Algorithm 1.3."""
        return common.insert(step, rederived)
