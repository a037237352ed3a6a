"""The update algorithms by name, the choice among them, and the state that an update replaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from corollary.algorithms.backward_forward import BackwardForward
from corollary.algorithms.choose import Auto
from corollary.algorithms.counted import CountedBackwardForward, CountedDRed
from corollary.algorithms.dred import DRed
from corollary.algorithms.fp_update import FPUpdate
from corollary.algorithms.modular.framework import Module, SemiNaive
from corollary.algorithms.modular.states import ModuleStates
from corollary.algorithms.modular.update import (
    DirectDiff,
    ModularAlgorithm,
    ModularBackwardForward,
    ModularDRed,
    Rebuild,
)
from corollary.algorithms.reasoner import ReasonerState
from corollary.algorithms.strata import CompiledStrata
from corollary.algorithms.stratum import Algorithm, Counters, StratumUpdate
from corollary.algorithms.tuning import tuning
from corollary.core.engine import F


@dataclass(frozen=True)
class Kind:
    """An update algorithm: its factory, the counters it maintains, its description."""

    make: Callable[[], Algorithm[Any]] | None
    counts: tuple[bool, bool] = (False, False)  # C_nr, C_r
    about: str = ""
    modular: Callable[[Sequence[Module[Any]]], ModularAlgorithm[Any]] | None = None

    def algorithm_of(
        self,
        update: StratumUpdate[F],
        configured: Algorithm[F],
        modules: Sequence[Module[F]],
        *,
        has_states: bool,
    ) -> Algorithm[F]:
        """Choose the algorithm of a stratum.

        | stratum                     | modules have states | change | algorithm                   |
        | --------------------------- | ------------------- | ------ | --------------------------- |
        | no modules, or not used     |                     |        | the configured one          |
        | all recursive rules modular | yes                 | any    | `DirectDiff`                |
        | some modules                | yes                 | any    | modular B/F or modular DRed |
        | all recursive rules modular | no                  | any    | `Rebuild`                   |
        | some modules                | no                  | large  | `Rebuild`                   |
        | some modules                | no                  | small  | configured one, or B/F^c    |

        Where DRed^c is configured, C_r does not cover strata with modules, so B/F^c stands in.
        """
        if not modules:
            return configured
        assert self.modular is not None, "modules are used"
        if has_states:
            return (DirectDiff if update.stratum.modular else self.modular)(modules)
        if update.stratum.modular or not _is_small(update):
            return Rebuild(modules)
        return CountedBackwardForward() if self.counts[1] else configured


def _is_small(update: StratumUpdate[F]) -> bool:
    """Whether the change is too small to justify closing the stratum again."""
    has_new_rules = any(
        rule in update.added_rules
        for module in update.stratum.modules
        if not isinstance(module, SemiNaive)
        for rule in module.rules
    )
    changes = (update.deleted, update.inserted, update.lost, update.gained)
    return not has_new_rules and tuning.module_change_facts * sum(map(len, changes)) < len(
        update.only_own(update.facts)
    )


_BF, _DRED = ModularBackwardForward, ModularDRed
KINDS = {
    "auto": Kind(Auto, about="no stratum is touched", modular=_BF),
    "bf": Kind(BackwardForward, about="Backward/Forward", modular=_BF),
    "dred": Kind(DRed, about="Delete/Rederive", modular=_DRED),
    "dred-c": Kind(CountedDRed, (True, True), "Delete/Rederive with counters", _DRED),
    "bf-c": Kind(CountedBackwardForward, (True, False), "Backward/Forward with a counter", _BF),
    "counting": Kind(CountedDRed, (True, False), "counting, for programs without recursion"),
    "fp": Kind(FPUpdate, about="FP-update: two fixpoints"),
    "rematerialize": Kind(None, about="rematerialization"),
}
ALGORITHMS = tuple(KINDS)


@dataclass(frozen=True, eq=False)
class State(ReasonerState[F]):
    """The state of a `Maintainer`."""

    strata: CompiledStrata
    facts: F
    counters: Counters[F] | None
    modules: ModuleStates[F]
    instances: int  # considered by the last materialization
