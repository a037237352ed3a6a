"""Random numbers that depend on their key alone, and groups of drawn sizes."""

from __future__ import annotations

import numpy as np

from corollary.generate.columns import Numbers

Bounds = tuple[int, int]  # least and most


def between(rng: np.random.Generator, bounds: Bounds, size: int) -> Numbers:
    """Uniform numbers from the least to the most.

    >>> set(between(np.random.default_rng(0), (1, 2), 100).tolist())
    {1, 2}
    """
    return rng.integers(bounds[0], bounds[1] + 1, size)


def expand(sizes: Numbers) -> tuple[Numbers, Numbers]:
    """For groups of these sizes, the group of each member and its number in the group.

    >>> [column.tolist() for column in expand(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def distinct(rng: np.random.Generator, sizes: Numbers, draws: int) -> Numbers:
    """In each row as many different numbers below the row's size, as far as there are any.

    >>> sorted(distinct(np.random.default_rng(0), np.array([3]), 3)[0].tolist())
    [0, 1, 2]
    """
    drawn = np.empty((len(sizes), draws), np.int64)
    for place in range(draws):
        # Drawn from what is left, then moved past the numbers that are taken.
        number = rng.integers(0, np.maximum(sizes - place, 1))
        for taken in np.sort(drawn[:, :place], axis=1).T:
            number += number >= taken
        drawn[:, place] = number
    return drawn


def some(rng: np.random.Generator, sizes: Numbers, bounds: Bounds) -> tuple[Numbers, Numbers]:
    """For each row between the bounds different numbers below its size: row and number.

    >>> rows, numbers = some(np.random.default_rng(0), np.array([5, 5]), (2, 2))
    >>> rows.tolist(), len(set(numbers[:2].tolist()))
    ([0, 0, 1, 1], 2)
    """
    count = between(rng, bounds, len(sizes))
    wanted = np.arange(bounds[1]) < np.minimum(count, sizes)[:, None]
    return np.nonzero(wanted)[0], distinct(rng, sizes, bounds[1])[wanted]


def shuffled(rng: np.random.Generator, sizes: Numbers) -> Numbers:
    """A random order within each group: the members of the first group, those of the second, …

    >>> order = shuffled(np.random.default_rng(0), np.array([3, 2])).tolist()
    >>> sorted(order[:3]), sorted(order[3:])
    ([0, 1, 2], [3, 4])
    """
    group, _ = expand(sizes)
    return np.lexsort((rng.random(len(group)), group))
