"""The current value of a second core: the gain of two threads that share nothing.

Cores may be hardware threads of one core or belong to a shared machine, and they share memory
bandwidth in any case.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from benchmarks.report import Row
from corollary.core.jit import compiled, for_work

_STEPS = 20_000_000
_WORDS = 4_000_000  # 32 MB: more than stays in the cache
_RUNS = 9


@compiled
def compute(steps: int) -> int:
    """Additions in registers, several at once."""
    a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for i in range(steps):
        k = np.uint64(i)
        a, b, c, d = (a ^ k) + np.uint64(3), (b ^ a) + k, (c | k) ^ np.uint64(7), (d + k) ^ c
    return int(a ^ b ^ c ^ d)


@compiled
def copy(source: npt.NDArray[np.uint64], target: npt.NDArray[np.uint64]) -> None:
    """Copy memory."""
    for i in range(len(source)):
        target[i] = source[i] + np.uint64(1)


def gains() -> Row:
    """The speedup of two threads over one, from minimum times.

    >>> sorted(gains())
    ['computing', 'copying']
    """
    arrays = [[np.zeros(_WORDS, np.uint64) for _ in range(2)] for _ in range(2)]
    return {
        "computing": _gain(lambda _: for_work(compute, _STEPS)(_STEPS)),
        "copying": _gain(lambda number: copy(*arrays[number])),
    }


def _gain(work: Callable[[int], object]) -> float:
    alone, both = [], []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(_RUNS):
            start = time.perf_counter()
            work(0)
            alone.append(time.perf_counter() - start)
            start = time.perf_counter()
            other = pool.submit(work, 1)
            work(0)
            other.result()
            both.append(time.perf_counter() - start)
    return 2 * min(alone) / min(both)
