"""Hostile and mutated inputs of every format, read in a process with bounded memory."""

from __future__ import annotations

from functools import cache

from tests.fuzz.lane import Figures
from tests.hostile import Readers, check, corpus

INPUTS = 200


@cache
def _readers() -> Readers:
    return Readers()


def run(seed: int) -> Figures:
    """Read the inputs of one seed."""
    refused = 0
    for case in corpus(seed, INPUTS):
        refused += check(_readers(), case) != "ok"
    return {"inputs": INPUTS, "refused": refused}
