"""By what the pairs of connected components differ when edges come and go.

All pairs of nodes of a component are facts, so that whoever knows the components knows the facts.
If few edges change, the ends of those that go are searched from side by side, without them: if the
searches meet, nothing is lost, and else the smaller part is complete when its search ends; the rest
of the component is read off the known pairs. If many change, the components of all old and all new
edges are found anew.

A component is named by a number above 0; 0 stands for nodes without edges, which are in none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corollary.core.jit import compiled, inlined
from corollary.engines.columnar.budget import Budget
from corollary.engines.columnar.kernels import Keys
from corollary.engines.columnar.layers import first, layers, lower, turned
from corollary.engines.columnar.relation import EMPTY, HIGH, LOW, Relation, as_set
from corollary.engines.columnar.reroute import Difference
from corollary.engines.columnar.tuning import tuning

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
Touched = tuple[Ids, Ids, Ids, int]  # nodes in order, their old and new components, edges met


def differ(
    before: Relation, after: Relation, changed: Relation, known: Relation, budget: Budget
) -> Difference:
    """The pairs that come and go; `known` are those of `before`, `changed` what only one has."""
    if not len(changed):
        return Difference(EMPTY, EMPTY, 0)
    keys = changed.keys()
    held = before.contains(keys)
    gone, come = Relation.of(2, keys[held]), keys[~held]
    size = 1 + max(run.largest for relation in (before, after) for run in relation.runs)
    if len(gone) + len(come) <= tuning.component_search_edges_limit:
        touched = _few(before, after, known, gone, come, size)
    else:
        touched = _all(before, after, size)
    nodes, old, new, met = touched
    return Difference(
        _pairs(nodes, new, old, budget), _pairs(nodes, old, new, budget), len(keys) + met
    )


def least(edges: Relation) -> Ids:
    """The nodes of edges, each with the least node of its component."""
    if not len(edges):
        return np.zeros((0, 2), np.uint32)
    labels = _labels(edges.keys(), 1 + max(run.largest for run in edges.runs))
    nodes = np.flatnonzero(labels).astype(np.uint32)
    return np.column_stack([nodes, labels[nodes] - np.uint32(1)])


def _few(
    before: Relation, after: Relation, known: Relation, gone: Relation, come: Keys, size: int
) -> Touched:
    """The nodes of components that a few edges change."""
    left = after if not len(come) else before.difference(gone)
    rows: dict[int, Ids] = {}  # of each node that was asked for: the members of its component

    def members(node: int) -> Ids:
        if node not in rows:
            rows[node] = _objects(known, node)
        return rows[node]

    part_of: dict[int, int] = {}  # nodes that are not connected with most of their component
    broken: set[int] = set()  # components, by their least node
    met = 0
    if len(gone):
        ends = _ends(gone.keys())
        leasts = [int(members(end)[0]) for end in ends.tolist()]
        distinct = sorted(set(leasts))
        where = np.array([distinct.index(least) for least in leasts], np.int64)
        graph, back = layers(left), layers(turned(left))
        nodes, labels, met = spread(ends, where, len(distinct), size, *graph, *back)
        part_of = dict(zip(nodes.tolist(), labels.tolist(), strict=True))
        # A node of its own had an edge to itself, which is gone.
        broken = {
            int(members(end)[0])
            for end in ends.tolist()
            if end in part_of or len(members(end)) == 1
        }
    names = _Names()

    def name(node: int) -> tuple[str, int]:
        if node in part_of:
            return "part", part_of[node]
        row = members(node)
        return ("rest", int(row[0])) if len(row) else ("new", node)

    touched = set(broken)
    fresh = set()
    for key in come.tolist():
        one, two = name(key >> 32), name(key & 0xFFFFFFFF)
        names.unite(one, two)
        if one != two:
            touched |= {number for kind, number in (one, two) if kind == "rest"}
        fresh |= {number for kind, number in (one, two) if kind == "new"}
    found: list[tuple[Ids, Ids, Ids]] = []
    for place, least in enumerate(sorted(touched), 1):
        row = members(least)
        parts: dict[int, list[int]] = {}
        for node in row.tolist() if least in broken else ():
            if node in part_of:
                parts.setdefault(part_of[node], []).append(node)
        new = np.zeros(len(row), np.uint32)
        rest = len(row) - sum(map(len, parts.values()))
        if rest > 1 or ("rest", least) in names or _turns(left, _other(row, part_of)):
            new[:] = names.number(("rest", least))
        for part, nodes_of in parts.items():
            alone = len(nodes_of) == 1 and ("part", part) not in names
            number = 0 if alone and not _turns(left, nodes_of[0]) else names.number(("part", part))
            new[np.searchsorted(row, nodes_of)] = number
        found.append((row, np.full(len(row), place, np.uint32), new))
    for node in sorted(fresh):
        number = names.number(("new", node))
        found.append(tuple(np.array([n], np.uint32) for n in (node, 0, number)))  # type: ignore[arg-type]
    if not found:
        nothing = np.zeros(0, np.uint32)
        return nothing, nothing, nothing, met
    nodes, old, new = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(nodes)
    return nodes[order], old[order], new[order], met


class _Names:
    """Which parts are one component."""

    def __init__(self) -> None:
        self._parents: dict[tuple[str, int], tuple[str, int]] = {}
        self._numbers: dict[tuple[str, int], int] = {}

    def __contains__(self, name: tuple[str, int]) -> bool:
        return name in self._parents

    def unite(self, one: tuple[str, int], two: tuple[str, int]) -> None:
        """Make two components one."""
        self._parents[self._root(one)] = self._root(two)

    def _root(self, name: tuple[str, int]) -> tuple[str, int]:
        while self._parents.setdefault(name, name) != name:
            name = self._parents[name]
        return name

    def number(self, name: tuple[str, int]) -> int:
        """The same number above 0 for all names of one component."""
        return self._numbers.setdefault(self._root(name), len(self._numbers) + 1)


def _ends(edges: Keys) -> Ids:
    return as_set(np.concatenate([edges >> HIGH, edges & LOW])).astype(np.uint32)


def _objects(relation: Relation, node: int) -> Ids:
    """The objects of one subject, in order."""
    bounds = np.array([node, node + 1], np.uint64) << HIGH
    stretches = []
    for run in relation.runs:
        begin, end = np.searchsorted(run.keys, bounds)
        if begin < end:
            stretches.append(run.keys[begin:end])
    if not stretches:
        return np.zeros(0, np.uint32)
    keys = np.sort(np.concatenate(stretches)) if len(stretches) > 1 else stretches[0]
    if relation.dead:
        keys = keys[~relation.died(keys)]
    return (keys & LOW).astype(np.uint32)


def _other(row: Ids, part_of: dict[int, int]) -> int:
    """The first node that is in no part of its own, if there is one."""
    return next((node for node in row.tolist() if node not in part_of), 0)


def _turns(edges: Relation, node: int) -> bool:
    """Whether there is an edge from the node to itself."""
    return bool(edges.contains(np.array([node << 32 | node], np.uint64))[0])


def _all(before: Relation, after: Relation, size: int) -> Touched:
    """The nodes of components that differ, by finding all of them."""
    old, new = (_labels(relation.keys(), size) for relation in (before, after))
    moved = old != new
    changed = np.zeros((2, size + 1), bool)
    changed[0, old[moved]] = changed[1, new[moved]] = True
    changed[:, 0] = False
    nodes = np.flatnonzero(changed[0, old] | changed[1, new]).astype(np.uint32)
    return nodes, old[nodes], new[nodes], len(before)


def _labels(edges: Keys, size: int) -> Ids:
    """For each node the number of its component: its least node, plus 1."""
    labels = np.zeros(size, np.uint32)
    label(edges, labels)
    return labels


def _pairs(nodes: Ids, together: Ids, apart: Ids, budget: Budget) -> Keys:
    """The pairs of nodes that are in one component by the first names, and not by the second."""
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
    """The least node of a component; paths are cut in half on the way."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@compiled
def label(edges: Keys, labels: Ids) -> None:
    """The least node of each component, plus 1, for nodes with edges."""
    parents = np.arange(len(labels)).astype(np.uint32)
    for key in edges:
        a = root(parents, np.uint32(key >> np.uint64(32)))
        b = root(parents, np.uint32(key & np.uint64(0xFFFFFFFF)))
        if a < b:
            parents[b] = a
        else:
            parents[a] = b
    for key in edges:
        for end in (key >> np.uint64(32), key & np.uint64(0xFFFFFFFF)):
            labels[end] = root(parents, np.uint32(end)) + np.uint32(1)


@inlined
def collect(
    keys: Keys, starts: Offsets, more: Keys, dead: Keys, node: np.uint64, found: Ids, n: int
) -> int:
    """Put the objects of a node behind the first n that were found."""
    low32, high32 = np.uint64(0xFFFFFFFF), np.uint64(32)
    d = lower(dead, node << high32)
    for i in range(first(keys, starts, node), first(keys, starts, node + np.uint64(1))):
        key = keys[i]
        while d < len(dead) and dead[d] < key:
            d += 1
        if d < len(dead) and dead[d] == key:
            continue
        found[n] = key & low32
        n += 1
    i = lower(more, node << high32)
    while i < len(more) and more[i] >> high32 == node:
        found[n] = more[i] & low32
        n += 1
        i += 1
    return n


@compiled
def spread(
    ends: Ids,
    where: Offsets,
    components: int,
    size: int,
    keys: Keys,
    starts: Offsets,
    more: Keys,
    dead: Keys,
    keys2: Keys,
    starts2: Offsets,
    more2: Keys,
    dead2: Keys,
) -> tuple[Ids, Ids, int]:
    """Search from the ends in turns, until one search is left in each of their components.

    Searches that meet are one. Gives the nodes of those that are complete, each with the number of
    its search, and the edges met.
    """
    none = np.uint32(0xFFFFFFFF)
    groups = len(ends)
    labels = np.zeros(size, np.uint32)  # search of each node, plus 1
    following = np.empty(size, np.uint32)  # the next node in the queue of the same search
    parents = np.arange(groups).astype(np.uint32)
    heads, tails = np.full(groups, none), np.full(groups, none)
    complete = np.zeros(groups, np.uint8)
    running = np.zeros(components, np.int64)
    seen = np.empty(size, np.uint32)
    found = np.empty(2 * size, np.uint32)
    total = met = 0
    for g in range(groups):
        node = ends[g]
        labels[node] = g + 1
        following[node] = none
        heads[g] = tails[g] = node
        running[where[g]] += 1
        seen[total] = node
        total += 1
    going = True
    while going:
        going = False
        for g in range(groups):
            if parents[g] != g or complete[g] or running[where[g]] < 2:
                continue
            going = True
            node = heads[g]
            if node == none:
                complete[g] = 1
                running[where[g]] -= 1
                continue
            heads[g] = following[node]
            n = collect(keys, starts, more, dead, np.uint64(node), found, 0)
            n = collect(keys2, starts2, more2, dead2, np.uint64(node), found, n)
            met += n
            for i in range(n):
                z = found[i]
                if labels[z] == 0:
                    labels[z] = g + 1
                    seen[total] = z
                    total += 1
                    following[z] = none
                    if heads[g] == none:
                        heads[g] = z
                    else:
                        following[tails[g]] = z
                    tails[g] = z
                    continue
                other = root(parents, labels[z] - np.uint32(1))
                if other != g:
                    parents[other] = g
                    running[where[g]] -= 1
                    if heads[g] == none:
                        heads[g], tails[g] = heads[other], tails[other]
                    elif heads[other] != none:
                        following[tails[g]] = heads[other]
                        tails[g] = tails[other]
    nodes, searches = np.empty(total, np.uint32), np.empty(total, np.uint32)
    n = 0
    for i in range(total):
        search = root(parents, labels[seen[i]] - np.uint32(1))
        if complete[search]:
            nodes[n] = seen[i]
            searches[n] = search
            n += 1
    return nodes[:n], searches[:n], met


@compiled
def count(together: Ids, apart: Ids, by_part: Offsets, places: Offsets) -> None:
    """Where the pairs of each node begin."""
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
    """Write the pairs, component by component and part by part; each node has its place."""
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
