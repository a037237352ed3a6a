"""The session that a build runs in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from corollary.engines.spark.daemon import settings
from corollary.engines.spark.session import STEADY, build_session
from corollary.engines.spark.stored import SparkSession

_SHARE = 4  # of the memory of this machine that Java may use, where it does the work itself
_LEAST, _MOST = 1 << 30, 16 << 30


def started(session: SparkSession | None, master: str | None) -> SparkSession:
    """The session that is given, or that runs, or a new one."""
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
    """Have Spark run plans as they are, see `STEADY`; afterwards the session is as it was."""
    before = {name: str(session.conf.get(name)) for name in STEADY}
    for name, value in STEADY.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def apart(session: SparkSession) -> SparkSession:
    """A session with the same settings whose views and functions meet nobody else's."""
    own: SparkSession = session.newSession()
    settings: Any = session.conf
    for name, value in settings.getAll.items():
        if name.startswith("spark.sql.") and own.conf.isModifiable(name):
            own.conf.set(name, value)
    own.conf.set("spark.sql.caseSensitive", "true")  # ?x and ?X are two variables
    return own


@contextmanager
def unnoticed() -> Iterator[None]:
    """Work in a session of one's own; afterwards the active session is the one that it was.

    A session becomes the active one when it makes a DataFrame, and sources that were registered
    with another one would not be found any more.
    """
    before = SparkSession.getActiveSession()
    try:
        yield
    finally:
        if before is not None and SparkSession.getActiveSession() is not before:
            before.createDataFrame([], "nothing int")


def cores_of(session: SparkSession) -> int:
    """How many tasks run at the same time."""
    context: Any = session.sparkContext
    return max(1, int(context.defaultParallelism))


def _memory() -> int:
    """Bytes for Java; the Python processes beside it need the rest."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # not every system tells
        return _LEAST
    return max(_LEAST, min(_MOST, total // _SHARE))
