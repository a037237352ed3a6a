"""The owner of the frames that one operation persists in Spark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame

from corollary.engines.spark.failures import SPARK_ERRORS
from corollary.engines.spark.remote import is_remote, master_of


class PersistedFrames:
    """Persists and checkpoints frames, and releases all of them together.

    Invariant: every persisted frame of the engine and the pipeline has such an owner. Spark itself
    releases a frame only after both Java and Python have garbage-collected all references to it.
    """

    def __init__(self) -> None:
        self._releases: list[Callable[[], object]] = []

    def persist(self, frame: DataFrame) -> DataFrame:
        """Persist the rows of a frame when it is first computed."""
        persisted = frame.persist()
        self._releases.append(persisted.unpersist)
        return persisted

    def checkpoint(self, frame: DataFrame) -> DataFrame:
        """Checkpoint a frame when it is first computed.

        On one machine the checkpoint is local. On a cluster, where executors can be lost, it is
        reliable if a checkpoint directory is set; otherwise the frame is only persisted and keeps
        its lineage, so that lost partitions are recomputed.
        """
        session = frame.sparkSession
        master = master_of(session)
        if is_remote(session):
            return self.persist(frame)
        if master == "local" or master.startswith("local["):
            local = frame.localCheckpoint(eager=False)
            self._releases.append(lambda: _unpersist_checkpoint(local))
            return local
        if session.sparkContext.getCheckpointDir() is not None:
            return frame.checkpoint(eager=False)
        return self.persist(frame)

    def release(self) -> None:
        """Unpersist all frames; checkpointed frames cannot be read afterwards."""
        releases, self._releases = self._releases, []
        for release in releases:
            release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.release()
        else:
            with suppress(*SPARK_ERRORS):  # Spark itself may have failed
                self.release()


def _unpersist_checkpoint(frame: DataFrame) -> None:
    """Unpersist a local checkpoint; `DataFrame.unpersist` handles only cached plans."""
    plan: Any = frame._jdf
    plan.queryExecution().logical().rdd().unpersist(False)
