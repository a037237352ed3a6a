"""Checksums of files and of small JSON documents.

A file's checksum is the CRC-32 of the CRC-32s of its blocks, so threads can share large files. It
detects failing disks and interrupted copies, not attacks.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from corollary.core.files import Identity, identity

_BLOCK = 1 << 24  # bytes that one thread reads at a time
_BUFFER = 1 << 20
_THREADS = 4
_RECENT = 2_000_000_000  # nanoseconds: a file this young may change without a new timestamp
_SEAL = '{"checksum": "%s", "content": '
_NAMED = re.compile(r"-([0-9a-f]{8})\.parquet$")

# Files that this process has verified, with their identity. A file with another size, time or inode
# is read again.
_verified: dict[tuple[str, int], tuple[Identity, str]] = {}


def checksum(path: str | Path, length: int | None = None) -> str:
    """The checksum of a file, or of its first `length` bytes.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"abc"), file.flush()
    ...     checksum(file.name), checksum(file.name, 1)
    ('2b033be3', '6270a9e0')
    """
    size = os.path.getsize(path) if length is None else length
    starts = range(0, size, _BLOCK)

    def block(start: int) -> int:
        return _crc(path, start, min(size, start + _BLOCK))

    if len(starts) < 2:
        sums = [block(start) for start in starts]
    else:
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            sums = list(pool.map(block, starts))
    return checksum_of(b"".join(value.to_bytes(4, "little") for value in sums))


def _crc(path: str | Path, start: int, end: int) -> int:
    value, buffer = 0, memoryview(bytearray(min(_BUFFER, end - start)))
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while start < end:
            count = file.readinto(buffer[: end - start])
            if not count:
                raise ValueError("the file is too short")
            value = zlib.crc32(buffer[:count], value)
            start += count
    return value


def checksum_of(data: bytes) -> str:
    """The checksum of bytes.

    >>> checksum_of(b"abc")
    '352441c2'
    """
    return f"{zlib.crc32(data):08x}"


def matches(path: str | Path, expected: str, length: int | None = None) -> bool:
    """Whether a file has a checksum; a process reads an unchanged file once."""
    status = os.stat(path)
    key = (os.path.abspath(path), -1 if length is None else length)
    current = identity(status)
    if _verified.get(key) == (current, expected):
        return True
    if length is not None and status.st_size < length:
        return False
    right = checksum(path, length) == expected
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    if right and time.time_ns() - changed > _RECENT:
        _verified[key] = current, expected
    return right


# -- checksums in names ----------------------------------------------------------------------------


def name_by_content(path: Path) -> Path:
    """Rename a Parquet file so that its name carries its checksum; returns the new path.

    A list of files, such as a Delta log, then also determines their content.
    """
    stem = path.name.removesuffix(".parquet")
    named = path.with_name(f"{stem}-{checksum(path)}.parquet")
    path.rename(named)
    return named


def has_its_content(path: Path) -> bool:
    """Whether a file has the checksum that its name carries; True if it carries none."""
    carried = _NAMED.search(path.name)
    return carried is None or matches(path, carried[1])


# -- documents -------------------------------------------------------------------------------------


def seal(document: Mapping[str, Any]) -> str:
    """A JSON text that carries the checksum of its content.

    >>> seal({"a": 1})
    '{"checksum": "fba18e97", "content": {"a": 1}}'
    """
    content = json.dumps(document)
    return f"{_SEAL % checksum_of(content.encode())}{content}}}"


def is_unsealed(data: bytes) -> bool:
    """Whether this is an unsealed document of an earlier release.

    >>> is_unsealed(b'{"format": 1}'), is_unsealed(seal({"format": 2}).encode())
    (True, False)
    """
    try:
        document = json.loads(data)
    except ValueError:
        return False
    return isinstance(document, dict) and "format" in document


def unseal(text: str | bytes) -> dict[str, Any]:
    """The content of a sealed text; `ValueError` if it was modified.

    >>> unseal(seal({"a": 1}))
    {'a': 1}
    """
    data = text.encode() if isinstance(text, str) else text
    start = len(_SEAL) + 6
    if data != (_SEAL % checksum_of(data[start:-1])).encode() + data[start:-1] + b"}":
        raise ValueError("it has another checksum")
    content: dict[str, Any] = json.loads(data[start:-1])
    return content
