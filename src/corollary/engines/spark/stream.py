"""Structured Streaming: the files of a folder, or the rows of a frame, in numbered batches.

Spark records the content of a batch before it is processed. After a failure or a restart it repeats
the same batch, with the same number and the same content.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from corollary.engines.spark.failures import SPARK_ERRORS, java_messages, user_error
from corollary.engines.spark.local import address

_SCHEMA = "path string, modificationTime timestamp, length long, content binary"

# The changes of Delta's change data feed, of the data source `corollary`, and their usual names.
INSERTIONS = ("insert", "inserted", "update_postimage", "i", "+")
DELETIONS = ("delete", "deleted", "update_preimage", "d", "-")
UNKNOWN_CHANGE = "neither an insertion nor a deletion: "

Apply = Callable[[list[Path], int], None]  # files in the order of arrival, number of the batch


@dataclass(frozen=True)
class Trigger:
    """When a stream lists the folder, and how many files it processes at once."""

    seconds: float = 1.0
    once: bool = False  # stop when all files that exist now are processed
    most: int = 1000  # maximum files of a batch


class BatchStream:
    """A stream whose numbered batches are processed one after another."""

    def __init__(
        self,
        frame: DataFrame,
        checkpoint: str,
        process: Callable[[DataFrame, int], None],
        trigger: Trigger,
    ) -> None:
        """Start the stream of a streaming frame; `checkpoint` is a folder, or its address."""
        self._process = process
        self._session = frame.sparkSession
        self._checkpoint = checkpoint
        self._error: BaseException | None = None
        writer = frame.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", checkpoint
        )
        if trigger.once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{trigger.seconds:g} seconds")
        self.query: StreamingQuery = writer.start()

    @cached_property
    def identity(self) -> str:
        """The id of this stream, unique and stable across restarts."""
        lines = self._session.read.text(f"{self._checkpoint}/metadata").collect()
        return str(json.loads("".join(line[0] for line in lines))["id"])

    def wait(self) -> None:
        """Block until all existing data are processed (`once`) or the query is stopped."""
        try:
            self.query.awaitTermination()
        except SPARK_ERRORS as error:
            if self._error is not None:
                raise self._error from None
            raise user_error("the stream", java_messages(error)) from None

    def stop(self) -> None:
        """Stop the query; the batch in progress is repeated on the next start."""
        self.query.stop()

    def _batch(self, frame: DataFrame, number: int) -> None:
        try:
            self._process(frame, number)
        except BaseException as error:
            self._error = error
            raise


def watch_folder(
    session: SparkSession, folder: Path, checkpoint: str, apply: Apply, trigger: Trigger
) -> BatchStream:
    """Start a stream of the files of one folder."""

    def process(frame: DataFrame, number: int) -> None:
        rows = sorted(frame.collect(), key=lambda row: (row["modificationTime"], row["path"]))
        apply([Path(unquote(urlsplit(row["path"]).path)) for row in rows], number)

    frame = (
        session.readStream.format("binaryFile")
        .schema(_SCHEMA)
        .option("maxFilesPerTrigger", trigger.most)
        .load(address(folder))
        .select("path", "modificationTime")
    )
    return BatchStream(frame, checkpoint, process, trigger)


@dataclass(frozen=True)
class ChangeColumns:
    """The columns of a stream that say what happens to a fact, and in which order."""

    change: str | None  # every row is inserted if there is none
    order: str | None

    def split(self, frame: DataFrame, facts: list[str]) -> tuple[DataFrame, DataFrame | None]:
        """Split a batch into facts to insert and to delete; the last change of a fact wins.

        Without an order, an insertion wins. A change that is neither fails with `UNKNOWN_CHANGE`.
        """
        if self.change is None:
            return frame.select(*facts), None
        text = f.lower(f.col(self.change).cast("string"))
        unknown = f.raise_error(f.concat(f.lit(UNKNOWN_CHANGE), f.coalesce(text, f.lit("null"))))
        is_insertion = (
            f.when(text.isin(*INSERTIONS), f.lit(True))
            .when(text.isin(*DELETIONS), f.lit(False))
            .otherwise(unknown.cast("boolean"))
        )
        parts = [] if self.order is None else [f.col(self.order).alias("at")]
        last = f.max(f.struct(*parts, is_insertion.alias("inserts"))).alias("last")
        net = frame.groupBy(*facts).agg(last)
        return (
            net.where("last.inserts").select(*facts),
            net.where("NOT last.inserts").select(*facts),
        )
