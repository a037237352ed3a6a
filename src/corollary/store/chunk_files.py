"""The files that updates on Spark begin with (`engines.spark.chunk_cache`), seen without Spark.

A set of chunks has the id of a commit: `ID.json` lists all files that it is made of, with their
checksums; `ID.arrow` and the folders `ID-0`, `ID-1`, … hold facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corollary.core.checksum import is_unsealed, matches, unseal

_OURS = re.compile(r"[0-9a-f]{32}(\.json|\.arrow|-[0-9]+)")


def entries(folder: Path) -> list[Path]:
    """The files and folders of all sets of chunks."""
    try:
        return [path for path in folder.iterdir() if _OURS.fullmatch(path.name)]
    except OSError:
        return []


def problems(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that are damaged, and why; a set with such a file is never used."""
    for path in entries(folder):
        if path.suffix != ".json":
            continue
        try:
            data = path.read_bytes()
            if is_unsealed(data):
                continue  # of an earlier release, and not used
            described = unseal(data)
            files: dict[str, Any] = described["files"]
        except (OSError, ValueError, KeyError) as error:
            yield path, str(error)
            continue
        for name, expected in files.items():
            try:
                if not matches(folder / name, expected):
                    yield folder / name, "it has another checksum"
            except OSError as error:
                yield folder / name, error.strerror or str(error)


def unneeded(folder: Path, commit: str, before: float) -> list[Path]:
    """What belongs to another commit and has not been touched since a time."""
    if (folder / f"{commit}.json").is_file():
        return []
    return [path for path in entries(folder) if is_older(path, before)]


def is_older(path: Path, moment: float) -> bool:
    """Whether a file was last changed before a moment; False if it is gone."""
    try:
        return path.stat().st_mtime < moment
    except OSError:
        return False
