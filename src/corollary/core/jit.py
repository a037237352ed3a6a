"""Loops that run as Python on small inputs, and compiled on larger ones.

Loading numba takes 0.25 s, and compiling a loop 0.1 to 2 s. So a loop (a *kernel*) is interpreted
while its inputs are small and the process has interpreted little; from then on it is compiled on
its first call, cached on disk, and runs without the global interpreter lock. A program of a few
facts neither loads numba nor compiles anything. With NUMBA_DISABLE_JIT=1 all loops are interpreted.

Both ways compute the same: interpreted loops see other kernels as Python functions, overflow wraps
around silently, and results are Python numbers. A kernel therefore wraps 64-bit numbers
explicitly (`np.uint64`, `bits.signed`) where it relies on overflow.

Numba caches compiled loops beside the source, or else in the user's cache folder. If neither is
writable (a package installed by another user, a read-only home), the cache is a private folder in
the folder for temporary files; if that fails too, every process compiles.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np

from corollary.core.log import LOGGER
from corollary.core.tuning import tuning

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Interpret on small inputs, else compile and release the lock while running.

    >>> @compiled
    ... def total(numbers):
    ...     result = 0
    ...     for number in numbers:
    ...         result += number
    ...     return result
    >>> total(np.array([1, 2, 3]))
    6
    """
    return cast(Function, Kernel(function))


def quadratic(function: Function) -> Function:
    """Like `compiled`, for a loop whose work may grow with the square of its input."""
    return cast(Function, Kernel(function, quadratic=True))


def inlined(function: Function) -> Function:
    """Compile into the callers: a real call would count references to its arrays each time."""
    return cast(Function, Kernel(function, inline="always"))


class Kernel:
    """A loop, interpreted or compiled; see `compiled`."""

    def __init__(
        self, function: Callable[..., Any], *, quadratic: bool = False, **options: Any
    ) -> None:
        functools.update_wrapper(self, function)
        self.targetoptions = {"nogil": True, **options}  # numba reads it to inline the kernel
        self.py_func = function  # as in numba
        self._quadratic = quadratic
        self._call: Callable[..., Any] = self._choose

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop."""
        return self._call(*arguments)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The compiled loop, by types of arguments; compiles on the first call with new types."""
        return _dispatcher(self.py_func, **self.targetoptions)

    @functools.cached_property
    def interpreted(self) -> Callable[..., Any]:
        """The loop as a Python function that calls other kernels as Python functions."""
        function = cast(FunctionType, self.py_func)
        return FunctionType(
            function.__code__, _python_names(function.__globals__), function.__name__
        )

    def interpret(self, *arguments: Any) -> Any:
        """Run the loop as Python, whatever the size of its arrays."""
        with np.errstate(over="ignore"):
            return _python_value(self.interpreted(*arguments))

    @property
    def _numba_type_(self) -> Any:
        """The type of this object in compiled loops that call it."""
        return self.dispatcher._numba_type_

    def _choose(self, *arguments: Any) -> Any:
        elements = _elements(arguments)
        if charge(elements * elements >> 6 if self._quadratic else elements):
            return self.interpret(*arguments)
        self._call = self.dispatcher
        return self._call(*arguments)


_interpreted = 0  # elements that this process has interpreted
_always = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def charge(elements: int) -> bool:
    """Whether a loop over this many elements is interpreted; counts the elements."""
    global _interpreted
    if _always:
        return True
    if elements > tuning.interpreted_call_elements or _interpreted > _BUDGET:
        return False
    _interpreted += elements
    return True


def stop_interpreting() -> None:
    """Compile loops from now on, however small their inputs.

    For a process whose forks inherit compiled loops: otherwise each would load the compiler.
    """
    global _interpreted
    _interpreted = _BUDGET + 1


def for_work(function: Function, elements: int) -> Function:
    """A loop whose arguments do not show its work; the caller states the number of elements.

    Such loops work at addresses, or read a few elements of large arrays.

    >>> @compiled
    ... def half(number):
    ...     return number // 2
    >>> for_work(half, 3)(6)
    3
    """
    kernel = cast(Any, function)
    return cast(Function, kernel.interpret if charge(elements) else kernel.dispatcher)


def is_interpreted(function: Callable[..., Any]) -> bool:
    """Whether `for_work` has chosen to interpret a loop."""
    return isinstance(getattr(function, "__self__", None), Kernel)


_BUDGET = 1 << 18  # elements: some 0.2 s, while loading numba and the kernels takes 0.5 s


def _elements(arguments: tuple[Any, ...]) -> int:
    return sum(argument.size for argument in arguments if isinstance(argument, np.ndarray))


def _python_value(value: Any) -> Any:
    """A result with Python numbers, as compiled loops return it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return tuple(map(_python_value, value))
    return value


_namespaces: dict[int, dict[str, Any]] = {}  # by identity of the globals of a module


def _python_names(names: dict[str, Any]) -> dict[str, Any]:
    """The globals of a module with the interpreted functions of kernels."""
    known = _namespaces.get(id(names))
    if known is None:
        known = _namespaces[id(names)] = dict(names)
        for name, value in names.items():
            if isinstance(value, Kernel):
                known[name] = value.interpreted
    return known


_listeners: list[Callable[[], None]] = []  # of the first compilation, innermost last
_logged: list[bool] = []  # whether the log says that loops are compiled


@contextmanager
def announcing(listener: Callable[[], None]) -> Iterator[None]:
    """Call a listener when the first loop in the block is compiled that is in no cache."""
    _listeners.append(listener)
    try:
        yield
    finally:
        if listener in _listeners:
            _listeners.remove(listener)


@functools.cache
def _numba() -> Any:
    """Load numba, with the machine instructions of `bits` and `memory`."""
    import numba
    from numba.core import event

    from corollary.core import instructions

    instructions.register()

    class Compilations(event.Listener):
        def on_start(self, _: object) -> None:
            if _listeners:
                _listeners.pop()()
            elif not _logged:
                _logged.append(True)
                LOGGER.info("compiling loops, once on this machine")

        def on_end(self, _: object) -> None:
            pass

    register: Any = event.register
    register("numba:compile", Compilations())
    return numba


def _dispatcher(function: Callable[..., Any], **options: Any) -> Any:
    numba = _numba()
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
        dispatcher._cache._cache_file._source_stamp = _fingerprint(function)
        return dispatcher
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
    global _kept_in
    folder = None if numba.config.CACHE_DIR else _cache_folder()
    if folder is not None:
        numba.config.CACHE_DIR = _kept_in = str(folder)
        return _dispatcher(function, **options)
    _kept_in = None
    return numba.njit(**options)(function)


def _fingerprint(function: Callable[..., Any]) -> str:
    """A hash of everything that is compiled into a loop: its code, and what that refers to.

    Numba only asks whether the file of a cached loop has changed. But other modules define
    constants of the loop, and the loops that it calls.

    >>> limit = 3
    >>> def is_small(number):
    ...     return number < limit
    >>> before = _fingerprint(is_small)
    >>> limit = 4
    >>> _fingerprint(is_small) == before
    False
    """
    described: dict[int, str] = {}
    pending = [function]
    while pending:
        function = pending.pop()
        if id(function) in described:
            continue
        parts, names = _code_parts(function.__code__)
        described[id(function)] = ""
        for name in names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType):
                members = [vars(value).get(member) for member in names]
            else:
                members = [value]
            for member in members:
                member = getattr(member, "py_func", member)
                if isinstance(member, FunctionType):
                    pending.append(member)
                elif isinstance(member, int | float | str | tuple | np.generic):
                    parts.append(f"{name} {member!r}")
        described[id(function)] = " ".join(parts)
    return hashlib.sha256("\n".join(described.values()).encode()).hexdigest()


def _code_parts(code: CodeType) -> tuple[list[str], list[str]]:
    """The instructions and constants of a function, and the names that it refers to."""
    parts, names = [code.co_code.hex()], [*code.co_names]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner, more = _code_parts(constant)
            parts, names = parts + inner, names + more
        else:
            parts.append(repr(constant))
    return parts, names


_kept_in: str | None = ""  # the cache instead of the usual one; None without any


def unusual_cache() -> str:
    """Where compiled loops are kept if neither the package nor the home folder can be written."""
    if _kept_in is None:
        return "they are not kept: no folder can be written"
    return f"they are kept in {_kept_in}: no other folder can be written" if _kept_in else ""


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
