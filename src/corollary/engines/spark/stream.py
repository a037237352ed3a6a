"""Structured Streaming over a folder: files that come, in batches that have numbers.

Spark writes down which files a batch has before it is worked on. After a failure or a restart the
same batch comes again, under the same number, with the same files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from corollary.engines.spark.failures import said, told
from corollary.engines.spark.local import address

_SCHEMA = "path string, modificationTime timestamp, length long, content binary"

Apply = Callable[[list[Path], int], None]  # files in the order in which they came, the number


class Watch:
    """A folder that is watched."""

    def __init__(
        self,
        session: SparkSession,
        folder: Path,
        checkpoint: Path,
        apply: Apply,
        *,
        seconds: float,
        once: bool,
        most: int,
    ) -> None:
        """Begin. With `once`, end when all files that are there now are done."""
        self._apply = apply
        self._checkpoint = checkpoint
        self._error: BaseException | None = None
        frame = (
            session.readStream.format("binaryFile")
            .schema(_SCHEMA)
            .option("maxFilesPerTrigger", most)
            .load(address(folder))
            .select("path", "modificationTime")
        )
        writer = frame.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", address(checkpoint)
        )
        if once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{seconds:g} seconds")
        self.query: StreamingQuery = writer.start()

    @property
    def identity(self) -> str:
        """What tells this stream apart from all others, restarts included."""
        text = (self._checkpoint / "metadata").read_text("utf-8")
        return str(json.loads(text)["id"])

    def wait(self) -> None:
        """Go on until there is nothing to do, or someone stops the query."""
        try:
            self.query.awaitTermination()
        except (PySparkException, Py4JError) as error:
            if self._error is not None:
                raise self._error from None
            raise told("the stream", said(error)) from None

    def stop(self) -> None:
        """End the query; a batch that is being worked on comes again the next time."""
        self.query.stop()

    def _batch(self, frame: DataFrame, number: int) -> None:
        rows = sorted(frame.collect(), key=lambda row: (row["modificationTime"], row["path"]))
        files = [Path(unquote(urlsplit(row["path"]).path)) for row in rows]
        try:
            self._apply(files, number)
        except BaseException as error:
            self._error = error
            raise
