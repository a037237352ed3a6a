"""Structured Streaming over a folder: new files in numbered batches.

Spark records the files of a batch before it is processed. After a failure or a restart it repeats
the same batch, with the same number and the same files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from corollary.engines.spark.failures import java_messages, user_error
from corollary.engines.spark.local import address

_SCHEMA = "path string, modificationTime timestamp, length long, content binary"

Apply = Callable[[list[Path], int], None]  # files in the order of arrival, number of the batch


@dataclass(frozen=True)
class Trigger:
    """When a stream lists the folder, and how many files it processes at once."""

    seconds: float = 1.0
    once: bool = False  # stop when all files that exist now are processed
    most: int = 1000  # maximum files of a batch


class Watch:
    """A stream of the files of one folder."""

    def __init__(
        self,
        session: SparkSession,
        folder: Path,
        checkpoint: Path,
        apply: Apply,
        trigger: Trigger,
    ) -> None:
        """Start the stream."""
        self._apply = apply
        self._checkpoint = checkpoint
        self._error: BaseException | None = None
        frame = (
            session.readStream.format("binaryFile")
            .schema(_SCHEMA)
            .option("maxFilesPerTrigger", trigger.most)
            .load(address(folder))
            .select("path", "modificationTime")
        )
        writer = frame.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", address(checkpoint)
        )
        if trigger.once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{trigger.seconds:g} seconds")
        self.query: StreamingQuery = writer.start()

    @property
    def identity(self) -> str:
        """The id of this stream, unique and stable across restarts."""
        text = (self._checkpoint / "metadata").read_text("utf-8")
        return str(json.loads(text)["id"])

    def wait(self) -> None:
        """Block until all files are processed (`once`) or the query is stopped."""
        try:
            self.query.awaitTermination()
        except (PySparkException, Py4JError) as error:
            if self._error is not None:
                raise self._error from None
            raise user_error("the stream", java_messages(error)) from None

    def stop(self) -> None:
        """Stop the query; the batch in progress is repeated on the next start."""
        self.query.stop()

    def _batch(self, frame: DataFrame, number: int) -> None:
        rows = sorted(frame.collect(), key=lambda row: (row["modificationTime"], row["path"]))
        files = [Path(unquote(urlsplit(row["path"]).path)) for row in rows]
        try:
            self._apply(files, number)
        except BaseException as error:
            self._error = error
            raise
