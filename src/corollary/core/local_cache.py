"""The local cache of remote stores: a folder for each store, bounded in size.

It holds copies of data files, the column cache and the chunks of Spark. Everything in it can be
fetched or computed again, and carries a checksum. The entries that were not used for the longest
time are removed first; never those that this process has used, or any process recently.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from corollary.errors import InvalidInput

FOLDER = "COROLLARY_CACHE_DIR"
SIZE = "COROLLARY_CACHE_SIZE"
_DEFAULT_SIZE = 16 << 30
_SHARE = 20  # the cache is measured again after 1 / 20 of its size was added
_IN_USE = 3600.0  # seconds for which other processes may still read an entry
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

_used: set[Path] = set()
_added: dict[Path, int] = {}  # bytes since the cache was measured


def root() -> Path:
    """The folder of the cache: `$COROLLARY_CACHE_DIR`, or the user's cache folder."""
    if chosen := os.environ.get(FOLDER):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "corollary"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "corollary"


def capacity() -> int:
    """The maximal size of the cache in bytes: `$COROLLARY_CACHE_SIZE`, such as 500M or 8G."""
    text = os.environ.get(SIZE)
    if not text:
        return _DEFAULT_SIZE
    parts = re.fullmatch(r"(\d+)([KMGT]?)B?", text.strip().upper())
    if parts is None:
        raise InvalidInput(
            "E513",
            f"{SIZE} is not a size: {text}",
            f"set it to a size such as 500M or 8G: {SIZE}=8G",
        )
    return int(parts[1]) * _UNITS[parts[2]]


def folder_name(address: str) -> str:
    """The name of the folder in the cache for the store at an address."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", address).strip("-")[-40:]
    return f"{name}-{hashlib.sha256(address.encode()).hexdigest()[:16]}"


def use(entry: Path) -> None:
    """Record the use of an entry, so that others are removed first."""
    if entry not in _used:
        _used.add(entry)
        os.utime(entry)


def added(entry: Path, folder: Path) -> None:
    """Record a new entry of a cache, and remove others if the cache has become too large."""
    _used.add(entry)
    limit = capacity()
    before = _added.get(folder)
    _added[folder] = (before or 0) + _size(entry)
    if before is None or _SHARE * _added[folder] > limit:
        _added[folder] = 0
        _evict(folder, limit)


def _evict(folder: Path, limit: int) -> None:
    sizes = {entry: _size(entry) for entry in _entries(folder)}
    total = sum(sizes.values())
    recent = time.time() - _IN_USE
    for last_use, entry in sorted((_last_use(entry), entry) for entry in sizes):
        if total <= limit or last_use > recent:
            return
        if entry not in _used:
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(True)
            total -= sizes[entry]


def _entries(folder: Path) -> Iterator[Path]:
    """What is removed as a whole: a copy of a file, a column cache, the chunks of a store."""
    for store in folder.iterdir() if folder.is_dir() else ():
        for part in store.iterdir() if store.is_dir() else ():
            if part.name == "copies":
                yield from (file for file in part.rglob("*") if file.is_file())
            elif part.name == "cache":
                yield from part.iterdir()
            else:
                yield part


def _size(entry: Path) -> int:
    try:
        if entry.is_dir():
            return sum(file.stat().st_blocks * 512 for file in entry.rglob("*") if file.is_file())
        return entry.stat().st_blocks * 512
    except OSError:  # removed by another process
        return 0


def _last_use(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0
