"""What a commit says about the whole table: a digest of its files and columns.

A Delta log is replayed entry by entry, and a reader cannot tell that one of them has lost its
content. So every commit carries a digest of all files that the table has after it, with their sizes
and statistics, and of its columns. Digests of files are added up, so that a commit computes its own
from that of the commit before. Names of files carry checksums (`core.checksum`): what a manifest
agrees with is the table, byte by byte.
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

# The column of each table by whose range files are chosen.
KEYS = {"facts": "version", "changes": "version", "terms": "id"}


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, with the range of the table's key column."""

    path: str  # relative to the folder of the table
    size: int
    rows: int
    stats: str  # JSON, as Delta writes it; of files that are being added
    low: int | None = None
    high: int | None = None

    def digest(self) -> int:
        """A number that stands for everything that the log says about the file."""
        return _file_digest(self.path, self.size, self.rows, self.low, self.high)


class Manifest(NamedTuple):
    """The files and the columns of a table after a commit, and our metadata of that commit."""

    files: int
    columns: str
    info: str  # a checksum

    @classmethod
    def of(cls, files: Iterable[DataFile], columns: Sequence[str], info: str) -> Manifest:
        """That of a table with these files."""
        total = sum(file.digest() for file in files) % _MODULUS
        return cls(total, _columns(columns), checksum_of(info.encode()))

    def after(
        self,
        added: Iterable[DataFile],
        removed: Iterable[DataFile],
        columns: Sequence[str] | None,
        info: str,
    ) -> Manifest:
        """That of the next commit; columns stay as they are if none are given."""
        total = self.files + sum(file.digest() for file in added)
        total -= sum(file.digest() for file in removed)
        named = self.columns if columns is None else _columns(columns)
        return Manifest(total % _MODULUS, named, checksum_of(info.encode()))

    def to_json(self) -> str:
        """As the metadata of a commit."""
        return json.dumps(
            {"files": f"{self.files:016x}", "columns": self.columns, "info": self.info}
        )

    @classmethod
    def parse(cls, text: str) -> Manifest:
        """From the metadata of a commit; `ValueError` or `KeyError` if it is damaged."""
        values: dict[str, Any] = json.loads(text)
        return cls(int(values["files"], 16), str(values["columns"]), str(values["info"]))


@lru_cache(1 << 14)  # the files of a table are mostly those of its version before
def _file_digest(*values: Any) -> int:
    return _digest(values)


@lru_cache(64)
def _columns_digest(names: tuple[str, ...]) -> str:
    return f"{_digest(names):016x}"


def _columns(names: Sequence[str]) -> str:
    return _columns_digest(tuple(sorted(names)))


def _digest(values: Sequence[Any]) -> int:
    text = json.dumps(values, ensure_ascii=False)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
