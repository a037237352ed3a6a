"""The laws of engines, with tombstones, random thresholds and random numbers of threads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from corollary.engines.columnar.engine import ColumnarEngine
from corollary.testing import Crossings, draw, recorded_crossings, thresholds
from tests.engines.columnar.scattered import ScatteredEngine
from tests.engines.conformance import LAWS, Law, MakeEngine
from tests.fuzz.lane import Figures

EXAMPLES = 60
THREADS = (1, 2, 3, 17, 32)


def drawn_engine(random: Random) -> MakeEngine:
    """A factory of embedded engines with a random number of threads, mostly with tombstones."""
    kind = random.choice((ScatteredEngine, ScatteredEngine, ColumnarEngine))
    return partial(kind, threads=random.choice(THREADS))


def check(
    law: Law,
    number: int,
    examples: int,
    draw_engine: Callable[[Random], MakeEngine] = drawn_engine,
    crossings: Crossings | None = None,
) -> None:
    """Check a law on the examples of a seed; record which thresholds they cross."""

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(law.examples, st.integers(0, 2**32 - 1))
    def check_example(case: Any, limits: int) -> None:
        make = draw_engine(Random(limits))
        recorded = nullcontext() if crossings is None else recorded_crossings(crossings)
        with thresholds(**draw(limits)), recorded:
            law.check(make, case)

    check_example()


def run(number: int) -> Figures:
    """Check one law on the examples of a seed."""
    law = LAWS[number % len(LAWS)]
    try:
        check(law, number, EXAMPLES)
    except BaseException as error:
        error.add_note(law.name)
        raise
    return {"laws": 1, "examples": EXAMPLES}
