"""Programs that compute values: every algorithm equals the oracle, under streams of changes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.computing import computing_program
from tests.fuzz.streams import check
from tests.streams import stream

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=12)
@given(SEEDS)
def test_streams(seed: int) -> None:
    program, others = computing_program(seed), computing_program(seed + 1, 3)
    check(stream(seed, program, 6, others.rules))
