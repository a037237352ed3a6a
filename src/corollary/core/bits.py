"""Single machine instructions on 64-bit words that Python has no name for."""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

if not hasattr(numba.njit(lambda: None), "py_func"):  # NUMBA_DISABLE_JIT is set

    def ones(word: np.uint64) -> int:
        """The number of set bits."""
        return int(word).bit_count()

    def lowest(word: np.uint64) -> int:
        """The number of the lowest set bit."""
        return (int(word) & -int(word)).bit_length() - 1

    def fetch(array: np.ndarray[Any, Any], place: int) -> None:
        """Bring an element into the cache, as it will be read soon."""

else:

    @intrinsic
    def ones(context: Any, word: Any) -> Any:
        """The number of set bits."""

        def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.uint64), generate

    @intrinsic
    def lowest(context: Any, word: Any) -> Any:
        """The number of the lowest set bit; the word must not be 0."""

        def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.uint64), generate

    @intrinsic
    def fetch(context: Any, array: Any, place: Any) -> Any:
        """Bring an element into the cache, as it will be read soon."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind, tools = signature.args[0], cast(Any, cgutils)
            made = context.make_array(kind)(context, builder, arguments[0])
            pointer = tools.get_item_pointer(context, builder, kind, made, [arguments[1]])
            pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
            flag = ir.IntType(32)
            called = ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag])
            function = tools.get_or_insert_function(builder.module, called, "llvm.prefetch.p0")
            # for reading, to be kept, data
            builder.call(function, [pointer, flag(0), flag(3), flag(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate
