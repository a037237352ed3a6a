"""The marker of a store: what Corollary has made, and only that, it may remove.

It is written into an empty folder before anything else. A folder without one may hold folders of
the same names that belong to somebody else.
"""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path

from corollary.core.checksum import seal, unseal
from corollary.errors import InvalidInput, OperationFailed
from corollary.store.delta import LOG, sync
from corollary.store.layout import CACHE, CHUNKS, FACTS, FORMAT, MARKER, TABLES

_OURS = (*TABLES, CACHE, CHUNKS)
# Logs, data files and folders of Spark, caches whole and unfinished, chunks.
_NAMES = re.compile(
    rf"{LOG}|\.?[0-9a-f]{{32}}(-[0-9a-f]{{8}})?(\.parquet|\.json|\.arrow|-[0-9]+)?|[0-9]+-[0-9a-f]{{8}}"
)
# In the log of a table that has just been created: the first entry, and files it is renamed from.
_CREATED = re.compile(r"0{20}\.json|.*\.tmp|.*#[0-9]+")


def mark(path: Path) -> None:
    """Write the marker, unless there is one."""
    if not is_marked(path):
        file = path / MARKER
        file.write_text(seal({"format": FORMAT, "store": uuid.uuid4().hex}), encoding="utf-8")
        sync(file)
        sync(path)


def is_marked(path: Path) -> bool:
    """Whether a folder has our marker."""
    try:
        unseal((path / MARKER).read_bytes())
    except (OSError, ValueError):
        return False
    return True


def refuse_occupied(path: Path) -> None:
    """Fail unless a store can be made in a folder; nothing is removed.

    The folder is missing, or empty, or holds what an interrupted build of ours has left.
    """
    if path.is_file():
        raise InvalidInput("E506", f"{path} is a file", "name a folder", file=str(path))
    if not path.is_dir():
        return
    names = {entry.name for entry in path.iterdir()}
    if (path / FACTS / LOG).is_dir() and any((path / FACTS / LOG).glob("*.json")):
        raise InvalidInput(
            "E506",
            f"there is a store in {path} already",
            "'corollary update' changes it; remove the folder to begin anew",
            file=str(path),
        )
    if names == {MARKER} and not (path / MARKER).stat().st_size:
        return  # a build was interrupted as it wrote the marker
    if names - {*_OURS, MARKER}:
        raise InvalidInput(
            "E506",
            f"the folder {path} is not empty",
            "name a folder that is empty or not there",
            file=str(path),
        )
    foreign = _foreign(path) if is_marked(path) else None
    if foreign is not None:
        raise InvalidInput(
            "E506",
            f"{foreign} is not Corollary's",
            "name another folder, or move the file away",
            file=str(path),
        )
    if names and not is_marked(path):
        raise InvalidInput(
            "E506",
            f"the folder {path} is not empty, and {MARKER} is not there or damaged:"
            f" {', '.join(sorted(names))} may not be Corollary's",
            "name another folder; if an interrupted build has left them, remove them yourself",
            file=str(path),
        )
    refuse_lost_log(path)


def refuse_lost_log(path: Path) -> None:
    """Fail if the log of the facts is lost: other files show that there was more than a creation.

    A creation commits the facts last, so that an interrupted one leaves empty tables at most.
    """
    if any((path / FACTS / LOG).glob("*.json")):
        return
    others = (path / name / LOG for name in TABLES if name != FACTS)
    if not is_marked(path) and not all(log.is_dir() for log in others):
        return
    later = _after_creation(path)
    if later is not None:
        raise OperationFailed(
            "E503",
            f"the store is damaged: {FACTS}/{LOG} has no log entry,"
            f" but there is {later.relative_to(path)}",
            f"restore {FACTS}/{LOG} from a copy of the store, or build into another folder",
            file=str(path / FACTS / LOG),
        )


def _after_creation(path: Path) -> Path | None:
    """A file that is written into a store after its creation."""
    for name in _OURS:
        for entry in _entries(path / name):
            if entry.name != LOG:
                return entry
        for entry in _entries(path / name / LOG):
            if not _CREATED.fullmatch(entry.name):
                return entry
    return None


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _foreign(path: Path) -> Path | None:
    """Something in the folders of an interrupted build that no build of ours writes."""
    for name in _OURS:
        for entry in _entries(path / name):
            if not _NAMES.fullmatch(entry.name):
                return entry
    return None


def remove_unfinished(path: Path) -> None:
    """Remove what an interrupted build has left; the marker stays to the end."""
    if is_marked(path):
        for name in _OURS:
            if (path / name).is_dir():
                shutil.rmtree(path / name)


def remove_store(path: Path) -> None:
    """Remove a store of ours, and its folder unless there is something else in it.

    What is left if the process is killed meanwhile is an empty store or an interrupted creation:
    commits go first, the newest first, then data files, and the first commit of the facts last.
    """
    if not is_marked(path):
        return
    for name in reversed(TABLES):
        for entry in reversed(_entries(path / name / LOG)):
            if not _CREATED.fullmatch(entry.name):
                entry.unlink()
    for name in _OURS:
        for entry in _entries(path / name):
            if entry.is_dir() and entry.name != LOG:
                shutil.rmtree(entry)
            elif not entry.is_dir():
                entry.unlink()
    remove_unfinished(path)
    (path / MARKER).unlink()
