"""Atomic replacement of files and folders, and the identity of an unchanged file."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from corollary.errors import OperationFailed

Identity = tuple[int, ...]

_AT_FDCWD, _RENAME_EXCHANGE, _RENAME_SWAP = -100, 2, 2  # of <fcntl.h> and <stdio.h>


class Status(NamedTuple):
    """The part of `os.stat_result` that stores use, for a file that is not local."""

    st_size: int
    st_mtime: float
    st_mtime_ns: int
    st_ctime_ns: int
    st_ino: int


def replace_file(
    path: Path, write: Callable[[Path], object], *, create_parents: bool = True
) -> None:
    """Replace a file atomically: write a temporary file beside it, then rename that.

    Readers see the old content or the new one, never a part. A file that is replaced keeps its
    permissions, and a link its target. Devices and pipes are written to, not replaced.
    """
    try:
        if create_parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode if path.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            write(path)
            return
        target = Path(os.path.realpath(path))
        # The suffix says whether to compress.
        temporary = target.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
        try:
            if mode is not None:
                temporary.touch(0o600)  # not readable by others meanwhile
            write(temporary)
            if mode is not None:
                temporary.chmod(stat.S_IMODE(mode))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, FileExistsError | NotADirectoryError):
            reason = f"{path.parent} is not a folder"
        raise OperationFailed("E401", f"cannot write {path}: {reason}", file=str(path)) from None


def exchange_folders(one: Path, other: Path) -> None:
    """Let two folders of one file system change places.

    Linux and macOS do it atomically, unless the file system cannot. Otherwise three renames do it:
    a process that is killed between them leaves a folder under its third, hidden name.
    """
    if not _exchange_atomically(os.fsencode(one), os.fsencode(other)):
        aside = one.with_name(f".{one.name.lstrip('.')}.{os.getpid()}.aside")
        os.rename(other, aside)
        try:
            os.rename(one, other)
        except BaseException:
            os.rename(aside, other)
            raise
        os.rename(aside, one)


def _exchange_atomically(one: bytes, other: bytes) -> bool:
    if os.name != "posix":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        status = libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE)
    elif hasattr(libc, "renamex_np"):
        status = libc.renamex_np(one, other, _RENAME_SWAP)
    else:
        return False
    if not status:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), os.fsdecode(one))


def remove(path: Path) -> None:
    """Remove a file or folder as far as possible; it may be missing."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def identity(status: os.stat_result | Status) -> Identity:
    """Size, timestamps and inode: a file that keeps them has not been written to."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
