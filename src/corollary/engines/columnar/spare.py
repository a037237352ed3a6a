"""An array that is kept for the next time: fresh pages cost more than what is written there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


class Spare(Generic[Array]):
    """One array, of at most so many numbers, or none while somebody has it.

    >>> import numpy as np
    >>> spare = Spare(lambda size: np.zeros(size, np.uint64), 100)
    >>> taken = spare.take(10)
    >>> spare.keep(taken)
    >>> spare.take(5) is taken, len(spare.take(5))
    (True, 5)
    """

    def __init__(self, make: Callable[[int], Array], most: int) -> None:
        self._make = make
        self._most = most
        self._kept: list[Array] = []

    def take(self, size: int) -> Array:
        """An array of so many numbers or more: the kept one, else one that is made."""
        try:
            array = self._kept.pop()
        except IndexError:  # another thread has it
            return self._make(size)
        return array if len(array) >= size else self._make(size)

    def keep(self, array: Array) -> None:
        """An array as it was made, that nobody uses any more, for the next one who needs it."""
        if len(array) <= self._most and not self._kept:
            self._kept.append(array)
