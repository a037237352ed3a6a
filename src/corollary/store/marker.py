"""The marker of a store: Corollary removes only folders that it has created.

The marker is the first file written into an empty folder. Without it, folders of the same names
may belong to somebody else.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

from corollary.core.checksum import seal, unseal
from corollary.core.object_store import StorePath, remove_tree
from corollary.errors import InvalidInput, OperationFailed
from corollary.store.delta import LOG, sync
from corollary.store.layout import CACHE, CHUNKS, FACTS, FORMAT, MARKER, TABLES
from corollary.store.places import name_within

_STORE_FOLDERS = (*TABLES, CACHE, CHUNKS)
# Logs, data files and folders of Spark, caches (finished or temporary), chunks.
_NAMES = re.compile(
    rf"{LOG}|\.?[0-9a-f]{{32}}(-[0-9a-f]{{8}})?(\.parquet|\.json|\.arrow|-[0-9]+)?|[0-9]+-[0-9a-f]{{8}}"
)
# The log of a newly created table: the first entry, and temporary files it is renamed from.
_CREATED = re.compile(r"0{20}\.json|.*\.tmp|.*#[0-9]+")


def mark(path: StorePath) -> None:
    """Write the marker unless it exists."""
    if not is_marked(path):
        file = path / MARKER
        file.write_text(seal({"format": FORMAT, "store": uuid.uuid4().hex}), encoding="utf-8")
        sync(file)
        sync(path)


def is_marked(path: StorePath) -> bool:
    """Whether a folder has our marker."""
    try:
        unseal((path / MARKER).read_bytes())
    except (OSError, ValueError):
        return False
    return True


def refuse_occupied(path: StorePath) -> None:
    """Fail unless a store can be created in a folder; removes nothing.

    The folder must be missing, empty, or contain only the remains of an interrupted build.
    """
    if path.is_file():
        raise _occupied(path, f"{path} is a file", "choose a folder")
    if not path.is_dir():
        return
    names = {entry.name for entry in path.iterdir()}
    if (path / FACTS / LOG).is_dir() and any((path / FACTS / LOG).glob("*.json")):
        hint = "use 'corollary update' to change it, or remove the folder to start over"
        raise _occupied(path, f"there is a store in {path} already", hint)
    if names == {MARKER} and not (path / MARKER).stat().st_size:
        return  # a build was interrupted while it wrote the marker
    reason = f"the folder {path} is not empty"
    if names - {*_STORE_FOLDERS, MARKER}:
        raise _occupied(path, reason, "choose an empty or new folder")
    if not is_marked(path):
        if names:
            raise _occupied(
                path,
                f"{reason}, and {MARKER} is missing or damaged:"
                f" {', '.join(sorted(names))} may not belong to Corollary",
                "choose another folder, or remove them if an interrupted build has left them",
            )
    elif (foreign := _foreign(path)) is not None:
        hint = "choose another folder, or move the file away"
        raise _occupied(path, f"{foreign} does not belong to Corollary", hint)
    refuse_lost_log(path)


def _occupied(path: StorePath, reason: str, hint: str) -> InvalidInput:
    return InvalidInput("E506", reason, hint, file=str(path))


def refuse_lost_log(path: StorePath) -> None:
    """Fail if the log of the facts is lost while other files show commits after the creation.

    A creation commits the facts last, so an interrupted one leaves at most empty tables.
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
            f" but {name_within(later, path)} exists",
            f"restore {FACTS}/{LOG} from a copy of the store, or build into another folder",
            file=str(path / FACTS / LOG),
        )


def _after_creation(path: StorePath) -> StorePath | None:
    """A file written after the creation of the store."""
    for name in _STORE_FOLDERS:
        data = (entry for entry in _entries(path / name) if entry.name != LOG)
        log = (e for e in _entries(path / name / LOG) if not _CREATED.fullmatch(e.name))
        for entry in (*data, *log):
            return entry
    return None


def _entries(folder: StorePath) -> list[StorePath]:
    return sorted(folder.iterdir(), key=str) if folder.is_dir() else []


def _foreign(path: StorePath) -> StorePath | None:
    """A file in the folders of an interrupted build that Corollary does not write."""
    return next(_foreign_in_folders(path), None)


def _foreign_in_folders(path: StorePath) -> Iterator[StorePath]:
    entries = (entry for name in _STORE_FOLDERS for entry in _entries(path / name))
    return (entry for entry in entries if not _NAMES.fullmatch(entry.name))


def foreign(path: StorePath) -> list[StorePath]:
    """The files and folders in a store that Corollary does not write."""
    known = {*_STORE_FOLDERS, MARKER}
    beside = [entry for entry in _entries(path) if entry.name not in known]
    return [*beside, *_foreign_in_folders(path)]


def remove_unfinished(path: StorePath) -> None:
    """Remove the remains of an interrupted build, except the marker."""
    if is_marked(path):
        for name in _STORE_FOLDERS:
            if (path / name).is_dir():
                remove_tree(path / name)


def remove_store(path: StorePath) -> None:
    """Remove a store that Corollary created.

    A process killed meanwhile leaves an empty store or an interrupted creation: commits are
    removed first, newest to oldest, then data files, and the first commit of the facts last.
    """
    if not is_marked(path):
        return
    for name in reversed(TABLES):
        for entry in reversed(_entries(path / name / LOG)):
            if not _CREATED.fullmatch(entry.name):
                entry.unlink()
    for name in _STORE_FOLDERS:
        for entry in _entries(path / name):
            if entry.is_dir() and entry.name != LOG:
                remove_tree(entry)
            elif not entry.is_dir():
                entry.unlink()
    remove_unfinished(path)
    (path / MARKER).unlink()
