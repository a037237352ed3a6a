"""Fixed reference work: `fence` divides CPU times by it.

It runs in a separate process that imports nothing of Corollary, so no change to Corollary affects
it: in the measured process it would share the heap and the garbage collector.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from time import process_time

import numpy as np

from benchmarks.report import ROOT

# Sized so that each part takes about 10 ms.
_KEYS, _COPIES, _OBJECTS = 200_000, 12, 80_000


class Reference:
    """The process of the reference work; it sleeps between runs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.reference"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()  # closes its input, which ends it

    def run(self) -> list[float]:
        """CPU seconds of each part of the work."""
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None
        assert sink is not None
        print("run", file=sink, flush=True)
        seconds: list[float] = json.loads(source.readline())
        return seconds


def main() -> None:
    """Run the work once per line of input."""
    gc.disable()
    parts = work()
    for part in parts:
        part()
    for _ in sys.stdin:
        print(json.dumps([_spent(part) for part in parts]), flush=True)


def work() -> tuple[Callable[[], object], ...]:
    """The parts: a sort, random reads and copies of memory, and Python objects.

    >>> all(_spent(part) > 0 for part in work())
    True
    """
    keys = np.random.default_rng(0).integers(0, 1 << 40, _KEYS)
    order = np.argsort(keys)
    read, copied = np.empty_like(keys), np.empty((_COPIES, _KEYS), keys.dtype)

    def sort() -> object:
        return np.sort(keys, kind="stable")

    def memory() -> object:
        for _ in range(_COPIES):
            keys.take(order, out=read)
            np.copyto(copied, read)
        return copied

    def objects() -> object:
        index: dict[tuple[int, int], list[int]] = {}
        for number in range(_OBJECTS):
            index.setdefault((number % 1_009, number % 7), []).append(number)
        return sorted(index.items())

    return sort, memory, objects


def _spent(action: Callable[[], object]) -> float:
    started = process_time()
    action()
    return process_time() - started


if __name__ == "__main__":
    main()
