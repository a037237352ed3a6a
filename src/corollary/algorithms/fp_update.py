"""FP-update: one fixpoint of the unsure facts, one of the kept facts.

Paper: Kotowski, Bry, Brodt: Reasoning as Axioms Change: Incremental View Maintenance Reconsidered,
RR 2011, Algorithms 1.2 and 1.3, stratum by stratum (§7.1), for facts and rules (§7.2).

Idea: U, all facts that depend on a removed one, is computed by the original rules over the old
fixpoint; K = I \\ U is kept without a check, and the new fixpoint is that of K.

Invariants: U ∪ K = I and U ∩ K = ∅; the second fixpoint adds to K the set O, the facts of U that
are otherwise supported.

Differs from the paper: the first Δ = T(K) \\ K, which the paper computes naively over all of K, is
computed for heads in U only. Without insertions this is the same set, as T(K) ⊆ U ∪ K.

Cost: all consequences of the removed facts, and again for the otherwise supported ones.
"""

from __future__ import annotations

from collections.abc import Generator

from corollary.algorithms.dred import rederive
from corollary.algorithms.stratum import Algorithm, Removal, StratumUpdate
from corollary.core.engine import F


class FPUpdate(Algorithm[F]):
    """Compute the unsure facts, then the fixpoint of the kept ones."""

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Algorithm 1.2, and the initialization of Algorithm 1.3."""
        unsure = update.nothing  # F of Algorithm 1.2
        delta = update.candidates()  # Δ := T_D(T_P^ω)
        while len(delta):
            unsure = unsure.union(delta)
            # Δ := T_P(T_P^ω, Δ) \ F: the old fixpoint as a whole, not only what is not yet unsure
            delta = update.consequences(delta, update.surviving).facts.difference(unsure)
            update.statistics.rounds += 1
            yield 0
        update.statistics.consider("unsure", len(unsure))
        return rederive(update, unsure)  # K := T_P^ω \ U; Δ := T_{P\D}(K) \ K
