"""Public functions: what they refuse before they run.

Arguments of plain types are compared with their annotations. The methods of one knowledge base run
one at a time, whatever threads call them, and none runs after it was closed.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
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
    plain = _plain_arguments(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        _check(function, plain, arguments, options)
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
    plain = _plain_arguments(method)

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        with self.state.guard:
            if plain:
                _check(method, plain, (self, *arguments), options)
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


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument with a plain annotation."""

    name: str
    position: int | None  # None if it can be given by name only
    annotation: str
    types: tuple[type, ...]

    def fits(self, value: object) -> bool:
        """Test whether a value has one of the types; True and False are no numbers."""
        return bool in self.types if isinstance(value, bool) else isinstance(value, self.types)


def _plain_arguments(function: Callable[..., Any]) -> dict[str, _Argument]:
    """The arguments with plain annotations, by name."""
    code: CodeType = inspect.unwrap(function).__code__
    positions = {name: at for at, name in enumerate(code.co_varnames[: code.co_argcount])}
    return {
        name: _Argument(
            name,
            positions.get(name),
            annotation,
            tuple(type_ for part in annotation.split(" | ") for type_ in _KINDS[part]),
        )
        for name, annotation in function.__annotations__.items()
        if name != "return"
        and isinstance(annotation, str)
        and all(part in _KINDS for part in annotation.split(" | "))
    }


def _check(
    function: Callable[..., Any],
    plain: dict[str, _Argument],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> None:
    for argument in plain.values():
        at = argument.position
        if at is not None and at < len(arguments):
            value = arguments[at]
        elif argument.name in options:
            value = options[argument.name]
        else:
            continue
        if not argument.fits(value):
            kinds = argument.annotation.split(" | ")
            expected = " or ".join(_NAMES[kind] for kind in kinds if kind in _NAMES)
            raise InvalidInput(
                "E345",
                f"expected {expected} as '{argument.name}' of {function.__name__},"
                f" found a value of type {type(value).__name__}",
            )
