"""Label the jobs of an operation in Spark's UI: a group, and a description of each step."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from corollary.core.position import current_stratum
from corollary.engines.spark.remote import is_remote

_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


class JobLabels:
    """Labels the jobs that the current thread starts while `grouped` is active."""

    def __init__(self, title: str = "") -> None:
        """`title` names the operation, such as `build univ.store`."""
        self._title = title
        self._stage = ""
        self._context: Any = None
        self._description = ""

    @contextmanager
    def grouped(self, session: SparkSession) -> Iterator[None]:
        """Label the jobs of a block, and restore the thread's own labels.

        Jobs stay in the group of the caller, who may want to cancel them, if there is one. Spark
        Connect has no descriptions.
        """
        if is_remote(session):
            yield
            return
        context: Any = session.sparkContext
        before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
        if before[_GROUP] is None:
            context.setLocalProperty(_GROUP, f"corollary-{uuid.uuid4().hex[:8]}")
        self._context = context
        self.describe()
        try:
            yield
        finally:
            self._context, self._description = None, ""
            for name, value in before.items():
                context.setLocalProperty(name, value)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Label the jobs of a stage."""
        self._stage = name
        self.describe()
        try:
            yield
        finally:
            self._stage = ""
            self.describe()

    def describe(self, step: str = "") -> None:
        """Label the next jobs by the operation, stage, stratum and a step such as `round 2`."""
        if self._context is None:
            return
        steps = ", ".join(filter(None, (self._stage, current_stratum(), step)))
        text = f"corollary {self._title}: {steps}" if steps else f"corollary {self._title}"
        if text != self._description:
            self._description = text
            self._context.setLocalProperty(_DESCRIPTION, text)
