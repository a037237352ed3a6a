"""Draw random numbers, samples and groups."""

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
    """The group of each member, and its number in the group, for groups of these sizes.

    >>> [column.tolist() for column in expand(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def distinct(rng: np.random.Generator, sizes: Numbers, draws: int) -> Numbers:
    """Draw distinct numbers below the size of each row, as far as there are any.

    >>> sorted(distinct(np.random.default_rng(0), np.array([3]), 3)[0].tolist())
    [0, 1, 2]
    """
    drawn = np.empty((len(sizes), draws), np.int64)
    for place in range(draws):
        # Draw from the numbers that are left, then skip those that are taken.
        number = rng.integers(0, np.maximum(sizes - place, 1))
        for taken in np.sort(drawn[:, :place], axis=1).T:
            number += number >= taken
        drawn[:, place] = number
    return drawn


def some(rng: np.random.Generator, sizes: Numbers, bounds: Bounds) -> tuple[Numbers, Numbers]:
    """Draw a sample for each row, of a size between the bounds: the rows and the numbers.

    >>> rows, numbers = some(np.random.default_rng(0), np.array([5, 5]), (2, 2))
    >>> rows.tolist(), len(set(numbers[:2].tolist()))
    ([0, 0, 1, 1], 2)
    """
    count = between(rng, bounds, len(sizes))
    wanted = np.arange(bounds[1]) < np.minimum(count, sizes)[:, None]
    return np.nonzero(wanted)[0], distinct(rng, sizes, bounds[1])[wanted]


def shuffled(rng: np.random.Generator, sizes: Numbers) -> Numbers:
    """Shuffle the members of each group; groups stay in order.

    >>> order = shuffled(np.random.default_rng(0), np.array([3, 2])).tolist()
    >>> sorted(order[:3]), sorted(order[3:])
    ([0, 1, 2], [3, 4])
    """
    group, _ = expand(sizes)
    return np.lexsort((rng.random(len(group)), group))
