"""Input files: their compression, how large they may be, and how long one item may be.

Input files may be hostile. The cost of reading must stay proportional to the size of a file, so
every reader meters the decompressed bytes and bounds the memory it uses.
"""

from __future__ import annotations

from pathlib import Path

from corollary.errors import InvalidInput

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
MAX_ITEM_BYTES = 16 << 20  # a term, a line or a row; the RDF parser buffers no more
# A compressed file may expand to this size unless a limit is set. The size of other files is
# visible before they are read, so they have no default limit.
DEFAULT_LIMIT = 64 << 30
# N-Triples compress 10 to 60 times. Gzip reaches 1,000 times and Zstandard far more, on runs of the
# same bytes only.
MAX_RATIO = 250
_RATIO_FROM = 256 << 20  # decompressed bytes from which the ratio counts


def is_compressed(path: Path) -> bool:
    """Test by its suffix whether a file is compressed.

    >>> is_compressed(Path("data.nt.gz")), is_compressed(Path("data.nt"))
    (True, False)
    """
    return path.suffix.lower() in COMPRESSIONS


def suffix_of(path: Path) -> str:
    """The suffix of the format: `.ttl` of `data.ttl.gz`."""
    name = Path(path.stem) if is_compressed(path) else path
    return name.suffix.lower()


def unreadable(path: Path, error: Exception) -> InvalidInput:
    """The error for a file that the system cannot read, or whose compressed data are damaged."""
    code = error.errno if isinstance(error, OSError) else None
    if is_compressed(path) and code is None:
        return InvalidInput("E306", f"{path} is damaged: it cannot be decompressed", file=str(path))
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InvalidInput("E301", f"cannot read {path}: {reason}", file=str(path))


class InputMeter:
    """Counts the bytes of one file, and rejects the file above a limit.

    `size` is the size of a compressed file on disk, None if the file is not compressed. An
    explicit limit replaces the default limit and the rule about the ratio.

    >>> meter = InputMeter("data.nt", limit=1000)
    >>> meter.add(1000)
    >>> meter.add(1)
    Traceback (most recent call last):
      ...
    corollary.errors.InvalidInput: data.nt: E326: data.nt holds more than 1,000 bytes, ...
    """

    def __init__(self, name: str, size: int | None = None, limit: int | None = None) -> None:
        self.name = name
        self.bytes = 0
        self._ratio_limit: int | None = None
        self._limit = limit
        if size is not None and limit is None:
            self._limit = DEFAULT_LIMIT
            self._ratio_limit = max(_RATIO_FROM, size * MAX_RATIO)

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        self.bytes += count
        if self._ratio_limit is not None and self.bytes > self._ratio_limit:
            raise InvalidInput(
                "E326",
                f"{self.name} decompresses to more than {MAX_RATIO} times its size",
                "if the file is what you expect, set the limit on input bytes explicitly",
                file=self.name,
            )
        if self._limit is not None and self.bytes > self._limit:
            raise InvalidInput(
                "E326",
                f"{self.name} holds more than {self._limit:,} bytes, the limit on input files",
                "raise the limit on input bytes if the file is what you expect",
                file=self.name,
            )


def too_long(
    what: str, file: str | None, line: int | None = None, limit: int = MAX_ITEM_BYTES
) -> InvalidInput:
    """The error for an item that exceeds `MAX_ITEM_BYTES`."""
    shown = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit:,} bytes"
    return InvalidInput("E324", f"{what} is longer than {shown}", file=file, line=line)
