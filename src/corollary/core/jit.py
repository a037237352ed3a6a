"""How loops are compiled: on first use, cached on disk, run without the lock.

Only modules of loops import this one, because it loads numba; they are imported where they are
first needed. With NUMBA_DISABLE_JIT=1 the loops run as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first use, cache on disk, run without the lock."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))


def inlined(function: Function) -> Function:
    """Compile into the callers: a real call would count references to its arrays each time."""
    return cast(Function, numba.njit(cache=True, nogil=True, inline="always")(function))
