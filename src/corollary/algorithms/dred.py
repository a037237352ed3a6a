"""Delete/Rederive.

Paper: Motik, Nenov, Piro, Horrocks: Incremental Update of Datalog Materialisation: the
Backward/Forward Algorithm, AAAI 2015, §3, steps DR1–DR5, with its "inverse semi-naive" DR2.

Idea: delete everything that has lost a derivation, and all that follows from it; then bring back
what has another derivation.

Invariants: `processed` (O) is what earlier rounds of DR2 have propagated; an instance that uses one
of its facts is not considered again.

Differs from the paper: runs stratum by stratum, so that only the recursive rules of a stratum are
iterated and negation is handled; rederivation asks one rule after the other for the facts that are
still to be rederived, by the rules of the new program; the insertion DR5 is common to all
algorithms (`step.insert`).

Cost: all consequences of what is deleted, once to delete and once to insert.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic

from corollary.algorithms import step as common
from corollary.algorithms.step import Removal, Step
from corollary.core.engine import F


class DRed(Generic[F]):
    """Overdelete, then rederive."""

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """DR1–DR4."""
        # DR1: A := E⁻; D := ∅
        overdeleted = processed = step.nothing
        new = step.candidates()
        # DR2: N := A \ D; D := D ∪ N; A := consequences of N
        while len(new):
            overdeleted = overdeleted.union(new)
            found = step.consequences(new, processed).facts
            processed = overdeleted
            new = found.difference(overdeleted)
            step.statistics.rounds += 1
            yield 0
        step.statistics.consider("overdeleted", len(overdeleted))
        return rederive(step, overdeleted)

    def insert(self, step: Step[F], rederived: F) -> F:
        """DR5."""
        return common.insert(step, rederived)


def rederive(step: Step[F], overdeleted: F) -> Removal[F]:
    """DR3–DR4: (D ∩ E) and what a rule derives in one step from the facts that are left."""
    if not len(overdeleted):
        return Removal(overdeleted, overdeleted)
    left = step.facts.difference(overdeleted)
    explicit = overdeleted.intersection(step.explicit)
    rederived = step.supported(
        overdeleted.difference(explicit), left, step.stratum.rules, "rederivation"
    )
    return Removal(overdeleted, explicit.union(rederived))
