"""Delete/Rederive.

Paper: Motik, Nenov, Piro, Horrocks: Incremental Update of Datalog Materialisation: the
Backward/Forward Algorithm, AAAI 2015, §3, steps DR1–DR5, with its "inverse semi-naive" DR2.

Idea: delete every fact that has lost a derivation, with all its consequences; then rederive the
facts that have another derivation.

Invariants: `remaining` lacks the facts (O) that earlier rounds of DR2 have propagated; an instance
that uses one of them is not considered again.

Differs from the paper: runs stratum by stratum, so that only the recursive rules of a stratum are
iterated and negation is handled; rederivation evaluates one rule of the new program after the other
for the facts still to be rederived; all algorithms share the insertion DR5 (`Algorithm.insert`).

Cost: all consequences of the deleted facts, once to delete and once to insert.
"""

from __future__ import annotations

from collections.abc import Generator

from corollary.algorithms.stratum import Algorithm, Removal, StratumUpdate
from corollary.core.engine import F


class DRed(Algorithm[F]):
    """Overdelete, then rederive."""

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """DR1–DR4."""
        # DR1: A := E⁻; D := ∅
        overdeleted, remaining = update.nothing, update.propagating  # I \ D
        new = update.candidates()
        update.statistics.consider("overdeleted", len(new))
        # DR2: N := A \ D; D := D ∪ N; A := consequences of N
        while len(new):
            overdeleted = overdeleted.union(new)
            consequences = update.consequences(new, remaining).facts
            remaining = remaining.difference(new)
            new = consequences.difference(overdeleted)
            update.statistics.rounds += 1
            update.statistics.consider("overdeleted", len(new))
            yield 0
        return rederive(update, overdeleted)


def rederive(update: StratumUpdate[F], overdeleted: F) -> Removal[F]:
    """DR3–DR4: (D ∩ E) and the facts that a rule derives in one step from the remaining ones."""
    if not len(overdeleted):
        return Removal(overdeleted, overdeleted)
    remaining = update.facts.difference(overdeleted)
    explicit = overdeleted.intersection(update.explicit)
    rederived = update.supported(
        overdeleted.difference(explicit), remaining, update.stratum.rules, "rederivation"
    )
    return Removal(overdeleted, explicit.union(rederived))
