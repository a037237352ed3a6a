"""Several threads derive what one derives, also where they would not be used: on few facts."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corollary.engines.columnar import linear, readings, sets, shared
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.workers import Workers, current
from corollary.lang.program import Program
from tests.dense import compositions
from tests.engines.conformance import as_example, materialize_agrees_with_the_oracle
from tests.strategies import programs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(programs(aggregation=False), compositions()))
def test_oracle_threads(monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    for module in (linear, shared):
        monkeypatch.setattr(module, "_MANY", 0)
    monkeypatch.setattr(sets, "_SHORT", -1)
    monkeypatch.setattr(sets, "_LONG", -1)
    monkeypatch.setattr(readings, "_PART", 1)
    materialize_agrees_with_the_oracle(partial(ColumnarEngine, threads=2), as_example(program))


def test_what_goes_wrong_in_a_helper_is_raised() -> None:
    workers = Workers(2)
    barrier = threading.Barrier(2)

    def fail_elsewhere(at: int) -> int:
        barrier.wait(timeout=10)  # so that each thread has one of the two
        if threading.current_thread() is not threading.main_thread():
            raise ValueError(at)
        return at

    with pytest.raises(ValueError, match=r"0|1"):
        workers.map(fail_elsewhere, [0, 1])
    assert workers.map(lambda at: -at, [1, 2, 3]) == [-1, -2, -3]


def test_two_threads_with_one_engine() -> None:
    workers = Workers(2)
    found: list[list[int]] = []

    def use() -> None:
        for _ in range(200):
            found.extend([workers.map(lambda at: at * at, range(5))])

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[0, 1, 4, 9, 16]] * 600


def test_work_within_work_stays_in_its_thread() -> None:
    workers = Workers(2)
    assert workers.map(lambda at: current().threads, [0, 1]) == [1, 1]
