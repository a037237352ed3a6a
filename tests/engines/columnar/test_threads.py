"""Several threads derive what one derives, also where they would not be used: on few facts."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.workers import Workers, current_workers
from corollary.knowledge_base import KnowledgeBase
from corollary.lang.program import Program
from corollary.testing import thresholds
from tests.dense import compositions
from tests.effort import scaled
from tests.engines.columnar.scattered import ScatteredEngine
from tests.engines.conformance import (
    LAWS,
    Law,
    as_example,
    materialize_agrees_with_the_oracle,
)
from tests.strategies import programs

EVERYTHING_IN_PARTS = {
    "parallel_pairs_minimum": 0,
    "parallel_work_minimum": 0,
    "parallel_atom_facts_minimum": 1,
    "scanned_rules_limit": 0,
}


@given(st.one_of(programs(aggregation=False), compositions()))
def test_oracle_threads(program: Program) -> None:
    with thresholds(**EVERYTHING_IN_PARTS):
        materialize_agrees_with_the_oracle(partial(ColumnarEngine, threads=2), as_example(program))


@pytest.mark.scaled
@pytest.mark.parametrize("threads", [1, 2, 17])
@pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])
def test_laws_with_tombstones(law: Law, threads: int) -> None:
    """Relations of several runs with tombstones, and more threads than facts."""

    @settings(max_examples=scaled(20))
    @given(law.examples)
    def check(case: Any) -> None:
        with thresholds(**EVERYTHING_IN_PARTS, tombstone_ratio=1):
            law.check(partial(ScatteredEngine, threads=threads), case)

    check()


@pytest.mark.parametrize("threads", [2, 17])
def test_many_tombstones(threads: int) -> None:
    """The same with data that cross the thresholds as they are."""
    ids = np.arange(200_000)
    gone = ids[::18]
    kb = KnowledgeBase("h(?x) :- p(?x, ?y), a(?y) .", threads=threads)
    for name, columns in (("p", 2), ("a", 1)):
        everything = pa.table({f"arg{at}": ids for at in range(columns)})
        deleted = pa.table({f"arg{at}": gone for at in range(columns)})
        with kb.transaction() as tx:
            tx.insert(everything, relation=name)
        with kb.transaction() as tx:
            tx.delete(deleted, relation=name)
    with kb.transaction() as tx:
        tx.add_rules("d(?x) :- p(?x, ?x), a(?x) . e(?x) :- p(?x, ?y), a(?y), p(?y, ?x) .")
    assert {kb.count(name) for name in "hpade"} == {len(ids) - len(gone)}


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
    assert workers.map(lambda at: current_workers().threads, [0, 1]) == [1, 1]
