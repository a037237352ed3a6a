"""Parts of RDF that are read apart from each other, by tasks that share nothing.

N-Triples and N-Quads are cut anywhere: a line belongs to the split in which it begins. Any other
syntax, and whatever is compressed, is one split. Each part has numbers of its own for its distinct
terms. Which blank nodes are the same is told by the *scope* of a document, which is given, so that
the splits of a document agree.

A statement that cannot be read does not end a part with an error: the part says where it is, in
lines of the split, because only who has all parts knows the number of the line in the file.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.inputs import InputMeter
from corollary.core.notices import Notices, gathering
from corollary.errors import CorollaryError, InvalidInput
from corollary.lang.syntax import TRIPLES_NAME
from corollary.rdf import files
from corollary.rdf.library import read_document
from corollary.rdf.triples import OnError, Reading, Skipped
from corollary.rdf.vocabulary import Vocabulary, vocabulary_of_columns

LINES = ("n-triples", "n-quads")
_PIECE = 1 << 16


class Split(NamedTuple):
    """A part of a document: bytes `start` to `end` of lines, or the whole of it."""

    path: str
    format: str
    scope: str = ""  # goes before the labels of the document's blank nodes
    start: int = 0
    end: int | None = None


@dataclass(eq=False)
class Part:
    """What some splits hold: distinct terms, and facts in the places of these among them."""

    terms: pa.LargeStringArray
    facts: Mapping[str, Sequence[Ids]]  # columns by relation; of RDF those of `TRIPLES_NAME`
    lines: list[int] = field(default_factory=list)  # of each split
    skipped: int = 0
    samples: list[tuple[int, Skipped]] = field(default_factory=list)  # with the number of the split
    prefixes: Mapping[str, str] = field(default_factory=dict)
    error: CorollaryError | None = None  # that ended the reading
    failed: int | None = None  # the split that it is in
    notices: Notices = field(default_factory=Notices)
    vocabulary: Vocabulary = field(default_factory=lambda: ({}, [], []))


def splits_of(file: files.File, scope: str, size: int, wanted: int) -> Iterator[Split]:
    """A file of so many bytes in splits of the wanted size.

    >>> file = files.File(Path("data.nt"), "n-triples")
    >>> [(split.start, split.end) for split in splits_of(file, "d0.", 250, 100)]
    [(0, 84), (84, 168), (168, 250)]
    >>> list(splits_of(files.File(Path("data.nt.gz"), "n-triples"), "d0.", 250, 100))[0].end
    """
    path = str(file.path)
    if file.format not in LINES or files.is_compressed(file.path) or size <= wanted:
        yield Split(path, file.format, scope)
        return
    step = -(-size // -(-size // wanted))
    for start in range(0, size, step):
        yield Split(path, file.format, scope, start, min(size, start + step))


@dataclass(frozen=True)
class PartReader:
    """Reads parts; a value that can be sent to where they are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.nt"
    ...     _ = path.write_text("<urn:a> <urn:p> _:b .\\n_:b <urn:p> <urn:a> .\\n")
    ...     cuts = splits_of(files.File(path, "n-triples"), "d0.", 44, 25)
    ...     part = PartReader().files(list(cuts))
    >>> columns = part.facts["triples"]
    >>> part.terms.to_pylist(), [column.tolist() for column in columns], part.lines
    (['_:d0.b', '<urn:a>', '<urn:p>'], [[1, 0], [2, 2], [0, 1]], [1, 1])
    """

    on_error: OnError = "fail"
    keep_labels: bool = False
    limit: int | None = None  # bytes of a file after decompression

    def files(self, splits: Sequence[Split]) -> Part:
        """The splits of files that this process can open."""
        reading = PartReading(self)
        for split in splits:
            with reading.of(split):
                _read_split(split, reading)
        return reading.part()

    def lines(self, runs: Iterable[tuple[Split, Iterable[pa.Array]]]) -> Part:
        """Lines of files that someone else reads, as arrays of strings without line breaks."""
        reading = PartReading(self)
        for split, arrays in runs:
            with reading.of(split):
                reading.read(_Joined(arrays, InputMeter(split.path, limit=self.limit)), split)
        return reading.part()

    def documents(self, documents: Iterable[tuple[Split, bytes]]) -> Part:
        """Whole documents as bytes, compressed if their names say so."""
        reading = PartReading(self)
        for split, content in documents:
            with reading.of(split):
                stream = files.Opened(Path(split.path), pa.BufferReader(content), self.limit)
                _read_opened(stream, split, reading, split.path)
        return reading.part()

    def frame(self, table: pa.Table, name: str, scope: str = "") -> Part:
        """Rows of a table with the columns subject, predicate and object."""
        from corollary.rdf.frames import read_frame

        reading = PartReading(self)
        with reading.of(Split(name, "n-triples", scope)):
            read_frame(table, reading, name)
            reading.lines[-1] = len(table)
        return reading.part()


class PartReading(Reading):
    """A reading with the scope of each split, that keeps its first error."""

    def __init__(self, reader: PartReader) -> None:
        self._notices = Notices()
        super().__init__(
            Dictionary(),
            on_error=reader.on_error,
            keep_labels=reader.keep_labels,
            limit=reader.limit,
        )
        self.lines: list[int] = []
        self.places: list[tuple[int, Skipped]] = []
        self._scope = ""
        self._error: CorollaryError | None = None
        self._failed: int | None = None

    def of(self, split: Split) -> PartReading:
        """Go on with a split."""
        self._scope = split.scope
        self.lines.append(0)
        self._before = len(self._samples)
        return self

    def __enter__(self) -> PartReading:
        self._gathering = gathering(self._notices)
        self._gathering.__enter__()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        self._gathering.__exit__(None, None, None)
        number = len(self.lines) - 1
        self.places += [(number, sample) for sample in self._samples[self._before :]]
        if isinstance(error, CorollaryError):
            if self._error is None:
                self._error, self._failed = error, number
            return True
        return False

    def own_scope(self) -> str:
        return self._scope

    def read(self, source: _Counted, split: Split) -> None:
        """Lines."""
        from corollary.rdf.lines import read_lines  # loads the compiler

        try:
            read_lines(source, split.format, self, split.path)
        finally:
            self.lines[-1] = source.lines

    def part(self) -> Part:
        found = self.triples()
        return Part(
            self.dictionary.texts_from(0),
            {TRIPLES_NAME: found.columns},
            self.lines,
            found.skipped,
            self.places,
            found.prefixes,
            self._error,
            self._failed,
            self._notices,
            vocabulary_of_columns(found.columns, self.dictionary),
        )


class _Counted(ABC):
    """Bytes to read, whose line breaks are counted."""

    lines = 0
    _ended = True

    def readinto(self, buffer: memoryview) -> int:
        size = self._fill(buffer)
        if size:
            self.lines += int(np.count_nonzero(np.frombuffer(buffer[:size], np.uint8) == 10))
            self._ended = buffer[size - 1] == 10
        elif not self._ended:  # the last line has no line break
            self.lines, self._ended = self.lines + 1, True
        return size

    @abstractmethod
    def _fill(self, buffer: memoryview) -> int:
        """Put bytes into the buffer; how many, 0 at the end."""


class _Range(_Counted):
    """The lines of a file that begin in a range of bytes."""

    def __init__(self, path: str, start: int, end: int) -> None:
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by `close`
        first = _after_line_break(self._file, start - 1) if start else _after_mark(self._file)
        self._left = max(0, _after_line_break(self._file, end - 1) - first)
        self._file.seek(first)

    def _fill(self, buffer: memoryview) -> int:
        size = self._file.readinto(buffer[: self._left]) or 0
        self._left -= size
        return size

    def close(self) -> None:
        self._file.close()


class _Whole(_Counted):
    """A stream, decompressed."""

    def __init__(self, stream: files.Opened) -> None:
        self._stream = stream

    def _fill(self, buffer: memoryview) -> int:
        return self._stream.readinto(buffer)


class _Joined(_Counted):
    """Arrays of lines, with the line breaks that they have lost."""

    def __init__(self, arrays: Iterable[pa.Array], meter: InputMeter) -> None:
        self._arrays = iter(arrays)
        self._meter = meter
        self._rest = memoryview(b"")

    def _fill(self, buffer: memoryview) -> int:
        while not self._rest:
            array = next(self._arrays, None)
            if array is None:
                return 0
            self._rest = memoryview(_with_line_breaks(array)).cast("B")
            self._meter.add(len(self._rest))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _with_line_breaks(array: pa.Array) -> Any:
    """The bytes of strings, each with a line break after it; they need not be UTF-8."""
    array = array.cast(pa.large_binary())
    count = len(array)
    if not count:
        return b""
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + count + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = (
        np.frombuffer(data_buffer, np.uint8)[first:last] if last > first else np.empty(0, np.uint8)
    )
    out = np.full(last - first + count, 10, np.uint8)
    mask = np.ones(len(out), np.bool_)
    mask[offsets[1:] - first + np.arange(count)] = False
    out[mask] = data
    return out


def _after_line_break(file: io.FileIO, start: int) -> int:
    """The place after the first line break from here on, or the end of the file."""
    file.seek(start)
    at = start
    while piece := file.read(_PIECE):
        found = piece.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(piece)
    return at


def _after_mark(file: io.FileIO) -> int:
    file.seek(0)
    return len(files.MARK) if file.read(len(files.MARK)) == files.MARK else 0


def _read_split(split: Split, reading: PartReading) -> None:
    if split.end is None:
        with files.opened(Path(split.path), reading.limit) as stream:
            _read_opened(stream, split, reading, Path(split.path).resolve().as_uri())
        return
    try:
        source = _Range(split.path, split.start, split.end)
        InputMeter(split.path, limit=reading.limit).add(Path(split.path).stat().st_size)
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInput("E301", f"cannot read {split.path}: {reason}", file=split.path) from None
    try:
        reading.read(source, split)
    finally:
        source.close()


def _read_opened(stream: files.Opened, split: Split, reading: PartReading, base: str) -> None:
    format_ = split.format
    if format_ in LINES:
        reading.read(_Whole(stream), split)
        return
    if files.suffix_of(Path(split.path)) == ".owl" and not stream.begins_with(b"<"):
        format_ = "turtle"
    read_document(stream, format_, reading, split.path, base=base)
