"""The cached chunks of Spark updates (`engines.spark.chunk_cache`), handled without Spark.

A set of chunks carries the id of a commit: `ID.json` lists its files with their checksums;
`ID.arrow` and the folders `ID-0`, `ID-1`, … hold facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corollary.core.checksum import is_unsealed, matches, unseal
from corollary.core.object_store import StorePath

_CHUNK_NAME = re.compile(r"[0-9a-f]{32}(\.json|\.arrow|-[0-9]+)")


def entries(folder: Path, names: re.Pattern[str] = _CHUNK_NAME) -> list[Path]:
    """The files and folders with such names, by default those of all sets of chunks."""
    try:
        return [path for path in folder.iterdir() if names.fullmatch(path.name)]
    except OSError:
        return []


def read_directory(path: Path) -> dict[str, Any] | None:
    """A sealed list of files; None if an earlier release wrote it, whose files are not used."""
    data = path.read_bytes()
    return None if is_unsealed(data) else unseal(data)


def problems(folder: Path) -> Iterator[tuple[Path, str]]:
    """Damaged files and the reasons; a damaged set is never used."""
    for path in entries(folder):
        if path.suffix != ".json":
            continue
        try:
            directory = read_directory(path)
            files: dict[str, Any] = directory["files"] if directory is not None else {}
        except (OSError, ValueError, KeyError) as error:
            yield path, str(error)
            continue
        for name, expected in files.items():
            try:
                if not matches(folder / name, expected):
                    yield folder / name, "checksum mismatch"
            except OSError as error:
                yield folder / name, error.strerror or str(error)


def unneeded(folder: Path, commit: str, before: float) -> list[Path]:
    """Files of other commits that were not modified since `before`."""
    if (folder / f"{commit}.json").is_file():
        return []
    return [path for path in entries(folder) if is_older(path, before)]


def is_older(path: StorePath, moment: float) -> bool:
    """Whether a file was last modified before a moment; False if it is missing."""
    try:
        return path.stat().st_mtime < moment
    except OSError:
        return False
