"""Shortest paths over numbered nodes: Dijkstra's algorithm with a binary heap.

Distances and weights are 64-bit integers or doubles. A search leaves its results in buffers that
the next one reuses, so it costs what it reaches, not the size of the graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.jit import compiled, inlined

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]

_FREE, _SEED, _PATH = 0, 1, 2


class Graph(NamedTuple):
    """Edges by source: those of node n are `offsets[n]` up to `offsets[n + 1]`."""

    offsets: Numbers
    targets: Numbers
    weights: Array


class Search:
    """Searches of one graph.

    >>> edges = np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1, 5, 2])
    >>> search = Search(graph(3, *edges))
    >>> nodes, distances, new = search.run(np.array([0]), np.array([10]))
    >>> nodes.tolist(), distances.tolist(), new.tolist()
    ([0, 1, 2], [10, 11, 13], [False, True, True])
    """

    def __init__(self, edges: Graph) -> None:
        self._graph = edges
        nodes = len(edges.offsets) - 1
        self._best = np.zeros(nodes, edges.weights.dtype)
        self._state = np.zeros(nodes, np.int8)
        self._touched = np.zeros(nodes, np.int64)
        self._keys = np.zeros(64, edges.weights.dtype)
        self._nodes = np.zeros(64, np.int64)

    def run(self, seeds: Numbers, values: Array) -> tuple[Numbers, Array, npt.NDArray[np.bool_]]:
        """The reached nodes, their distances, and whether no seed has this distance."""
        room = len(seeds) + len(self._graph.targets) + 1
        if room > len(self._keys):
            self._keys = np.zeros(room, self._keys.dtype)
            self._nodes = np.zeros(room, np.int64)
        found = _search(
            self._graph.offsets,
            self._graph.targets,
            self._graph.weights,
            seeds,
            values.astype(self._best.dtype),
            self._best,
            self._state,
            self._touched,
            self._keys,
            self._nodes,
        )
        nodes = self._touched[:found].copy()
        distances, new = self._best[nodes], self._state[nodes] == _PATH
        self._state[nodes] = _FREE
        return nodes, distances, new


def graph(nodes: int, sources: Numbers, targets: Numbers, weights: Array) -> Graph:
    """Sort edges by source."""
    offsets = np.zeros(nodes + 1, np.int64)
    sorted_targets = np.empty(len(targets), np.int64)
    sorted_weights = np.empty(len(weights), weights.dtype)
    _place(sources, targets, weights, offsets, sorted_targets, sorted_weights)
    return Graph(offsets, sorted_targets, sorted_weights)


@compiled
def _place(
    sources: Numbers,
    targets: Numbers,
    weights: Array,
    offsets: Numbers,
    sorted_targets: Numbers,
    sorted_weights: Array,
) -> None:
    for at in range(len(sources)):
        offsets[sources[at] + 1] += 1
    for at in range(1, len(offsets)):
        offsets[at] += offsets[at - 1]
    for at in range(len(sources) - 1, -1, -1):
        # offsets[n + 1] moves down to the start of node n + 1, so this fills from the end
        source = sources[at]
        offsets[source + 1] -= 1
        place = offsets[source + 1]
        sorted_targets[place] = targets[at]
        sorted_weights[place] = weights[at]
    # offsets[n + 1] is the start of node n now
    for at in range(len(offsets) - 1):
        offsets[at] = offsets[at + 1]
    offsets[len(offsets) - 1] = len(sources)


@inlined
def _push(keys: Array, nodes: Numbers, size: int, key: Any, node: int) -> int:
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        nodes[at] = nodes[above]
        at = above
    keys[at] = key
    nodes[at] = node
    return size + 1


@inlined
def _drop(keys: Array, nodes: Numbers, size: int) -> int:
    """Remove the least key."""
    size -= 1
    key = keys[size]
    node = nodes[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at] = keys[below]
        nodes[at] = nodes[below]
        at = below
    keys[at] = key
    nodes[at] = node
    return size


@compiled
def _search(
    offsets: Numbers,
    targets: Numbers,
    weights: Array,
    seeds: Numbers,
    values: Array,
    best: Array,
    state: npt.NDArray[np.int8],
    touched: Numbers,
    keys: Array,
    nodes: Numbers,
) -> int:
    size = 0
    found = 0
    for at in range(len(seeds)):
        node = seeds[at]
        if state[node] == _FREE:
            touched[found] = node
            found += 1
        elif best[node] <= values[at]:
            continue
        state[node] = _SEED
        best[node] = values[at]
        size = _push(keys, nodes, size, values[at], node)
    while size > 0:
        distance = keys[0]
        node = nodes[0]
        size = _drop(keys, nodes, size)
        if best[node] < distance:
            continue
        for at in range(offsets[node], offsets[node + 1]):
            target = targets[at]
            further = distance + weights[at]
            if state[target] == _FREE:
                touched[found] = target
                found += 1
            elif best[target] <= further:
                continue
            state[target] = _PATH
            best[target] = further
            size = _push(keys, nodes, size, further, target)
    return found
