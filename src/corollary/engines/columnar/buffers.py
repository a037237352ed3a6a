"""Buffer pools: scratch arrays are reused, as fresh pages cost more than writing to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


class BufferPool(Generic[Array]):
    """Holds one array of at most `max_size` numbers; it is empty while the array is in use.

    >>> import numpy as np
    >>> pool = BufferPool(lambda size: np.zeros(size, np.uint64), 100)
    >>> buffer = pool.acquire(10)
    >>> pool.release(buffer)
    >>> pool.acquire(5) is buffer, len(pool.acquire(5))
    (True, 5)
    """

    def __init__(self, create: Callable[[int], Array], max_size: int) -> None:
        self._create = create
        self._max_size = max_size
        self._free: list[Array] = []

    def acquire(self, size: int) -> Array:
        """Return the pooled array if it has at least `size` numbers, else a new one."""
        try:
            array = self._free.pop()
        except IndexError:  # in use
            return self._create(size)
        return array if len(array) >= size else self._create(size)

    def release(self, array: Array) -> None:
        """Return an array to the pool, in the state in which it was created."""
        if len(array) <= self._max_size and not self._free:
            self._free.append(array)
