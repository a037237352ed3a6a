"""Connected components, on the driver."""

from __future__ import annotations

import numpy as np

from corollary.core.dictionary import Ids


class Components:
    """Nodes that edges connect, in either direction.

    >>> import numpy as np
    >>> components = Components()
    >>> components.connect(np.array([[1, 2], [2, 1]], np.uint32))
    >>> components.pairs().tolist()
    [[1, 1], [1, 2], [2, 1], [2, 2]]
    """

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def connect(self, edges: Ids) -> None:
        """Add edges."""
        for a, b in edges.tolist():
            self._parents[self._root(a)] = self._root(b)

    def _root(self, node: int) -> int:
        parents = self._parents
        while (parent := parents.setdefault(node, node)) != node:
            parents[node] = parents[parent]
            node = parent
        return node

    def pairs(self) -> Ids:
        """All pairs of nodes of each component."""
        members: dict[int, list[int]] = {}
        for node in self._parents:
            members.setdefault(self._root(node), []).append(node)
        tables = [
            np.stack(np.meshgrid(sorted(nodes), sorted(nodes), indexing="ij"), axis=-1).reshape(
                -1, 2
            )
            for nodes in members.values()
        ]
        return np.concatenate(tables).astype(np.uint32) if tables else np.zeros((0, 2), np.uint32)
