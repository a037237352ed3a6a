"""Compilation of loops: on first use, cached on disk, run without the global interpreter lock.

Only modules with loops import this one, because it loads numba; they are imported on demand. With
NUMBA_DISABLE_JIT=1 the loops run as plain Python.

Numba caches compiled loops beside the source, or else in the user's cache folder. If neither is
writable (a package installed by another user, a read-only home), the cache is a private folder in
the folder for temporary files; if that fails too, every process compiles.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first use, cache on disk, release the lock while running."""
    return _compiled(function, nogil=True)


def inlined(function: Function) -> Function:
    """Compile into the callers: a real call would count references to its arrays each time."""
    return _compiled(function, nogil=True, inline="always")


def _compiled(function: Function, **options: Any) -> Function:
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
    settings = cast(Any, numba).config
    folder = None if settings.CACHE_DIR else _cache_folder()
    if folder is not None:
        settings.CACHE_DIR = str(folder)
        return _compiled(function, **options)
    return cast(Function, numba.njit(**options)(function))


def _cache_folder() -> Path | None:
    """A folder that only this user can write to, because its content is executed."""
    try:
        folder = Path(tempfile.gettempdir()) / f"corollary-cache-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        if private and found.st_uid == os.getuid():
            return folder
        folder = Path(tempfile.mkdtemp(prefix="corollary-cache-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    except OSError:
        return None
