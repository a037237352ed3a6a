"""The data source behind `spark.read.format("rdf")` and `frame.write.format("rdf")`.

This module implements Spark's interfaces; `knowledge_base.spark.source` reads and writes RDF.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

COLUMNS = ("subject", "predicate", "object")
_SCHEMA = ", ".join(f"{name} string" for name in COLUMNS)
_ROWS = 1 << 20  # rows of a file, about 150 MB

Options = Mapping[str, str]
Read = Callable[[Any, Options], Iterator[pa.RecordBatch]]
Write = Callable[[Path, pa.Table], None]


class TripleSource(DataSource):
    """Triples as rows of subject, predicate and object in the syntax of N-Triples."""

    def schema(self) -> str:
        """Return the schema of the rows."""
        return _SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        """Create a reader of files."""
        return _Reader(self.splits(self.options), _plain(self.options), self.read)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        """Create a writer of a folder of files."""
        names = [field.name for field in schema.fields]
        return _Writer(
            self.folder(self.options, names), overwrite, self.suffix(self.options), self.write
        )

    @abstractmethod
    def splits(self, options: Options) -> Sequence[Sequence[Any]]:
        """Assign splits to tasks."""

    @abstractmethod
    def folder(self, options: Options, names: list[str]) -> Path:
        """Return the folder for a frame with these columns."""

    @abstractmethod
    def suffix(self, options: Options) -> str:
        """Return the suffix of file names."""

    @staticmethod
    @abstractmethod
    def read(splits: Any, options: Options) -> Iterator[pa.RecordBatch]:
        """Read the rows of splits."""

    @staticmethod
    @abstractmethod
    def write(path: Path, table: pa.Table) -> None:
        """Write rows as one file."""


def _plain(options: Options) -> Options:
    """Convert option names to lower case; Spark's options are case-insensitive."""
    return {name.lower(): value for name, value in options.items()}


class _Reader(DataSourceReader):
    def __init__(self, groups: Sequence[Any], options: Options, read: Read) -> None:
        self._groups, self._options, self._read = groups, options, read

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(group) for group in self._groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition.value, self._options)


@dataclass
class _Done(WriterCommitMessage):
    """The hidden files that a task has written."""

    files: list[str]


class _Writer(DataSourceArrowWriter):
    """Writes hidden files in tasks, and renames them when all tasks have finished."""

    def __init__(self, folder: Path, overwrite: bool, suffix: str, write: Write) -> None:
        self._folder, self._overwrite, self._suffix = folder, overwrite, suffix
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Done:
        self._folder.mkdir(parents=True, exist_ok=True)
        names: list[str] = []
        batches: list[pa.RecordBatch] = []
        for batch in iterator:
            batches.append(batch)
            if sum(map(len, batches)) >= _ROWS:
                names.append(self._file(batches))
                batches = []
        if batches:
            names.append(self._file(batches))
        return _Done(names)

    def _file(self, batches: list[pa.RecordBatch]) -> str:
        name = f"part-{uuid.uuid4().hex}{self._suffix}"
        self._write(self._folder / f".{name}", pa.Table.from_batches(batches).select(COLUMNS))
        return name

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        names = [name for done in messages if isinstance(done, _Done) for name in done.files]
        old = list(self._folder.glob("part-*")) if self._overwrite else []
        for name in names:
            os.replace(self._folder / f".{name}", self._folder / name)
        for file in old:
            file.unlink()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        for done in messages:
            for name in done.files if isinstance(done, _Done) else []:
                with contextlib.suppress(OSError):
                    (self._folder / f".{name}").unlink()
