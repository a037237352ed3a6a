"""Splits of RDF sources, read by independent tasks.

N-Triples and N-Quads are cut anywhere: a line belongs to the split in which it begins. A document
in any other syntax, or compressed, is one split. Each part has its own term numbers. The caller
passes the *scope* of a document, a prefix for its blank nodes, so its splits agree on them.

A part records malformed statements instead of raising an error, by their lines in the split: line
numbers in the file are known only when all parts are.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from corollary.core.dictionary import Dictionary, Ids
from corollary.core.inputs import InputMeter, is_compressed, unreadable
from corollary.core.notices import Notices, gathering
from corollary.core.strings import string_bytes
from corollary.errors import CorollaryError
from corollary.lang.syntax import QUADS, TRIPLES_NAME, Constant
from corollary.rdf import files
from corollary.rdf.library import read_document
from corollary.rdf.triples import OnError, Reading, Skipped
from corollary.rdf.vocabulary import Vocabulary, vocabulary_of_columns

if TYPE_CHECKING:
    from corollary.rdf.lines import Source

LINES = ("n-triples", "n-quads")
_PIECE = 1 << 16


class Split(NamedTuple):
    """A part of a document: bytes `start` to `end` of lines, or the whole of it."""

    path: str
    format: str
    scope: str = ""  # the prefix of the labels of the document's blank nodes
    start: int = 0
    end: int | None = None


@dataclass(eq=False)
class Part:
    """The content of some splits: distinct terms, and facts as indices into them."""

    terms: pa.LargeStringArray
    facts: Mapping[str, Sequence[Ids]]  # columns by relation; RDF has triples and quads
    lines: list[int] = field(default_factory=list)  # line count of each split
    skipped: int = 0
    samples: list[tuple[int, Skipped]] = field(default_factory=list)  # with their split numbers
    prefixes: Mapping[str, str] = field(default_factory=dict)
    error: CorollaryError | None = None  # the first one
    failed: int | None = None  # the split with the error
    notices: Notices = field(default_factory=Notices)
    vocabulary: Vocabulary = field(default_factory=lambda: ({}, [], []))


def splits_of(file: files.File, scope: str, size: int, wanted: int) -> Iterator[Split]:
    """Cut a file into splits of about the requested size.

    >>> file = files.File(Path("data.nt"), "n-triples")
    >>> [(split.start, split.end) for split in splits_of(file, "d0.", 250, 100)]
    [(0, 84), (84, 168), (168, 250)]
    >>> list(splits_of(files.File(Path("data.nt.gz"), "n-triples"), "d0.", 250, 100))[0].end
    """
    path = str(file.path)
    if file.format not in LINES or is_compressed(file.path) or size <= wanted:
        yield Split(path, file.format, scope)
        return
    step = -(-size // -(-size // wanted))
    for start in range(0, size, step):
        yield Split(path, file.format, scope, start, min(size, start + step))


@dataclass(frozen=True)
class PartReader:
    """Reads parts; a value that can be shipped to tasks.

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
    graphs: bool = False  # whether statements of named graphs are kept apart
    graph: Constant | None = None  # that the other statements are put into

    def files(self, splits: Sequence[Split]) -> Part:
        """Read splits of local files."""
        reading = PartReading(self)
        for split in splits:
            with reading.of(split):
                _read_split(split, reading)
        return reading.part()

    def lines(self, runs: Iterable[tuple[Split, Iterable[pa.Array]]]) -> Part:
        """Read lines that the caller has read, as arrays of strings without line breaks."""
        reading = PartReading(self)
        for split, arrays in runs:
            with reading.of(split):
                meter = InputMeter(split.path, limit=self.limit)
                reading.read(files.Pieces(_with_line_breaks(arrays, meter)), split)
        return reading.part()

    def documents(self, documents: Iterable[tuple[Split, bytes]]) -> Part:
        """Read whole documents as bytes, compressed if their names say so."""
        reading = PartReading(self)
        for split, content in documents:
            with reading.of(split):
                stream = files.Opened(Path(split.path), pa.BufferReader(content), self.limit)
                _read_opened(stream, split, reading, split.path)
        return reading.part()

    def frame(self, table: pa.Table, name: str, scope: str = "") -> Part:
        """Read a table with the columns subject, predicate and object."""
        from corollary.rdf.frames import read_frame

        reading = PartReading(self)
        with reading.of(Split(name, "n-triples", scope)):
            read_frame(table, reading, name)
            reading.lines[-1] = len(table)
        return reading.part()


class PartReading(Reading):
    """A reading of several splits, each with its scope; records the first error."""

    def __init__(self, reader: PartReader) -> None:
        super().__init__(
            Dictionary(),
            on_error=reader.on_error,
            keep_labels=reader.keep_labels,
            limit_input_bytes=reader.limit,
            graphs=reader.graphs,
        )
        self._graph = reader.graph
        self.lines: list[int] = []
        self._places: list[tuple[int, Skipped]] = []
        self._notices = Notices()
        self._scope = ""
        self._error: CorollaryError | None = None
        self._failed: int | None = None

    @contextmanager
    def of(self, split: Split) -> Iterator[None]:
        """Read a split; keep its first error."""
        self._scope = split.scope
        number, before = len(self.lines), len(self._samples)
        self.lines.append(0)
        try:
            with gathering(self._notices):
                yield
        except CorollaryError as error:
            if self._error is None:
                self._error, self._failed = error, number
        finally:
            self._places += [(number, sample) for sample in self._samples[before:]]

    def own_scope(self) -> str:
        return self._scope

    def read(self, source: Source, split: Split) -> None:
        """Read lines and count them."""
        from corollary.rdf.lines import read_lines  # loads the compiler

        counter = _LineCounter(source)
        try:
            read_lines(counter, split.format, self, split.path)
        finally:
            self.lines[-1] = counter.lines

    def part(self) -> Part:
        """Return everything that was read."""
        triples = self.triples()
        quads = [*triples.quads.T]
        every = [np.concatenate(both) for both in zip(triples.columns, quads[:3], strict=True)]
        facts: dict[str, Sequence[Ids]] = {TRIPLES_NAME: triples.columns}
        if self._graph is not None:
            graph = np.full(len(triples), self.dictionary.encode([self._graph])[0], np.uint32)
            columns = (*triples.columns, graph)
            quads = [np.concatenate(both) for both in zip(columns, quads, strict=True)]
            facts = {}
        if len(quads[0]):
            facts[QUADS] = quads
        return Part(
            self.dictionary.texts_from(0),
            facts,
            self.lines,
            triples.skipped,
            self._places,
            triples.prefixes,
            self._error,
            self._failed,
            self._notices,
            vocabulary_of_columns(every, self.dictionary),
        )


class _LineCounter:
    """Counts the lines of a source as it is read."""

    def __init__(self, source: Source) -> None:
        self.lines = 0
        self._source = source
        self._ended = True

    def readinto(self, buffer: memoryview) -> int:
        size = self._source.readinto(buffer) or 0
        if size:
            self.lines += int(np.count_nonzero(np.frombuffer(buffer[:size], np.uint8) == 10))
            self._ended = buffer[size - 1] == 10
        elif not self._ended:  # the last line has no line break
            self.lines, self._ended = self.lines + 1, True
        return size


class _Range:
    """The lines of a file that begin in a range of bytes."""

    def __init__(self, path: str, start: int, end: int) -> None:
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by `close`
        first = _after_line_break(self._file, start - 1) if start else _after_mark(self._file)
        self._left = max(0, _after_line_break(self._file, end - 1) - first)
        self._file.seek(first)

    def readinto(self, buffer: memoryview) -> int:
        size = self._file.readinto(buffer[: self._left]) or 0
        self._left -= size
        return size

    def close(self) -> None:
        self._file.close()


def _with_line_breaks(arrays: Iterable[pa.Array], meter: InputMeter) -> Iterator[memoryview]:
    """Join arrays of strings, with a line break after each; the strings need not be UTF-8."""
    for array in arrays:
        offsets, data = string_bytes(array)
        count = len(array)
        out = np.full(len(data) + count, 10, np.uint8)
        mask = np.ones(len(out), np.bool_)
        mask[offsets[1:] + np.arange(count)] = False
        out[mask] = data
        meter.add(len(out))
        yield out.data


def _after_line_break(file: io.FileIO, start: int) -> int:
    """Return the position after the first line break from `start` on, or the end of the file."""
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
        raise unreadable(Path(split.path), error) from None
    with closing(source):
        reading.read(source, split)


def _read_opened(stream: files.Opened, split: Split, reading: PartReading, base: str) -> None:
    if split.format in LINES:
        reading.read(stream, split)
    else:
        read_document(stream, stream.syntax(split.format), reading, split.path, base=base)
