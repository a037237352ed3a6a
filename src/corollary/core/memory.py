"""Loads and stores at addresses, for loops over many arrays.

Numba counts references to an array wherever a compiled function takes one, which costs more than
a probe of a hash table. A loop that is given addresses counts nothing. Every load extends its
value to 64 bits without a sign, except `load64`. In compiled loops these are machine instructions
(`instructions`).

The caller keeps the arrays alive, and every place within their bounds: nothing is checked here.
"""

from __future__ import annotations

from ctypes import c_int64, c_uint8, c_uint32


def load8(address: int, place: int) -> int:
    """The byte at a place."""
    return c_uint8.from_address(address + place).value


def load32(address: int, place: int) -> int:
    """The 32-bit number at a place."""
    return c_uint32.from_address(address + 4 * place).value


def load64(address: int, place: int) -> int:
    """The 64-bit number at a place."""
    return c_int64.from_address(address + 8 * place).value


def store8(address: int, place: int, value: int) -> None:
    """Set the byte at a place."""
    c_uint8.from_address(address + place).value = value


def store32(address: int, place: int, value: int) -> None:
    """Set the 32-bit number at a place."""
    c_uint32.from_address(address + 4 * place).value = value


def store64(address: int, place: int, value: int) -> None:
    """Set the 64-bit number at a place."""
    c_int64.from_address(address + 8 * place).value = value
