"""Set operations by several threads give what one gives."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from corollary.engines.columnar import sets, workers
from corollary.engines.columnar.workers import Workers
from corollary.testing import thresholds


@pytest.fixture(params=[2, 3, 32])
def helped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Set operations use threads, however little there is to do."""
    mine = Workers(request.param)
    monkeypatch.setattr(workers._local, "workers", mine, raising=False)
    with thresholds(parallel_work_minimum=0):
        yield mine


def keys(rng: np.random.Generator, size: int, largest: int = 1 << 34) -> Any:
    return np.unique(rng.integers(0, largest, size).astype(np.uint64))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 50_000])
@pytest.mark.parametrize("other", [0, 3, 20_000])
def test_operations_agree_with_numpy(helped: Workers, size: int, other: int) -> None:
    rng = np.random.default_rng(size + other)
    # some in common, some not
    a, b = keys(rng, size), keys(rng, other)
    b = np.union1d(b, a[::3])
    assert np.array_equal(sets.merge(a, b), np.union1d(a, b))
    assert np.array_equal(sets.merge(b, a), np.union1d(a, b))
    assert np.array_equal(sets.select(a, b, False), np.setdiff1d(a, b))
    assert np.array_equal(sets.select(a, b, True), np.intersect1d(a, b))
    only_a, only_b = sets.differences(a, b)
    assert np.array_equal(only_a, np.setdiff1d(a, b))
    assert np.array_equal(only_b, np.setdiff1d(b, a))
    assert np.array_equal(sets.unique(a, np.uint64(20)), np.unique(a >> np.uint64(20)))
    pairs = (a >> np.uint64(17)) << np.uint64(32) | (a & np.uint64(0x1FFFF))
    turned = np.sort((pairs << np.uint64(32)) | (pairs >> np.uint64(32)))
    assert np.array_equal(sets.transpose(np.sort(pairs)), turned)
    numbers = a & np.uint64(0xFFFF)
    ids = (b & np.uint64(0xFFFF)).astype(np.uint32)
    assert np.array_equal(sets.numbers([numbers, ids], 0xFFFF), np.union1d(numbers, ids))
    close = (pairs & np.uint64(0x7F)) << np.uint64(32)  # of these, one thread makes all marks
    found = sets.numbers([ids], 0x1FFFF, subjects=[pairs, close])
    subjects = np.union1d(pairs >> np.uint64(32), close >> np.uint64(32))
    assert np.array_equal(found, np.union1d(ids, subjects))
    fewer = sets.numbers([ids], 0x1FFFF, subjects=[pairs], without=[a, np.unique(numbers)])
    every = np.union1d(ids, pairs >> np.uint64(32))
    assert np.array_equal(fewer, np.setdiff1d(every, np.union1d(a, numbers)))
    some = np.ascontiguousarray(np.unique(numbers)[::2])
    bits = sets.bitmap(some) if len(some) else np.zeros(1, np.uint64)
    for probes in (a & np.uint64(0x1FFFF), ids):
        mask = np.zeros(len(probes), bool)
        sets.look_up(probes, bits, mask)
        assert np.array_equal(mask, np.isin(probes, some))


def test_many_threads_ask_at_the_same_time(helped: Workers) -> None:
    rng = np.random.default_rng(0)
    a, b = keys(rng, 3000), keys(rng, 2000)
    expected = np.union1d(a, b)
    wrong: list[int] = []

    def ask(number: int) -> None:
        workers._local.workers = helped
        found = (sets.merge(a, b) for _ in range(300))
        wrong.extend(number for keys in found if not np.array_equal(keys, expected))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_child_process_starts_threads_of_its_own(helped: Workers) -> None:
    rng = np.random.default_rng(0)
    a, b = keys(rng, 100_000), keys(rng, 100_000)
    sets.merge(a, b)
    child = multiprocessing.get_context("fork").Process(target=merged, args=(a, b))
    child.start()
    child.join(60)
    assert child.exitcode == 0


def merged(a: Any, b: Any) -> None:
    helped = Workers(2)
    workers._local.workers = helped
    assert np.array_equal(sets.merge(a, b), np.union1d(a, b))


def test_a_signal_does_not_harm_what_is_shared(helped: Workers) -> None:
    rng = np.random.default_rng(0)
    a, b = keys(rng, 100_000), keys(rng, 100_000)
    expected, stopped, end = np.union1d(a, b), 0, time.monotonic() + 0.5

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    gc.disable()  # Hypothesis times collections in a callback, which must not be interrupted
    try:
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 5e-3))
                while time.monotonic() < end:
                    sets.merge(a, b)
            except KeyboardInterrupt:
                stopped += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert stopped
    assert np.array_equal(sets.merge(a, b), expected)
