"""Loads and stores at addresses, for compiled loops over many arrays.

Numba counts references to an array wherever a compiled function takes one, which costs more than
a probe of a hash table. A loop that is given addresses counts nothing. Every load extends its
value to 64 bits without a sign, except `load64`.

The caller keeps the arrays alive, and every place within their bounds: nothing is checked here.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

if not hasattr(numba.njit(lambda: None), "py_func"):  # NUMBA_DISABLE_JIT is set

    def load8(address: int, place: int) -> int:
        """The byte at a place."""
        return ctypes.c_uint8.from_address(int(address) + int(place)).value

    def load32(address: int, place: int) -> int:
        """The 32-bit number at a place."""
        return ctypes.c_uint32.from_address(int(address) + 4 * int(place)).value

    def load64(address: int, place: int) -> int:
        """The 64-bit number at a place."""
        return ctypes.c_int64.from_address(int(address) + 8 * int(place)).value

    def store8(address: int, place: int, value: int) -> None:
        """Set the byte at a place."""
        ctypes.c_uint8.from_address(int(address) + int(place)).value = int(value)

    def store32(address: int, place: int, value: int) -> None:
        """Set the 32-bit number at a place."""
        ctypes.c_uint32.from_address(int(address) + 4 * int(place)).value = int(value)

    def store64(address: int, place: int, value: int) -> None:
        """Set the 64-bit number at a place."""
        ctypes.c_int64.from_address(int(address) + 8 * int(place)).value = int(value)

else:

    def _pointer(builder: Any, bits: int, address: Any, place: Any) -> Any:
        kind = ir.IntType(bits).as_pointer()
        return builder.gep(builder.inttoptr(address, kind), [place])

    def _load(bits: int) -> Any:
        def load(context: Any, address: Any, place: Any) -> Any:
            def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                found = builder.load(_pointer(builder, bits, *arguments))
                return found if bits == 64 else builder.zext(found, ir.IntType(64))

            return types.int64(types.int64, types.int64), generate

        return intrinsic(load)

    def _store(bits: int) -> Any:
        def store(context: Any, address: Any, place: Any, value: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                address, place, value = arguments
                if bits < 64:
                    value = builder.trunc(value, ir.IntType(bits))
                builder.store(value, _pointer(builder, bits, address, place))
                return context.get_dummy_value()

            return types.void(types.int64, types.int64, types.int64), generate

        return intrinsic(store)

    load8, load32, load64 = _load(8), _load(32), _load(64)
    store8, store32, store64 = _store(8), _store(32), _store(64)
