"""`auto`: which algorithm an update uses, and why.

Where no rule of a stratum is recursive, one look for another derivation decides. In a recursive
stratum, Backward/Forward begins. If it checks many more facts than it was asked about, DRed enters
a race with it: each goes on while it has taken less time than the other, so that the update takes
at most about twice the time of the better one, whether facts have many proofs (Backward/Forward
wins) or are truly lost (DRed may win). An instance costs the two between 2 and 200 ns, so that the
clock decides, not a count; what the update does is the same either way. Strata with
modules, such as a transitive relation, are not raced for (`modular.update`). Past the equilibrium
of Motik et al. 2015, §5, everything is derived anew.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from time import perf_counter
from typing import Generic

from corollary.algorithms import step as common
from corollary.algorithms.backward_forward import BackwardForward
from corollary.algorithms.dred import DRed
from corollary.algorithms.step import Removal, Step
from corollary.algorithms.tuning import tuning
from corollary.core.engine import F
from corollary.core.statistics import Statistics

_WINNERS = {
    "bf": "Backward/Forward",
    "dred": "DRed, faster than Backward/Forward,",
}


def worth_rematerializing(deleted: int, inserted: int, explicit: int, instances: int) -> str | None:
    """Why everything should be derived anew, None if it should not.

    `instances` were considered when everything was last derived; deriving it anew is taken to cost
    as much for each fact that is explicit then.

    >>> worth_rematerializing(1, 0, 1_000, 1_500) is None
    True
    >>> worth_rematerializing(900, 0, 1_000, 1_500)
    'derived anew: 900 of 1,000 explicit facts are deleted, 0 inserted'
    >>> worth_rematerializing(300, 0, 1_000, 1_500) is None
    True
    """
    changed = deleted + inserted
    if changed <= tuning.rematerialize_changes_minimum:
        return None
    left = explicit - deleted + inserted
    each = (explicit + instances) / max(1, explicit)
    update = changed * max(tuning.change_cost_facts, each)
    if update < each * left + tuning.rematerialize_cost_facts:
        return None
    return (
        f"derived anew: {deleted:,} of {explicit:,} explicit facts are deleted,"
        f" {inserted:,} inserted"
    )


class Auto(Generic[F]):
    """The best of the others, stratum by stratum."""

    def __init__(self) -> None:
        self._chosen: dict[str, int] = {}

    def delete(self, step: Step[F]) -> Generator[int, None, Removal[F]]:
        """Check where nothing is recursive; else let Backward/Forward and DRed race."""
        if not step.stratum.recursive:
            removal = yield from BackwardForward[F]().delete(step)
            self._choose("a check in {} without recursion")
        else:
            removal = self._race(step)
        parts = [
            text.format(f"{number} strat{'um' if number == 1 else 'a'}")
            for text, number in self._chosen.items()
        ]
        step.statistics.reason = ", ".join(parts)
        return removal

    def _race(self, step: Step[F]) -> Removal[F]:
        careful = replace(step, statistics=Statistics("", ""))
        quick = replace(step, statistics=Statistics("", ""))
        candidates = careful.candidates(phase="deletion propagation")
        runs = {"bf": BackwardForward(candidates).delete(careful), "dred": DRed[F]().delete(quick)}
        spent = {"bf": 0.0, "dred": 0.0}
        removal: Removal[F] | None = None
        turn = "bf"
        hard = False
        while removal is None:
            if hard:
                turn = min(spent, key=lambda name: spent[name])
            started = perf_counter()
            try:
                hard |= next(runs[turn]) > tuning.hard_search_facts_limit
            except StopIteration as stop:
                removal = stop.value
            spent[turn] += perf_counter() - started
        for each in (careful, quick):
            step.statistics.include(each.statistics)
        self._choose(_WINNERS[turn] + " in {} with recursion")
        return removal

    def _choose(self, text: str) -> None:
        self._chosen[text] = self._chosen.get(text, 0) + 1

    def insert(self, step: Step[F], rederived: F) -> F:
        """Semi-naive evaluation."""
        return common.insert(step, rederived)
