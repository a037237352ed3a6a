"""Manifests: digests of the files and columns of a table after each commit.

A Delta log is replayed entry by entry, and a reader cannot detect that an entry lost its content.
So every commit carries its version and a digest of all files of the table, with their sizes and
statistics, and of its columns. The digest is a sum over files, so a commit derives it from the
previous one. File names carry checksums (`core.checksum`), so a manifest covers the table byte by
byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from corollary.core.checksum import checksum_of

_MODULUS = 1 << 64

# The column of each table whose range selects files.
KEYS = {"facts": "version", "changes": "version", "terms": "id"}


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, with the range of the table's key column."""

    path: str  # relative to the folder of the table
    size: int
    rows: int
    stats: str  # Delta's JSON; only for files being added
    low: int | None = None
    high: int | None = None

    def digest(self) -> int:
        """A digest of the file's description in the log."""
        return _digest(self.path, self.size, self.rows, self.low, self.high)


class Manifest(NamedTuple):
    """Digests of a table's files and columns after a commit, and of our metadata."""

    version: int  # of the table: an entry with the content of another one is damaged
    files: int
    columns: str
    info: str  # a checksum

    @classmethod
    def of(
        cls, version: int, files: Iterable[DataFile], columns: Sequence[str], info: str
    ) -> Manifest:
        """The manifest of a version of a table with these files."""
        total = sum(file.digest() for file in files) % _MODULUS
        return cls(version, total, _columns(columns), checksum_of(info.encode()))

    def after(
        self,
        added: Iterable[DataFile],
        removed: Iterable[DataFile],
        columns: Sequence[str] | None,
        info: str,
    ) -> Manifest:
        """The manifest after the next commit; `columns` None: unchanged."""
        total = self.files + sum(file.digest() for file in added)
        total -= sum(file.digest() for file in removed)
        named = self.columns if columns is None else _columns(columns)
        return Manifest(self.version + 1, total % _MODULUS, named, checksum_of(info.encode()))

    def to_json(self) -> str:
        """Serialize for the metadata of a commit."""
        return json.dumps(self._asdict() | {"files": f"{self.files:016x}"})

    @classmethod
    def parse(cls, text: str, version: int) -> Manifest:
        """Read from the metadata of a commit; `ValueError` or `KeyError` if damaged.

        `version` is that of the log entry, for manifests of earlier releases, which lack it.
        """
        values: dict[str, Any] = json.loads(text)
        version = int(values.get("version", version))
        return cls(version, int(values["files"], 16), str(values["columns"]), str(values["info"]))


def _columns(names: Sequence[str]) -> str:
    return f"{_digest(*sorted(names)):016x}"


@lru_cache(1 << 14)  # consecutive versions share most files
def _digest(*values: str | int | None) -> int:
    text = json.dumps(values, ensure_ascii=False)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
