"""The algorithms by name, and what an update replaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from corollary.algorithms.backward_forward import BackwardForward
from corollary.algorithms.choose import Auto
from corollary.algorithms.counted import CountedBackwardForward, CountedDRed
from corollary.algorithms.dred import DRed
from corollary.algorithms.fp_update import FPUpdate
from corollary.algorithms.modular.framework import Module
from corollary.algorithms.modular.update import ModularBackwardForward, ModularDRed
from corollary.algorithms.step import Algorithm, Counters
from corollary.algorithms.strata import CompiledStrata, ModuleKey
from corollary.core.engine import F
from corollary.lang.program import Program


@dataclass(frozen=True)
class Kind:
    """An algorithm by name: how to make it, what it counts, what it is."""

    make: Callable[[], Algorithm[Any]] | None
    counts: tuple[bool, bool] = (False, False)  # nonrecursive and recursive instances
    about: str = ""
    modular: Callable[[Sequence[Module[Any]]], Algorithm[Any]] | None = None


_BF, _DRED = ModularBackwardForward, ModularDRed
KINDS = {
    "auto": Kind(Auto, about="no stratum is touched", modular=_BF),
    "bf": Kind(BackwardForward, about="Backward/Forward", modular=_BF),
    "dred": Kind(DRed, about="Delete/Rederive", modular=_DRED),
    "dred-c": Kind(CountedDRed, (True, True), "Delete/Rederive with counters", _DRED),
    "bf-c": Kind(CountedBackwardForward, (True, False), "Backward/Forward with a counter", _BF),
    "counting": Kind(CountedDRed, (True, False), "counting, for programs without recursion"),
    "fp": Kind(FPUpdate, about="FP-update: two fixpoints"),
    "rematerialize": Kind(None, about="everything derived anew"),
}
ALGORITHMS = tuple(KINDS)


@dataclass(frozen=True)
class State(Generic[F]):
    """All that an update replaces."""

    program: Program
    strata: CompiledStrata
    explicit: F
    facts: F
    counters: Counters[F] | None
    modules: Mapping[ModuleKey, Any]  # their states
    instances: int  # considered when everything was derived
