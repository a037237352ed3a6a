"""`make fuzz`: random streams on every algorithm for as long as asked.

Prints the seed that it starts with; `--seed` begins there again. Stops at the first stream on which
an algorithm and the oracle differ, and shows it.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
from random import SystemRandom

from corollary.algorithms.maintain import ALGORITHMS, KINDS
from tests.algorithms.replay import replay, states
from tests.dense import composition, modular_program
from tests.engines.factories import columnar
from tests.streams import Stream, stream


def check(found: Stream) -> None:
    """Every algorithm, with fine and coarse strata, with modules and without, and its counts."""
    wanted = states(found)
    for algorithm in ALGORITHMS:
        for coarse, modules in product((False, True), repeat=2):
            if modules and KINDS[algorithm].modular is None:
                continue
            for player in replay(
                columnar, found, algorithm, wanted, coarse=coarse, modules=modules
            ):
                player.maintainer.verify()


def main() -> int:
    """Check streams until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=None, help="where to begin (default: anywhere)")
    parser.add_argument("--commits", type=int, default=12, help="of a stream (default: 12)")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else SystemRandom().randrange(2**32)
    print(f"seed {first}", flush=True)
    started = time.monotonic()
    seed = first
    while time.monotonic() - started < options.seconds:
        program = (composition(seed), modular_program(seed), None)[seed % 3]
        found = stream(seed, program, options.commits)
        try:
            check(found)
        except Exception:
            print(f"failed with seed {seed}:\n{found!r}", file=sys.stderr)
            raise
        seed += 1
    print(f"{seed - first:,} streams, each with {len(ALGORITHMS)} algorithms: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
