"""Private folders for what DuckDB writes to disk when memory is short.

A folder is created by `mkdtemp`, so that nobody can guess its name and only its owner can read it,
and is removed with the database. A process that is killed cannot remove its folder; the next one
that needs such a folder does. Every owner holds a lock on a file in its folder, which the system
releases when the owner ends, so a folder without a lock holder is nobody's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

_PREFIX = "corollary-spill-"
_LOCK = "lock"
_GRACE = 60.0  # seconds that an owner has between creating its folder and locking it


class SpillFolder:
    """A folder that only this user can read; `remove` ends it."""

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        _remove_orphans(root)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        self._process = os.getpid()
        self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder, unless it belongs to the parent of this process."""
        if self._process == os.getpid():
            self._process = -1
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)


def _remove_orphans(root: Path) -> None:
    """Remove the folders of processes of this user that were killed."""
    with contextlib.suppress(OSError):
        for path in root.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_orphan(path):
                    shutil.rmtree(path, ignore_errors=True)


def _is_orphan(path: Path) -> bool:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return False
    if time.time() - found.st_mtime < _GRACE:
        return False
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # its owner is alive
    finally:
        os.close(lock)
    return True
