"""The connected components of a graph of ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Ids

Numbers = npt.NDArray[np.int64]


def components(pairs: Ids) -> tuple[Ids, Numbers]:
    """The sorted nodes of a graph, and for each the index of the least node of its component.

    >>> nodes, first = components(np.array([[7, 3], [9, 8], [3, 5]], np.uint32))
    >>> nodes.tolist(), first.tolist()
    ([3, 5, 7, 8, 9], [0, 0, 0, 3, 3])
    """
    nodes, ends = np.unique(pairs, return_inverse=True)
    one, two = ends.reshape(-1, 2).T
    label = np.arange(len(nodes))
    while True:
        # Labels are roots here; link the greater root of each edge to the smaller one.
        low, high = np.minimum(label[one], label[two]), np.maximum(label[one], label[two])
        apart = low != high
        if not apart.any():
            return nodes, label
        one, two = one[apart], two[apart]
        np.minimum.at(label, high[apart], low[apart])
        while (label != label[label]).any():
            label = label[label]


def stars(pairs: Ids) -> Ids:
    """A spanning forest of stars: each node with the least node of its component.

    The least nodes themselves have no edge.

    >>> stars(np.array([[7, 3], [9, 8], [3, 5], [7, 5], [4, 4]], np.uint32)).tolist()
    [[5, 3], [7, 3], [9, 8]]
    """
    nodes, first = components(pairs)
    rest = first != np.arange(len(nodes))
    return np.column_stack([nodes[rest], nodes[first[rest]]]).astype(np.uint32)


def count_pairs(pairs: Ids) -> int:
    """Count the connected pairs of nodes, including each node with itself.

    >>> count_pairs(np.array([[7, 3], [9, 8], [3, 5]], np.uint32))
    13
    """
    _, first = components(pairs)
    sizes = np.bincount(first) if len(first) else np.zeros(0, np.int64)
    return int(sizes @ sizes)
