"""Operations on 64-bit words; in compiled loops each is a machine instruction (`instructions`)."""

from __future__ import annotations

from typing import Any

import numpy as np


def ones(word: np.uint64) -> int:
    """The number of set bits."""
    return int(word).bit_count()


def lowest(word: np.uint64) -> int:
    """The number of the lowest set bit; the word must not be 0."""
    return (int(word) & -int(word)).bit_length() - 1


def fetch(array: np.ndarray[Any, Any], place: int | np.int64) -> None:
    """Bring an element into the cache, as it will be read soon."""


def signed(number: int) -> int:
    """A number modulo 2⁶⁴ in two's complement; compiled loops compute with such numbers anyway.

    >>> signed(2**63 + 1)
    -9223372036854775807
    """
    return ((number + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
