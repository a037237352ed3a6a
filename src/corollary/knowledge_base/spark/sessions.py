"""The Spark session of an operation.

An operation never changes the settings of a session that it is given: it runs in a session of its
own beside it, which shares the same Spark. With Spark Connect, where sessions share no DataFrames,
it runs in the given session as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from corollary.engines.spark.daemon import settings
from corollary.engines.spark.failures import SPARK_ERRORS
from corollary.engines.spark.remote import is_remote
from corollary.engines.spark.session import STEADY, build_session
from corollary.engines.spark.stored import DataFrame, SparkSession
from corollary.errors import InvalidInput

_MEMORY_SHARE = 4  # Java may use 1 / 4 of this machine's memory if tasks run here
_MIN_MEMORY, _MAX_MEMORY = 1 << 30, 16 << 30


def get_session(
    session: SparkSession | None, master: str | None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the given session, or the running one, or start a new one with settings."""
    config = config or {}
    if session is None:
        active = SparkSession.getActiveSession()
        session = active if master is None else None
    if session is not None:
        _refuse_fixed(session, config)
        return session
    chosen = master or "local[*]"
    own = settings("corollary.knowledge_base.spark.tasks")
    if chosen.startswith("local"):
        own["spark.driver.memory"] = f"{_memory() >> 20}m"
    started = build_session(chosen, config=own | dict(config))
    _refuse_fixed(started, config)  # it may have been running
    return started


def operation_session(session: SparkSession, config: Mapping[str, str] | None) -> SparkSession:
    """Create a session for an operation, with its settings and without adaptive execution."""
    if is_remote(session):
        return session
    return separate_session(session, STEADY | _modifiable(session, config or {}))


def query_session(session: SparkSession, config: Mapping[str, str] | None) -> SparkSession:
    """Create a session for queries, in which ?x and ?X are two variables."""
    sensitive = {"spark.sql.caseSensitive": "true"}
    return separate_session(session, sensitive | _modifiable(session, config or {}))


def separate_session(session: SparkSession, changed: Mapping[str, str]) -> SparkSession:
    """Create a session with the same settings, except some, and separate views and functions."""
    own: SparkSession = session.newSession()
    settings: Any = session.conf
    for name, value in settings.getAll.items():
        if name.startswith("spark.sql.") and own.conf.isModifiable(name):
            own.conf.set(name, value)
    for name, value in changed.items():
        own.conf.set(name, value)
    return own


def in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    """Return the same rows as a DataFrame of another session, whose views and settings it uses."""
    if is_remote(session):
        return frame
    nothing = session.createDataFrame([], frame.schema)  # Spark's optimizer removes it
    return nothing.union(frame)


@contextmanager
def keep_active_session(default: SparkSession | None = None) -> Iterator[None]:
    """Use separate sessions within a block, and restore the active session, or make one active.

    Creating a DataFrame activates its session, and data sources registered with another session
    would no longer be found.
    """
    before = SparkSession.getActiveSession() or default
    try:
        yield
    finally:
        if (
            before is not None
            and not is_remote(before)
            and SparkSession.getActiveSession() is not before
        ):
            with suppress(*SPARK_ERRORS):  # Spark itself may have failed
                before.createDataFrame([], "nothing int")


def _modifiable(session: SparkSession, config: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in config.items() if session.conf.isModifiable(name)}


def _refuse_fixed(session: SparkSession, config: Mapping[str, str]) -> None:
    """Reject settings that have other values in a running Spark and cannot be changed there."""
    for name, value in config.items():
        can_change = session.conf.isModifiable(name) and not is_remote(session)
        now = session.conf.get(name, None)
        if not can_change and now != value:
            raise InvalidInput(
                "E550",
                f"{name} cannot become {value}: Spark runs already, with"
                f" {'no value for it' if now is None else now}",
                "set it where the session is started",
            )


def _memory() -> int:
    """Compute the bytes for Java; the Python processes need the rest of the memory."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # not available on every system
        return _MIN_MEMORY
    return max(_MIN_MEMORY, min(_MAX_MEMORY, total // _MEMORY_SHARE))
