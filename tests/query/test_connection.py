"""Queries that interrupts do not stop: DuckDB looks for interrupts only while it executes."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from corollary import KnowledgeBase
from corollary.query import connection
from corollary.query.connection import Connection


class _Limit(BaseException):
    pass


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise in the main thread after some time, and again and again, as limits do."""

    def stop(number: int, frame: FrameType | None) -> None:
        if not over:
            raise _Limit

    over = False
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.01)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_query_that_does_not_stop_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "INTERRUPT_GRACE", 0.1)
    release, ended = threading.Event(), threading.Event()

    def stubborn() -> None:
        release.wait()
        ended.set()

    one = Connection(1, None)
    with pytest.raises(_Limit), limited(0.02):
        one.run(stubborn)
    assert not one.is_usable()
    assert not ended.is_set()
    one.abandon()
    del one
    gc.collect()  # does not wait for it
    release.set()
    assert ended.wait(10)


def test_a_query_that_stops_leaves_the_connection_usable() -> None:
    one = Connection(1, None)
    with pytest.raises(_Limit), limited(0.1):
        one.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
    assert one.is_usable()
    assert one.run(lambda: one.duckdb.execute("SELECT 7").fetchall()) == [(7,)]


@pytest.mark.long
def test_hundreds_of_subqueries_are_interrupted() -> None:
    """They are planned for minutes; the knowledge base answers other queries afterwards."""
    kb = KnowledgeBase("[<urn:a>, <urn:p>, <urn:b>] .")
    parts = " ".join(f"FILTER NOT EXISTS {{ ?x <urn:q{n}> ?y }}" for n in range(600))
    started = time.monotonic()
    with pytest.raises(_Limit), limited(3):
        kb.query(f"SELECT * {{ ?x <urn:p> ?y {parts} }}")
    assert time.monotonic() - started < 60
    assert kb.query("ASK { <urn:a> <urn:p> <urn:b> }") is True
