"""A data source of numbered versions: `spark.read` and `spark.readStream` of what each changed.

This module implements Spark's interfaces; `knowledge_base.spark.changes` reads stores.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

Options = Mapping[str, str]
Read = Callable[[int, Options], Iterator[pa.RecordBatch]]


class VersionSource(DataSource):
    """The changes of versions, one task for each version."""

    def schema(self) -> str:
        """Return the schema of the rows."""
        return self.columns(self._plain())

    def reader(self, schema: Any) -> DataSourceReader:
        """Create a reader of the versions after one, up to another."""
        options = self._plain()
        since, until = self.between(options)
        return _Reader(range(since + 1, until + 1), options, self.read)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Create a reader of the versions after one, as they are committed."""
        options = self._plain()
        return _StreamReader(self.begin(options), self.latest, options, self.read)

    def _plain(self) -> dict[str, str]:
        """Convert option names to lower case; Spark's options are case-insensitive."""
        return {name.lower(): value for name, value in self.options.items()}

    @abstractmethod
    def columns(self, options: Options) -> str:
        """Return the schema of the rows."""

    @abstractmethod
    def between(self, options: Options) -> tuple[int, int]:
        """Return the version before the first one of a batch, and the last one."""

    @abstractmethod
    def begin(self, options: Options) -> int:
        """Return the version before the first one of a stream."""

    @staticmethod
    @abstractmethod
    def latest(options: Options) -> int:
        """Return the newest version."""

    @staticmethod
    @abstractmethod
    def read(version: int, options: Options) -> Iterator[pa.RecordBatch]:
        """Read the changes of a version."""


class _Reader(DataSourceReader):
    def __init__(self, versions: Sequence[int], options: Options, read: Read) -> None:
        self._versions, self._options, self._read = versions, options, read

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(version) for version in self._versions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition.value, self._options)


class _StreamReader(DataSourceStreamReader):
    """Offsets are versions."""

    def __init__(
        self, begin: int, latest: Callable[[Options], int], options: Options, read: Read
    ) -> None:
        self._begin, self._latest = begin, latest
        self._options, self._read = options, read

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's
        return {"version": self._begin}

    def latestOffset(self, *at: Any) -> dict[str, int]:  # noqa: N802 - Spark's
        return {"version": self._latest(self._options)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        versions = range(start["version"] + 1, end["version"] + 1)
        return [InputPartition(version) for version in versions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition.value, self._options)
