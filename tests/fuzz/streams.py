"""Random programs with streams of fact and rule changes, on every algorithm.

Thresholds and the number of threads are random as well, so a dozen facts reach every strategy, with
tombstones, tiny partitions and more threads than facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from random import Random

from corollary.algorithms.maintain import ALGORITHMS, KINDS
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.testing import random_thresholds
from tests.algorithms.replay import replay, states
from tests.dense import composition, modular_program
from tests.engines.conformance import MakeEngine
from tests.fuzz.lane import Figures
from tests.streams import Stream, stream

COMMITS = 12
THREADS = (1, 2, 3, 17, 32)


def check(case: Stream, make: MakeEngine = ColumnarEngine) -> int:
    """Compare every algorithm, strata size and module setting with the reference evaluator.

    Counters and module state are verified after every commit. Returns the number of replays.
    """
    expected, replays = states(case), 0
    for algorithm in ALGORITHMS:
        for coarse, modules, reopen in product((False, True), repeat=3):
            if modules and KINDS[algorithm].modular is None:
                continue
            replays += 1
            for player in replay(
                make,
                case,
                algorithm,
                expected,
                coarse=coarse,
                modules=modules,
                reopen=reopen,
            ):
                player.maintainer.verify()
    return replays


@contextmanager
def drawn_engine(seed: int) -> Iterator[MakeEngine]:
    """A factory of engines whose threads, and mostly thresholds, a seed determines."""
    random = Random(seed)
    make = partial(ColumnarEngine, threads=random.choice(THREADS))
    if random.random() < 0.2:
        yield make
        return
    with random_thresholds(random.getrandbits(32)):
        yield make


def run(seed: int) -> Figures:
    """Check the stream of one seed."""
    program = (composition(seed), modular_program(seed), None)[seed % 3]
    case = stream(seed, program, COMMITS)
    try:
        with drawn_engine(seed) as make:
            replays = check(case, make)
    except BaseException as error:
        error.add_note(repr(case))
        raise
    return {"streams": 1, "replays": replays, "commits": replays * COMMITS}
