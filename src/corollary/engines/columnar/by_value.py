"""Joins by literal value: `p(?x), q(?y), FILTER(sameValue(?x, ?y))` without a cross product.

If such a filter is the only link between two atoms, the rows of the second atom are sorted by the
values of its terms, and each row of the table looks up its value. The filter is still evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.compile import Argument, Condition
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.literals import NO_VALUE, Literals

Numbers = npt.NDArray[np.int64]


def link(
    arguments: tuple[Argument, ...], bound: set[int], conditions: Sequence[Condition]
) -> tuple[int, int] | None:
    """Return the bound and the free variable that a filter equates, if nothing else links the atom.

    >>> link((1,), {0}, [Condition(("sameValue", (0, 1)), (0, 1))])
    (0, 1)
    """
    if any(a < 0 or a in bound for a in arguments):
        return None
    for condition in conditions:
        if condition.target is not None:
            continue
        match condition.expression:
            case ("sameValue", (int() as one, int() as two)):
                for known, free in ((one, two), (two, one)):
                    if known in bound and free in arguments:
                        return known, free
    return None


class ValueIndex:
    """Rows sorted by the value of one column."""

    def __init__(self, column: Ids, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        numbers = self._value_numbers(column)
        self.order: Numbers = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self.order]

    def ranges(self, column: Ids) -> tuple[Numbers, Numbers]:
        """Return, for each term, the range of sorted rows with its value."""
        numbers = self._value_numbers(column)
        low = np.searchsorted(self._sorted, numbers, side="left")
        high = np.searchsorted(self._sorted, numbers, side="right")
        high[numbers == NO_VALUE] = low[numbers == NO_VALUE]
        return low, high

    def _value_numbers(self, column: Ids) -> Numbers:
        return Literals.of(self._dictionary).values(column, self._dictionary)
