"""Clones: copy a store into a new folder, also while others write to it.

Files of a store never change, and the log of the facts determines the version. So a clone copies
the log of the facts first, up to its version, and then what it refers to; anything that others
commit meanwhile is not referred to. The copy gets its name when it is complete.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from corollary.core.object_store import StorePath
from corollary.errors import InvalidInput, OperationFailed
from corollary.store.commits import Commit
from corollary.store.delta import LOG, Table, damage, translate_write_errors
from corollary.store.marker import mark, refuse_occupied
from corollary.store.places import Place, store_path
from corollary.store.store import Store


@dataclass(frozen=True)
class Cloned:
    """The version of a clone, and what was copied."""

    version: int
    files: int
    bytes: int


def clone(source: Place, target: Place, *, at_version: int | None = None) -> Cloned:
    """Copy a store with its versions up to the newest, or to another one.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = Store.create(folder / "one")
    >>> clone(folder / "one", folder / "two").version, Store.open(folder / "two").latest()
    (0, 0)
    """
    store, folder = Store.open(source), local_target(target)
    snapshot = store.snapshot(at_version)
    refuse_occupied(folder)
    part = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    with translate_write_errors(folder):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            part.mkdir()
            mark(part)
            copied = [
                _copy_table(table, part / table.name, snapshot.version)
                if table is store.facts
                else _copy_table(table, part / table.name, table.latest())
                for table in (store.facts, store.rules, store.changes, store.terms)
            ]
            version = _checked(part, snapshot.commit, store.oldest())
            if folder.exists():
                shutil.rmtree(folder)  # empty, or the remains of an interrupted build
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return Cloned(version, sum(n for n, _ in copied), sum(size for _, size in copied))


def local_target(target: Place) -> Path:
    """The folder of a clone, which must be on this machine."""
    folder = store_path(target)
    if not isinstance(folder, Path):
        raise InvalidInput(
            "E515",
            f"a store cannot be cloned to {folder}",
            "clone it into a folder of this machine, and copy that folder",
        )
    return folder


def _copy_table(table: Table, folder: Path, last: int) -> tuple[int, int]:
    """Copy the log of a table up to a version, and the files it mentions that still exist."""
    log = folder / LOG
    log.mkdir(parents=True)
    entries = [table.log_file(version) for version in range(last + 1)]
    files = size = 0
    for source, name in [
        *((entry, f"{LOG}/{entry.name}") for entry in entries),
        *_files(table, last),
    ]:
        copied = _copy(source, folder / name)
        files, size = files + (copied is not None), size + (copied or 0)
    return files, size


def _files(table: Table, last: int) -> Iterator[tuple[StorePath, str]]:
    for version in range(last + 1):
        for action in table.actions(version):
            if add := action.get("add"):
                name = unquote(add["path"])
                yield table.folder / name, name


def _copy(source: StorePath, target: Path) -> int | None:
    """Copy a file; None if it does not exist, as after a vacuum."""
    try:
        if isinstance(source, Path):
            shutil.copyfile(source, target)
        else:
            target.write_bytes(source.read_bytes())
    except FileNotFoundError:
        return None
    return target.stat().st_size


def _checked(folder: Path, commit: Commit, oldest: int) -> int:
    """Fail if a file of a readable version is missing; returns the version of the clone.

    If a later vacuum of the original removed versions, a commit of the clone says so, too.
    """
    store = Store(folder)
    if oldest > commit.oldest:
        message = f"cloned from version {commit.version}"
        store.writer(commit.version).commit(
            statistics=commit.statistics, kind="vacuum", message=message, oldest=oldest
        )
    for table, versions in (
        (store.facts, range(oldest, store.latest() + 1)),
        *((t, (t.latest(),)) for t in (store.terms, store.rules, store.changes)),
    ):
        for version in versions:
            for file in table.files(version):
                if not (table.folder / file.path).is_file():
                    error = damage(table.folder / file.path, "the file is missing")
                    raise OperationFailed(
                        "E516",
                        f"a file has vanished while the store was copied: {file.path}",
                        "repeat the clone; a vacuum may have removed it",
                        file=str(error.file),
                    )
    return store.latest()
