"""Find and open RDF files: their syntax and compression.

The suffix determines the syntax. An `.owl` file is RDF/XML if it begins with `<`, else Turtle. The
beginning of a document tells functional, Manchester and OWL/XML syntax, whatever its suffix.
Files with unknown suffixes in a folder, or among the matches of a pattern, are ignored.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from corollary.core.inputs import COMPRESSIONS, InputMeter, suffix_of, unreadable
from corollary.errors import InvalidInput
from corollary.rdf.owl_syntax import syntax_of

SUFFIXES = {
    ".nt": "n-triples",
    ".ntriples": "n-triples",
    ".nq": "n-quads",
    ".nquads": "n-quads",
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".trig": "trig",
    ".rdf": "rdf/xml",
    ".xml": "rdf/xml",
    ".owl": "rdf/xml",
    ".jsonld": "json-ld",
    ".ofn": "owl/functional",
    ".omn": "owl/manchester",
    ".owx": "owl/xml",
}
MARK = b"\xef\xbb\xbf"  # the byte-order mark that some editors write
_PEEKED = 4096
_BY_NAME = ("n-triples", "n-quads", "json-ld")  # syntaxes that only the name tells


class File(NamedTuple):
    """A file and its syntax."""

    path: Path
    format: str


class Opened:
    """An open file: decompressed bytes, and the position in the file."""

    def __init__(self, path: Path, raw: pa.NativeFile, limit: int | None = None) -> None:
        self.path = path
        self._raw = raw
        self._total = raw.size()
        kind = COMPRESSIONS.get(path.suffix.lower())
        self._stream = pa.CompressedInputStream(raw, kind) if kind else raw
        self._meter = InputMeter(str(path), self._total if kind else None, limit)
        if kind and not self._total:
            raise unreadable(path, OSError())
        self._head = b""
        self._head = self.read(_PEEKED).removeprefix(MARK)

    def position(self) -> tuple[int, int]:
        """Return the number of bytes read, and the size of the file."""
        return self._raw.tell(), self._total

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; none at the end."""
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        with self._reported():
            data: bytes = self._stream.read(size)
        self._meter.add(len(data))
        return data

    def readinto(self, buffer: memoryview) -> int:
        """Fill a part of the buffer."""
        if self._head:
            head = self.read(len(buffer))
            buffer[: len(head)] = head
            return len(head)
        with self._reported():
            count = int(self._stream.readinto(buffer))
        self._meter.add(count)
        return count

    def begins_with(self, text: bytes) -> bool:
        """Test whether an unread file begins with a text, ignoring blanks."""
        return self._head.lstrip().startswith(text)

    def syntax(self, named: str) -> str:
        """Determine the syntax; its suffix suggests `named`."""
        if named not in _BY_NAME and (found := self.owl_syntax()) is not None:
            return found
        is_owl = suffix_of(self.path) == ".owl"
        return "turtle" if is_owl and not self.begins_with(b"<") else named

    def owl_syntax(self) -> str | None:
        """Recognize functional, Manchester and OWL/XML syntax in an unread file."""
        return syntax_of(self._head)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowInvalid) as error:
            raise unreadable(self.path, error) from None


@contextmanager
def opened(path: Path, limit: int | None = None) -> Iterator[Opened]:
    """Open a file of at most `limit` bytes after decompression."""
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        raw = pa.OSFile(str(path))
    except OSError as error:
        raise unreadable(path, error) from None
    with raw:
        yield Opened(path, raw, limit)


def find(source: str | Path, format_: str | None = None) -> list[File]:
    """List the files of a path, folder or pattern, sorted by name."""
    path = Path(source)
    if path.is_dir():
        inside = (p for p in path.rglob("*") if not _hidden(p.relative_to(path)))
        return _known(sorted(inside), f"no RDF file in the folder {source}", str(source), format_)
    if not path.exists() and glob.has_magic(str(source)):
        matches = sorted(map(Path, glob.glob(str(source), recursive=True)))
        return _known(matches, f"no RDF file matches {source}", str(source), format_)
    known = format_ or format_of_named(path)
    if known is None:
        raise InvalidInput(
            "E321",
            f"the name of {path.name} does not tell its syntax",
            f"known suffixes are {', '.join(SUFFIXES)}, each also with .gz or .zst after it",
            file=str(source),
        )
    return [File(path, known)]


def format_of(path: Path) -> str | None:
    """Determine the syntax of a file from its suffix.

    >>> format_of(Path("data.ttl.gz")), format_of(Path("notes.txt"))
    ('turtle', None)
    """
    return SUFFIXES.get(suffix_of(path))


def format_of_named(path: Path) -> str | None:
    """Determine the syntax of a file that is named: by its suffix, or as an OWL document.

    >>> format_of_named(Path("data.ttl")), format_of_named(Path("missing.txt"))
    ('turtle', None)
    """
    known = format_of(path)
    if known is not None or not path.is_file():
        return known
    with opened(path) as file:
        return file.owl_syntax()


class Pieces:
    """A stream that concatenates pieces of bytes."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:
        """Fill a part of the buffer; returns 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _known(paths: Iterable[Path], nothing: str, source: str, format_: str | None) -> list[File]:
    files = []
    for path in paths:
        found = format_ or format_of(path)
        if found is not None and path.is_file():
            files.append(File(path, found))
    if not files:
        hint = f"known suffixes are {', '.join(SUFFIXES)}, each also with .gz or .zst after it"
        raise InvalidInput("E301", nothing, hint, file=source)
    return files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
