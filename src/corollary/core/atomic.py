"""Numbers that several threads change, as compiled loops see them, and the time.

All places are of arrays of 64-bit numbers. What was written before a `store` is seen by whoever
has seen it by a `load`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Numbers = npt.NDArray[np.int64]

# Without a compiler there is nothing that threads do at the same time.
_COMPILED = hasattr(numba.njit(lambda: None), "py_func")
AVAILABLE = _COMPILED and hasattr(os, "sched_yield") and hasattr(time, "CLOCK_MONOTONIC")
_CLOCK = getattr(time, "CLOCK_MONOTONIC", 0)
_I64, _I32 = ir.IntType(64), ir.IntType(32)


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where an element of an array is."""
    kind, tools = signature.args[0], cast(Any, cgutils)
    made = context.make_array(kind)(context, builder, arguments[0])
    return tools.get_item_pointer(context, builder, kind, made, [arguments[1]])


def _load(context: Any, array: Any, place: Any) -> Any:
    """The number at a place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _place(context, builder, signature, arguments)
        return builder.load_atomic(at, "acquire", 8)

    return types.int64(array, types.int64), generate


def _store(context: Any, array: Any, place: Any, number: Any) -> Any:
    """Change the number at a place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _place(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], at, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


def _add(context: Any, array: Any, place: Any, number: Any) -> Any:
    """Add to the number at a place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _place(context, builder, signature, arguments)
        builder.atomic_rmw("add", at, arguments[2], "acq_rel")
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


def _exchange(context: Any, array: Any, place: Any, expected: Any, number: Any) -> Any:
    """Change the number at a place if it is the expected one; whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _place(context, builder, signature, arguments)
        pair = builder.cmpxchg(at, arguments[2], arguments[3], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(array, types.int64, types.int64, types.int64), generate


def _pointer(context: Any, address: Any) -> Any:
    """An address as `numba.carray` takes it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


def _give_way(context: Any) -> Any:
    """Let other threads have the core (POSIX `sched_yield`)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = cast(Any, cgutils).get_or_insert_function(
            builder.module, ir.FunctionType(_I32, []), "sched_yield"
        )
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), generate


def _read_clock(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tools = cast(Any, cgutils)
        time_ = tools.alloca_once(builder, ir.ArrayType(_I64, 2))  # struct timespec
        called = ir.FunctionType(_I32, [_I32, time_.type])
        function = tools.get_or_insert_function(builder.module, called, "clock_gettime")
        builder.call(function, [_I32(_CLOCK), time_])
        read = builder.load(time_)
        seconds, rest = builder.extract_value(read, 0), builder.extract_value(read, 1)
        return builder.add(builder.mul(seconds, _I64(1_000_000_000)), rest)

    return types.int64(), generate


def _plain_load(array: Numbers, place: int) -> int:
    return int(array[place])


def _plain_store(array: Numbers, place: int, number: int) -> None:
    array[place] = number


def _plain_add(array: Numbers, place: int, number: int) -> None:
    array[place] += number


def _plain_exchange(array: Numbers, place: int, expected: int, number: int) -> bool:
    same = bool(array[place] == expected)
    if same:
        array[place] = number
    return same


load: Callable[[Numbers, int], int] = _plain_load
store: Callable[[Numbers, int, int], None] = _plain_store
add: Callable[[Numbers, int, int], None] = _plain_add
exchange: Callable[[Numbers, int, int, int], bool] = _plain_exchange
if _COMPILED:
    load, store = cast(Any, intrinsic(_load)), cast(Any, intrinsic(_store))
    add, exchange = cast(Any, intrinsic(_add)), cast(Any, intrinsic(_exchange))
pointer: Callable[[Any], Any] = cast(Any, intrinsic(_pointer))
give_way: Callable[[], None] = cast(Any, intrinsic(_give_way))
# Nanoseconds, as `time.monotonic_ns` counts them
clock: Callable[[], int] = cast(Any, intrinsic(_read_clock))
