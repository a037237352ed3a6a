"""What several threads do together is what one does, whoever comes to help."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from corollary.engines.columnar import sets, together, workers
from corollary.engines.columnar.workers import Workers
from corollary.testing import thresholds

pytestmark = pytest.mark.skipif(together.crew(1) is None, reason="nothing is compiled here")


@pytest.fixture(params=[2, 3])
def helped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Set operations use threads, however little there is to do."""
    mine = Workers(request.param)
    monkeypatch.setattr(workers._local, "workers", mine, raising=False)
    with thresholds(awake_threads_work_minimum=0, asleep_threads_work_minimum=0):
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
    assert np.array_equal(sets.unique(a, np.uint64(20)), np.unique(a >> np.uint64(20)))
    pairs = (a >> np.uint64(17)) << np.uint64(32) | (a & np.uint64(0x1FFFF))
    turned = np.sort((pairs << np.uint64(32)) | (pairs >> np.uint64(32)))
    assert np.array_equal(sets.swap(np.sort(pairs)), turned)
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


def test_helpers_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_AWAY_NS", 1 << 60)
    monkeypatch.setattr(together, "_AWAKE_NS", 3 * 10**9)  # so that a busy machine sees it, too
    crew = together.Crew(1)
    assert not crew.awake()
    crew.call()
    assert eventually(crew.awake)
    assert eventually(lambda: not crew.awake())


def test_helpers_leave_if_others_use_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_AWAY_NS", -1)  # whatever it takes to give way
    crew = together.Crew(1)
    crew.call()
    assert eventually(lambda: bool(crew.slot[together._BUSY]))
    assert eventually(lambda: not crew.awake())
    crew.slot[together._BUSY] = time.monotonic_ns() + 10**12
    crew.call()
    assert crew._calls.empty()  # nobody is called


def eventually(condition: Any) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0)
    return bool(condition())


def test_a_child_has_helpers_of_its_own(helped: Workers) -> None:
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
    assert stopped
    assert np.array_equal(sets.merge(a, b), expected)
