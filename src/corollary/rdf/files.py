"""Files of RDF: which there are, in which syntax, compressed or not.

The suffix tells the syntax. `.owl` is RDF/XML, unless the file does not begin with `<`; then it is
Turtle. Files in a folder, or that a pattern matches, are passed over if their suffix tells nothing.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from corollary.core.inputs import InputMeter
from corollary.errors import InvalidInput

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
}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
MARK = b"\xef\xbb\xbf"  # the byte-order mark that some editors write
_PEEKED = 256


class File(NamedTuple):
    """A file and its syntax."""

    path: Path
    format: str


class Opened:
    """A file that is read, decompressed, and how much of it has been."""

    def __init__(self, path: Path, raw: pa.NativeFile, limit: int | None = None) -> None:
        self.path = path
        self._raw = raw
        self._total = raw.size()
        kind = _COMPRESSED.get(path.suffix.lower())
        self._stream = pa.CompressedInputStream(raw, kind) if kind else raw
        self._damaged = kind is not None
        self._meter = InputMeter(str(path), self._total if kind else None, limit)
        if kind and not self._total:
            raise _unreadable(path, OSError(), damaged=True)
        self._head = b""
        self._head = self.read(_PEEKED).removeprefix(MARK)

    def position(self) -> tuple[int, int]:
        """How many bytes of the file were read, and how many there are."""
        return self._raw.tell(), self._total

    def read(self, size: int) -> bytes:
        """Some bytes, at most so many; none at the end."""
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        with self._reported():
            data: bytes = self._stream.read(size)
        self._meter.add(len(data))
        return data

    def readinto(self, buffer: memoryview) -> int:
        """Fill some of the buffer."""
        if self._head:
            head = self.read(len(buffer))
            buffer[: len(head)] = head
            return len(head)
        with self._reported():
            count = int(self._stream.readinto(buffer))
        self._meter.add(count)
        return count

    def begins_with(self, text: bytes) -> bool:
        """Whether this comes first, after blanks, in a file of which nothing was read yet."""
        return self._head.lstrip().startswith(text)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowInvalid) as error:
            raise _unreadable(self.path, error, damaged=self._damaged) from None


@contextmanager
def opened(path: Path, limit: int | None = None) -> Iterator[Opened]:
    """Open a file for reading, which may hold up to `limit` bytes after decompression."""
    try:
        if path.is_dir():  # as the system says it for a file
            raise IsADirectoryError(21, "Is a directory")
        raw = pa.OSFile(str(path))
    except OSError as error:
        raise _unreadable(path, error, damaged=False) from None
    with raw:
        yield Opened(path, raw, limit)


def find(source: str | Path, format_: str | None = None) -> list[File]:
    """The files that a path, a folder or a pattern stands for, in the order of their names."""
    path = Path(source)
    if path.is_dir():
        inside = (p for p in path.rglob("*") if not _hidden(p.relative_to(path)))
        return _known(sorted(inside), f"no RDF file in the folder {source}", str(source), format_)
    if not path.exists() and glob.has_magic(str(source)):
        matches = sorted(map(Path, glob.glob(str(source), recursive=True)))
        return _known(matches, f"no RDF file matches {source}", str(source), format_)
    known = format_ or format_of(path)
    if known is None:
        raise InvalidInput(
            "E321",
            f"the name of {path.name} does not tell its syntax",
            f"known suffixes are {', '.join(SUFFIXES)}, each also with .gz or .zst after it",
            file=str(source),
        )
    return [File(path, known)]


def format_of(path: Path) -> str | None:
    """The syntax that the name of a file tells.

    >>> format_of(Path("data.ttl.gz")), format_of(Path("notes.txt"))
    ('turtle', None)
    """
    return SUFFIXES.get(suffix_of(path))


def suffix_of(path: Path) -> str:
    """The suffix that tells the syntax, `.ttl` of `data.ttl.gz`."""
    name = Path(path.stem) if is_compressed(path) else path
    return name.suffix.lower()


def is_compressed(path: Path) -> bool:
    """Whether the name says that the file is compressed.

    >>> is_compressed(Path("data.nt.gz")), is_compressed(Path("data.nt"))
    (True, False)
    """
    return path.suffix.lower() in _COMPRESSED


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


def _unreadable(path: Path, error: Exception, *, damaged: bool) -> InvalidInput:
    if damaged:
        return InvalidInput("E306", f"{path} is damaged: it cannot be decompressed", file=str(path))
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InvalidInput("E301", f"cannot read {path}: {reason}", file=str(path))
