"""Incremental maintenance of connected components: the pairs gained and lost.

All pairs of nodes of a component are facts, so the components determine the facts. If few edges
change, only the components that contain their ends are computed again, from the old and the new
edges: the known pairs list their nodes. If many edges change, all components are.

A component has a positive number; 0 marks nodes without edges, which are in no component.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corollary.core.ids import missing_in
from corollary.core.jit import compiled, inlined
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.closure_diff import PairChanges
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.relation import (
    EMPTY,
    HIGH,
    LOW,
    Relation,
    as_set,
    merge_keys,
    nodes_of,
)
from corollary.engines.columnar.tuning import tuning

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]


def component_changes(
    before: Relation, after: Relation, changed: Relation, known: Relation, budget: Budget
) -> PairChanges:
    """Compute the pairs gained and lost from `known`, the pairs of `before`.

    `changed` is the symmetric difference of `before` and `after`.
    """
    if not len(changed):
        return PairChanges(EMPTY, EMPTY, 0)
    if len(changed) <= tuning.component_local_edges_limit:
        nodes, old = _known_components(known, changed.keys())
    else:
        nodes = nodes_of((*before.runs, *after.runs))  # deleted edges do not matter
        old = _labels(before, nodes)
    new = _labels(after, nodes)
    moved = old != new
    touched = _in(old[moved], old) | _in(new[moved], new)
    nodes, old, new = nodes[touched], old[touched], new[touched]
    visited = len(changed) + len(nodes)
    return PairChanges(_pairs(nodes, new, old, budget), _pairs(nodes, old, new, budget), visited)


def least(edges: Relation) -> Ids:
    """Pair each node with the least node of its component."""
    nodes = nodes_of(edges.runs)
    labels = _labels(edges, nodes)
    has_edge = labels > 0
    return np.column_stack([nodes[has_edge], labels[has_edge] - np.uint32(1)])


def _known_components(known: Relation, edges: Keys) -> tuple[Ids, Ids]:
    """Return the nodes of the components that contain the ends of edges, sorted, and their labels.

    New nodes are in no component.
    """
    ends = as_set(np.concatenate([edges >> HIGH, edges & LOW])).astype(np.uint32)
    rows, labels = [], []
    while len(ends):
        row = _objects(known, int(ends[0]))
        rows.append(row if len(row) else ends[:1])
        labels.append(np.full(len(rows[-1]), row[0] + 1 if len(row) else 0, np.uint32))
        ends = missing_in(rows[-1], ends)
    nodes = np.concatenate(rows)
    order = np.argsort(nodes)
    return nodes[order], np.concatenate(labels)[order]


def _objects(relation: Relation, node: int) -> Ids:
    """Return the sorted objects of one subject."""
    bounds = np.array([node, node + 1], np.uint64) << HIGH
    ranges = [run.keys[slice(*np.searchsorted(run.keys, bounds))] for run in relation.runs]
    keys = np.sort(np.concatenate(ranges)) if ranges else EMPTY
    if relation.tombstones:
        keys = keys[~relation.is_tombstone(keys)]
    return (keys & LOW).astype(np.uint32)


def _labels(edges: Relation, nodes: Ids) -> Ids:
    """Number the component of each node: its least node plus 1.

    Edges of the nodes lead to nodes only.
    """
    size = int(nodes[-1]) + 1 if len(nodes) else 0
    # Pages that are never written take no memory.
    parents, has_edge = np.empty(size, np.uint32), np.zeros(size, np.uint8)
    parents[nodes] = nodes
    tombstones, separate = merge_keys(edges.tombstones), len(nodes)
    for run in edges.runs:
        ranges = run.ranges(nodes.astype(np.uint64), HIGH)
        separate = unite(run.keys, *ranges, tombstones, parents, has_edge, separate)
        if separate == 1 and len(nodes) > 1:
            break
    labels = np.zeros(len(nodes), np.uint32)
    label(nodes, parents, has_edge, labels)
    return labels


def _in(some: Ids, labels: Ids) -> npt.NDArray[np.bool_]:
    """Test which labels of components are among some others."""
    present = np.zeros(1 + int(labels.max(initial=0)), bool)
    present[some] = True
    present[0] = False
    return present[labels]


def _pairs(nodes: Ids, together: Ids, apart: Ids, budget: Budget) -> Keys:
    """Return the pairs of nodes that share a component in `together` but not in `apart`."""
    if not len(nodes):
        return EMPTY
    by_component = np.argsort(together, kind="stable")
    by_part = np.lexsort((apart, together))
    places = np.empty(len(nodes) + 1, np.int64)
    count(together, apart, by_part, places)
    budget.reserve(8 * int(places[-1]), "connected components")
    out = np.empty(int(places[-1]), np.uint64)
    if len(out):
        write(nodes, together, apart, by_component, by_part, places, out)
    return out


@inlined
def root(parents: Ids, node: np.uint32) -> np.uint32:
    """Find the least node of a component, with path halving."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@compiled
def unite(
    keys: Keys,
    low: Offsets,
    high: Offsets,
    tombstones: Keys,
    parents: Ids,
    has_edge: npt.NDArray[np.uint8],
    separate: int,
) -> int:
    """Unite the ends of ranges of edges, until they are connected; returns how many sets are left.

    `separate` is the number of sets before.
    """
    d = 0
    for k in range(len(low)):
        for i in range(np.uint64(low[k]), np.uint64(high[k])):
            key = keys[i]
            while d < len(tombstones) and tombstones[d] < key:
                d += 1
            if d < len(tombstones) and tombstones[d] == key:
                continue
            x, z = np.uint32(key >> np.uint64(32)), np.uint32(key & np.uint64(0xFFFFFFFF))
            has_edge[x] = has_edge[z] = 1
            a, b = root(parents, x), root(parents, z)
            if a != b:
                parents[max(a, b)] = min(a, b)
                separate -= 1
        if separate == 1 and len(low) > 1:
            break
    return separate


@compiled
def label(nodes: Ids, parents: Ids, has_edge: npt.NDArray[np.uint8], labels: Ids) -> None:
    """Write the least node of each component plus 1, for nodes with edges."""
    for k in range(len(nodes)):
        if has_edge[nodes[k]]:
            labels[k] = root(parents, nodes[k]) + np.uint32(1)


@compiled
def count(together: Ids, apart: Ids, by_part: Offsets, places: Offsets) -> None:
    """Compute the offset of the first pair of each node."""
    size = len(together)
    begin = 0
    while begin < size:
        component = together[by_part[begin]]
        end = begin
        while end < size and together[by_part[end]] == component:
            end += 1
        at = begin
        while at < end:
            part = apart[by_part[at]]
            stop = at
            while stop < end and apart[by_part[stop]] == part:
                stop += 1
            pairs = end - begin - (stop - at if part != 0 else 0)
            for i in range(at, stop):
                places[by_part[i] + 1] = pairs if component != 0 else 0
            at = stop
        begin = end
    places[0] = 0
    for i in range(size):
        places[i + 1] += places[i]


@compiled
def write(
    nodes: Ids,
    together: Ids,
    apart: Ids,
    by_component: Offsets,
    by_part: Offsets,
    places: Offsets,
    out: Keys,
) -> None:
    """Write the pairs by component and part, each node at its offset."""
    size = len(nodes)
    others = np.empty(size, np.uint64)
    begin = 0
    while begin < size:
        component = together[by_part[begin]]
        end = begin
        while end < size and together[by_part[end]] == component:
            end += 1
        at = begin
        while at < end and component != 0:
            part = apart[by_part[at]]
            stop = at
            while stop < end and apart[by_part[stop]] == part:
                stop += 1
            if places[by_part[at] + 1] > places[by_part[at]]:
                n = 0
                for i in range(begin, end):
                    other = by_component[i]
                    others[n] = nodes[other]
                    n += int(part == 0 or apart[other] != part)
                for i in range(at, stop):
                    head = np.uint64(nodes[by_part[i]]) << np.uint64(32)
                    place = places[by_part[i]]
                    for k in range(n):
                        out[place + k] = head | others[k]
            at = stop
        begin = end
