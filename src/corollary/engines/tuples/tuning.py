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
        "between looks at limits and interrupts",
        minimum=1,
    )
    tuple_least_room: int = threshold(
        1024,
        "facts",
        "that a new index has room for",
        minimum=1,
        maximum=1 << 20,
    )
    tuple_ranks_limit: int = threshold(
        1 << 30,  # the rank of a fact has 32 bits
        "ranks",
        "that facts have got, beyond which they are numbered again",
        minimum=1,
        maximum=1 << 30,
    )


tuning = register("tuples", TupleThresholds())
