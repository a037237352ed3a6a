"""`auto`: which algorithm an update uses, and why.

In a stratum without recursive rules, one search for another derivation suffices. In a recursive
stratum, Backward/Forward starts. If it checks many more facts than its goals, DRed enters a race
with it: the one whose work so far has the lower estimated cost runs next, so that the update takes
at most about twice the time of the cheaper one, whether facts have many proofs (Backward/Forward
wins) or are really lost (DRed may win). The estimate counts facts, rule instances and steps, and
never reads a clock: the same update always takes the same course. Strata with modules, such as a
transitive relation, are not raced (`modular.update`). Beyond the equilibrium of Motik et al. 2015,
§5, the program is rematerialized.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Generic

from corollary.algorithms.backward_forward import BackwardForward
from corollary.algorithms.dred import DRed
from corollary.algorithms.stratum import Algorithm, Removal, StratumUpdate
from corollary.algorithms.tuning import tuning
from corollary.core.engine import F
from corollary.core.statistics import Statistics


@dataclass
class _Runner(Generic[F]):
    """An algorithm in the race, with the estimated cost of each kind of work in nanoseconds."""

    title: str
    update: StratumUpdate[F]
    deletion: Generator[int, None, Removal[F]]
    fact_cost: int
    instance_cost: int
    step_cost: int
    steps: int = field(default=0, init=False)

    @property
    def cost(self) -> int:
        """The estimated cost so far."""
        statistics = self.update.statistics
        return (
            self.fact_cost * sum(statistics.considered.values())
            + self.instance_cost * sum(statistics.derivations.values())
            + self.step_cost * self.steps
        )

    def step(self) -> int:
        """Run the next step; return the number of facts checked beyond the allowance."""
        self.steps += 1
        return next(self.deletion)


def worth_rematerializing(deleted: int, inserted: int, explicit: int, instances: int) -> str | None:
    """Return the reason to rematerialize, or None to update incrementally.

    `instances` were considered by the last materialization; rematerialization is assumed to cost
    the same per explicit fact.

    >>> worth_rematerializing(1, 0, 1_000, 1_500) is None
    True
    >>> worth_rematerializing(900, 0, 1_000, 1_500)
    'rematerialized: 900 of 1,000 explicit facts are deleted, 0 inserted'
    >>> worth_rematerializing(300, 0, 1_000, 1_500) is None
    True
    """
    if deleted + inserted <= tuning.rematerialize_changes_minimum:
        return None
    remaining = explicit - deleted + inserted
    cost_per_fact = (explicit + instances) / max(1, explicit)
    update_cost = deleted * max(tuning.deletion_cost_facts, cost_per_fact)
    update_cost += inserted * max(tuning.insertion_cost_facts, cost_per_fact)
    if update_cost < cost_per_fact * remaining + tuning.rematerialize_cost_facts:
        return None
    return (
        f"rematerialized: {deleted:,} of {explicit:,} explicit facts are deleted,"
        f" {inserted:,} inserted"
    )


class Auto(Algorithm[F]):
    """Choose the algorithm stratum by stratum."""

    def __init__(self) -> None:
        self._strata_by_choice: dict[str, int] = {}

    def delete(self, update: StratumUpdate[F]) -> Generator[int, None, Removal[F]]:
        """Search for proofs without recursion; otherwise race Backward/Forward against DRed."""
        if not update.stratum.recursive:
            removal = yield from BackwardForward[F]().delete(update)
            self._record("a check in {} without recursion")
        else:
            removal = self._race(update)
        parts = [
            text.format(f"{number} strat{'um' if number == 1 else 'a'}")
            for text, number in self._strata_by_choice.items()
        ]
        update.statistics.reason = ", ".join(parts)
        return removal

    def _race(self, update: StratumUpdate[F]) -> Removal[F]:
        bf_update, dred_update = (replace(update, statistics=Statistics("", "")) for _ in range(2))
        candidates = bf_update.candidates(phase="deletion propagation")
        bf_deletion = BackwardForward(candidates).delete(bf_update)
        dred_deletion = DRed[F]().delete(dred_update)
        # Measured: on cliques, grids, chains and random graphs, a checked fact takes 0.2 to 18 µs
        # and an overdeleted one 0.2 to 1.2 µs; the rest depends on instances and steps.
        bf = _Runner("Backward/Forward", bf_update, bf_deletion, 2_000, 60, 100_000)
        dred = _Runner(
            "DRed, faster than Backward/Forward,", dred_update, dred_deletion, 300, 2, 60_000
        )
        runner, is_hard = bf, False
        while True:
            if is_hard:
                runner = min(bf, dred, key=lambda each: each.cost)
            try:
                is_hard |= runner.step() > tuning.hard_search_facts_limit
            except StopIteration as stop:
                removal: Removal[F] = stop.value
                break
        for each in (bf, dred):
            update.statistics.include(each.update.statistics)
        self._record(runner.title + " in {} with recursion")
        return removal

    def _record(self, text: str) -> None:
        self._strata_by_choice[text] = self._strata_by_choice.get(text, 0) + 1
