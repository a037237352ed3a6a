"""Machine instructions for the functions of `bits` and `memory` in compiled loops; loads numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template

from corollary.core import bits, memory


def _ones(context: Any, word: Any) -> Any:
    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _lowest(context: Any, word: Any) -> Any:
    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _fetch(context: Any, array: Any, place: Any) -> Any:
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


def _pointer(builder: Any, width: int, address: Any, place: Any) -> Any:
    kind = ir.IntType(width).as_pointer()
    return builder.gep(builder.inttoptr(address, kind), [place])


def _load(width: int) -> Any:
    def load(context: Any, address: Any, place: Any) -> Any:
        def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            found = builder.load(_pointer(builder, width, *arguments))
            return found if width == 64 else builder.zext(found, ir.IntType(64))

        return types.int64(types.int64, types.int64), generate

    return load


def _store(width: int) -> Any:
    def store(context: Any, address: Any, place: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, place, value = arguments
            if width < 64:
                value = builder.trunc(value, ir.IntType(width))
            builder.store(value, _pointer(builder, width, address, place))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return store


def _signed(context: Any, number: Any) -> Any:
    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return types.int64(types.int64), generate


def register() -> None:
    """Use the instructions wherever a compiled loop calls these functions."""
    _register(bits.ones, _ones)
    _register(bits.lowest, _lowest)
    _register(bits.fetch, _fetch)
    _register(bits.signed, _signed)
    _register(memory.load8, _load(8))
    _register(memory.load32, _load(32))
    _register(memory.load64, _load(64))
    _register(memory.store8, _store(8))
    _register(memory.store32, _store(32))
    _register(memory.store64, _store(64))


def _register(function: Callable[..., Any], instruction: Callable[..., Any]) -> None:
    """Type a Python function as numba's `intrinsic` types a function of its own."""
    make_template: Any = make_intrinsic_template
    template = make_template(
        function, instruction, function.__name__, prefer_literal=False, kwargs={}
    )
    cast(Any, infer)(template)
    cast(Any, infer_global)(function, types.Function(template))
