"""The location of a store: a local path, with arbitrary characters, or an address.

Everything that knows whether a store is local or remote is here and in `core.object_store`.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from corollary.core.object_store import ObjectPath, StorePath, object_path
from corollary.errors import require_type

Place = str | StorePath  # what users name a store by

_FILE = re.compile(r"file://", re.IGNORECASE)
_aliases: dict[Path, Path] = {}


def store_path(place: Place, options: Mapping[str, str] | None = None) -> StorePath:
    """Resolve the place that a user names: a plain path, a `file://` URI or an address.

    `options` are those of the object store; local stores need none.

    >>> store_path("a%20b#c"), store_path("s3:x"), store_path("file:///tmp/a%20b")
    (PosixPath('a%20b#c'), PosixPath('s3:x'), PosixPath('/tmp/a b'))
    """
    hint = "name a folder, or an address such as s3://bucket/univ.store"
    require_type(place, (str, Path, ObjectPath), "the place of a store", hint)
    if not isinstance(place, str):
        return place
    if _FILE.match(place):
        return Path(unquote(urlsplit(place.replace("?", "%3F").replace("#", "%23")).path))
    return object_path(place, options) or Path(place)


def local_folder(path: StorePath) -> Path:
    """The folder for what is kept on this machine: the store itself, or its local cache."""
    return path.store.home if isinstance(path, ObjectPath) else path


def storage_options(path: StorePath) -> dict[str, str] | None:
    """The options by which deltalake opens the tables of a store."""
    return dict(path.store.options) if isinstance(path, ObjectPath) else None


def name_within(path: StorePath, folder: StorePath) -> str:
    """The path relative to a folder above."""
    return PurePath(str(path)).relative_to(str(folder)).as_posix()


def scan(folder: StorePath) -> Iterable[os.DirEntry[str] | ObjectPath]:
    """The entries of a folder, with as few system calls or requests as possible."""
    if isinstance(folder, ObjectPath):
        return folder.iterdir()
    with os.scandir(folder) as entries:
        return list(entries)


def copy_files(source: StorePath, target: Path, without: str) -> None:
    """Copy the files of a folder whose names do not contain a text into a local folder."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if without not in path.name and path.is_file():
            (target / path.name).write_bytes(path.read_bytes())


def table_uri(folder: StorePath) -> str:
    """The URI by which deltalake opens the table in a folder."""
    if isinstance(folder, ObjectPath):
        return str(folder)
    folder = folder.resolve()
    # deltalake decodes percent signs twice when it reads a log, however they are quoted, and treats
    # a backslash as a slash. So it gets an alias folder whose log is a link to the real one; it
    # opens no other file.
    return (_alias(folder) if {*"%\\"} & {*str(folder)} else folder).as_uri()


def _alias(folder: Path) -> Path:
    alias = _aliases.get(folder)
    if alias is None:
        alias = Path(tempfile.mkdtemp(prefix="corollary-"))
        (alias / "_delta_log").symlink_to(folder / "_delta_log")
        _aliases[folder] = alias
        atexit.register(shutil.rmtree, alias, ignore_errors=True)
    return alias
