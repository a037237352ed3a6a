"""Where a store lies: a path of this machine, whatever characters it has."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from corollary.errors import InvalidInput

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")
_aliases: dict[Path, Path] = {}


def local_path(place: str | Path) -> Path:
    """The folder that a user has named: a path as it is, or what a `file://` address stands for.

    >>> local_path("a%20b#c"), local_path("s3:x"), local_path("file:///tmp/a%20b")
    (PosixPath('a%20b#c'), PosixPath('s3:x'), PosixPath('/tmp/a b'))
    """
    address = _ADDRESS.match(place) if isinstance(place, str) else None
    if address is None:
        return Path(place)
    if address[1].lower() != "file":
        raise InvalidInput(
            "E510",
            f"a store cannot be at {place}: {address[1]}:// is not supported",
            "name a folder of this machine",
            file=str(place),
        )
    return Path(unquote(urlsplit(str(place).replace("?", "%3F").replace("#", "%23")).path))


def table_uri(folder: Path) -> str:
    """The address by which deltalake opens the table in a folder."""
    folder = folder.resolve()
    # deltalake decodes percent signs twice when it reads a log, however they are quoted, and takes
    # a backslash for a slash. It sees a folder with another name, whose log is a link to the real
    # one; it opens no other file.
    return (_alias(folder) if {*"%\\"} & {*str(folder)} else folder).as_uri()


def _alias(folder: Path) -> Path:
    alias = _aliases.get(folder)
    if alias is None:
        alias = Path(tempfile.mkdtemp(prefix="corollary-"))
        (alias / "_delta_log").symlink_to(folder / "_delta_log")
        _aliases[folder] = alias
        atexit.register(shutil.rmtree, alias, ignore_errors=True)
    return alias
