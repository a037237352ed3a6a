"""Single machine instructions on 64-bit words that Python has no name for."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

if not hasattr(numba.njit(lambda: None), "py_func"):  # NUMBA_DISABLE_JIT is set

    def ones(word: np.uint64) -> int:
        """The number of set bits."""
        return int(word).bit_count()

    def lowest(word: np.uint64) -> int:
        """The number of the lowest set bit."""
        return (int(word) & -int(word)).bit_length() - 1

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
