"""Private spill folders for DuckDB.

`mkdtemp` creates a folder with an unpredictable name that only its owner can read; it is removed
with the database. A killed process leaves its folder behind; the next process that creates one
removes it. Every owner locks a file in its folder, and the system releases the lock when the owner
ends, so a folder without a lock holder is an orphan.
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
    """A folder that only this user can read; `remove` deletes it."""

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
    """Remove the spill folders that killed processes of this user left behind."""
    with contextlib.suppress(OSError):
        for path in root.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_orphan(path):
                    shutil.rmtree(path, ignore_errors=True)


def _is_orphan(path: Path) -> bool:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    if time.time() - status.st_mtime < _GRACE:
        return False
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # its owner is alive
    finally:
        os.close(lock)
    return True
