"""The thresholds of evaluation tuple at a time."""

from __future__ import annotations

from dataclasses import dataclass

from corollary.core.tuning import register, threshold


@dataclass
class TupleThresholds:
    """Sizes of arrays and of slices of work."""

    tuple_slice_steps: int = threshold(
        4_000_000,  # some 0.1 s
        "steps",
        "between two checks of limits and interrupts",
        minimum=1,
    )
    tuple_least_room: int = threshold(
        1024,
        "facts",
        "that a new index has room for",
        minimum=1,
        maximum=1 << 20,
    )
    sampled_deletions_minimum: int = threshold(
        64,
        "facts",
        "that are deleted at least if the steps of a deletion are projected from a sample",
        minimum=1,
    )
    tuple_ranks_limit: int = threshold(
        1 << 30,  # the rank of a fact has 32 bits
        "ranks",
        "above this many assigned ranks, facts are ranked again from the start",
        minimum=1,
        maximum=1 << 30,
    )


tuning = register("tuples", TupleThresholds())
