"""The connected components of a graph of ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corollary.core.dictionary import Ids

Numbers = npt.NDArray[np.int64]


def components(pairs: Ids) -> tuple[Ids, Numbers]:
    """The nodes of a graph in order, and for each the number of the first node connected to it.

    >>> nodes, first = components(np.array([[7, 3], [9, 8], [3, 5]], np.uint32))
    >>> nodes.tolist(), first.tolist()
    ([3, 5, 7, 8, 9], [0, 0, 0, 3, 3])
    """
    nodes, ends = np.unique(pairs, return_inverse=True)
    one, two = ends.reshape(-1, 2).T
    label = np.arange(len(nodes))
    while True:
        # Labels are roots here; the greater root of each edge is hung below the smaller one.
        low, high = np.minimum(label[one], label[two]), np.maximum(label[one], label[two])
        apart = low != high
        if not apart.any():
            return nodes, label
        one, two = one[apart], two[apart]
        np.minimum.at(label, high[apart], low[apart])
        while (label != label[label]).any():
            label = label[label]


def stars(pairs: Ids) -> Ids:
    """As few edges as connect the same nodes: each node with the least one that it is connected to.

    Nodes that are the least ones of their components have no edge.

    >>> stars(np.array([[7, 3], [9, 8], [3, 5], [7, 5], [4, 4]], np.uint32)).tolist()
    [[5, 3], [7, 3], [9, 8]]
    """
    nodes, first = components(pairs)
    rest = first != np.arange(len(nodes))
    return np.column_stack([nodes[rest], nodes[first[rest]]]).astype(np.uint32)


def count_pairs(pairs: Ids) -> int:
    """How many pairs of nodes are connected, those of a node with itself included.

    >>> count_pairs(np.array([[7, 3], [9, 8], [3, 5]], np.uint32))
    13
    """
    _, first = components(pairs)
    sizes = np.bincount(first) if len(first) else np.zeros(0, np.int64)
    return int(sizes @ sizes)
