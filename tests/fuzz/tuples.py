"""Random streams of changes, evaluated tuple at a time at random thresholds."""

from __future__ import annotations

from corollary.testing import draw
from tests.fuzz.lane import Figures
from tests.test_tuples import check_stream


def run(seed: int) -> Figures:
    """Play one stream."""
    check_stream(seed, draw(seed) | {"least_tuple_steps": 1 << 40})
    return {"streams": 1, "commits": 8}
