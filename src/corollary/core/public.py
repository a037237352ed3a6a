"""Public functions: what they refuse before they run.

Arguments of plain types are compared with their annotations. The methods of one knowledge base run
one at a time, whatever threads call them, and none runs after it was closed.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast

from corollary.errors import InvalidInput

_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (Integral,),
    "bool": (bool,),
    "Path": (Path,),
    "None": (type(None),),
}
_NAMES = {"str": "text", "int": "a whole number", "bool": "True or False", "Path": "a path"}

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


class Guard:
    """Lets one thread at a time use a knowledge base, until it is closed.

    >>> guard = Guard()
    >>> with guard:
    ...     guard.closed = True
    >>> with guard:
    ...     pass
    Traceback (most recent call last):
    ...
    corollary.errors.InvalidInput: E347: the knowledge base is closed
      hint: open its store again: KnowledgeBase.open(path)
    """

    def __init__(self) -> None:
        self.closed = False
        self._lock, self._process = threading.RLock(), os.getpid()

    def __enter__(self) -> None:
        """Wait for other threads, and refuse a closed knowledge base."""
        if self._process != os.getpid():  # a fork has only one of the threads
            self._lock, self._process = threading.RLock(), os.getpid()
        self._lock.acquire()
        if self.closed:
            self._lock.release()
            hint = "open its store again: KnowledgeBase.open(path)"
            raise InvalidInput("E347", "the knowledge base is closed", hint)

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def checked(function: F) -> F:
    """Refuse arguments whose types are not those of plain annotations (`str`, `int`, `bool` …).

    >>> @checked
    ... def half(number: int) -> int:
    ...     return number // 2
    >>> half(4)
    2
    >>> half("4")
    Traceback (most recent call last):
    ...
    corollary.errors.InvalidInput: E345: expected a whole number as 'number' of half, found ...
    """
    plain = _PlainArguments(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        plain.check(arguments, options)
        try:
            return function(*arguments, **options)
        except ValueError as error:
            _refuse_path(error)
            raise

    return cast("F", call)


def guarded(methods: C) -> C:
    """Check the public methods of a class, and run them within the guard of `self.state`.

    `close` and generators manage their guard themselves.
    """
    for name, member in [*vars(methods).items()]:
        if name == "__init__" or isinstance(member, classmethod):
            function = getattr(member, "__func__", member)
            wrapped: Any = checked(function)
            setattr(methods, name, classmethod(wrapped) if function is not member else wrapped)
        elif not inspect.isfunction(member) or name == "close":
            continue
        elif not name.startswith("_") or name in _GUARDED:
            setattr(methods, name, _guarded(member))
    return methods


_GUARDED = {"__contains__", "__len__", "_repr_html_", "__enter__"}


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    plain = _PlainArguments(method)

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        with self.state.guard:
            plain.check((self, *arguments), options)
            try:
                return method(self, *arguments, **options)
            except ValueError as error:
                _refuse_path(error)
                raise

    return call


def _refuse_path(error: ValueError) -> None:
    """Report a path that no file system can have."""
    if str(error) == "embedded null byte":
        raise InvalidInput("E301", "a path contains the character U+0000") from None


class _PlainArguments:
    """The arguments of a function with plain annotations, and the check of their values."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code: CodeType = inspect.unwrap(function).__code__
        positions = {name: at for at, name in enumerate(code.co_varnames[: code.co_argcount])}
        self._function = function.__name__
        self._arguments = [
            (name, positions.get(name, sys.maxsize), parts, _types(parts))
            for name, annotation in function.__annotations__.items()
            if name != "return" and isinstance(annotation, str)
            if _KINDS.keys() >= {*(parts := annotation.split(" | "))}
        ]

    def check(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Raise an error unless all values have the types of their annotations."""
        for name, position, parts, types in self._arguments:
            if position < len(arguments):
                value = arguments[position]
            elif name in options:
                value = options[name]
            else:
                continue
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                expected = " or ".join(_NAMES[part] for part in parts if part in _NAMES)
                raise InvalidInput(
                    "E345",
                    f"expected {expected} as '{name}' of {self._function},"
                    f" found a value of type {type(value).__name__}",
                )


def _types(parts: list[str]) -> tuple[type, ...]:
    return tuple(type_ for part in parts for type_ in _KINDS[part])
