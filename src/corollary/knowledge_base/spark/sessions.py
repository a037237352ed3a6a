"""The Spark session of an operation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from corollary.engines.spark.daemon import settings
from corollary.engines.spark.session import STEADY, build_session
from corollary.engines.spark.stored import SparkSession

_MEMORY_SHARE = 4  # Java may use 1 / 4 of this machine's memory if tasks run here
_MIN_MEMORY, _MAX_MEMORY = 1 << 30, 16 << 30


def get_session(session: SparkSession | None, master: str | None) -> SparkSession:
    """Return the given session, or the running one, or start a new one."""
    if session is not None:
        return session
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    chosen = master or "local[*]"
    config = settings("corollary.knowledge_base.spark.tasks")
    if chosen.startswith("local"):
        config["spark.driver.memory"] = f"{_memory() >> 20}m"
    return build_session(chosen, config=config)


@contextmanager
def steady(session: SparkSession) -> Iterator[None]:
    """Disable adaptive execution (see `STEADY`) within a block, and restore the settings."""
    before = {name: str(session.conf.get(name)) for name in STEADY}
    for name, value in STEADY.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def separate_session(session: SparkSession) -> SparkSession:
    """Create a session with the same settings and separate views and functions."""
    own: SparkSession = session.newSession()
    settings: Any = session.conf
    for name, value in settings.getAll.items():
        if name.startswith("spark.sql.") and own.conf.isModifiable(name):
            own.conf.set(name, value)
    own.conf.set("spark.sql.caseSensitive", "true")  # ?x and ?X are two variables
    return own


@contextmanager
def keep_active_session() -> Iterator[None]:
    """Use a separate session within a block, and restore the active session.

    Creating a DataFrame activates its session, and data sources registered with another session
    would no longer be found.
    """
    before = SparkSession.getActiveSession()
    try:
        yield
    finally:
        if before is not None and SparkSession.getActiveSession() is not before:
            before.createDataFrame([], "nothing int")


def cores_of(session: SparkSession) -> int:
    """Return the number of tasks that run in parallel."""
    context: Any = session.sparkContext
    return max(1, int(context.defaultParallelism))


def _memory() -> int:
    """Compute the bytes for Java; the Python processes need the rest of the memory."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # not available on every system
        return _MIN_MEMORY
    return max(_MIN_MEMORY, min(_MAX_MEMORY, total // _MEMORY_SHARE))
