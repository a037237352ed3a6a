"""Connected components of many edges, in tasks; the driver holds none of the edges.

Paper: Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii: Connected Components in MapReduce and
Beyond, SoCC 2014 (large-star and small-star, alternating).

Idea: a task replaces the edges that it has by stars, each node with the least one that it reaches:
that many edges are as few as there are nodes. If what is left fits one task, that task finds the
components. Else, in rounds, each node sees its neighbors and connects the greater ones with the
least (large-star), then the smaller ones and itself with the least (small-star), until all
components are stars. One job is both. Pairs are then found by members: the task of a component's
least node sends the members where one of them is at home, and that task writes its own members'
pairs, which are as many as the facts that are asked for.

Invariants: edges connect the same nodes after each step; a greater node stands first in an edge
that is counted, and in a round each edge is sent both ways.

Cost: O(log² n) rounds by the paper's proof, some five or six in practice. The neighbors of a node
meet in one task, so that it must have room for the members of the greatest component.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from corollary.core.connected import stars
from corollary.core.dictionary import Ids
from corollary.core.engine import Difference
from corollary.core.ids import in_order
from corollary.engines.spark import task
from corollary.engines.spark.base import Base, Workspace, counts_of
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    Gathering,
    Key,
    chunks_of,
    partition_of,
    report_of,
    reports_of,
)
from corollary.lang.stratify import Predicate

Batches = Iterator[pa.RecordBatch]
# What one job did: its name, the reports of its tasks, seconds.
Tell = Callable[[str, Sequence[Mapping[str, Any]], float], None]

# Tables of these jobs; no relation has the number NONE.
_LINK: Key = (NONE, 0, NONE, 2)  # two nodes that are connected
_LEAST: Key = (NONE, 1, NONE, 2)  # a node, and one that may be the least of its component
_MEMBERS: Mapping[bool, Key] = {  # node, other component, component: pairs that come, that go
    True: (NONE, 2, NONE, 3),
    False: (NONE, 3, NONE, 3),
}
_BEFORE, _AFTER = Predicate("LEAST BEFORE"), Predicate("LEAST AFTER")
_GONE = Predicate("GONE PAIRS")

_EDGES = 1 << 22  # edges that a task reads before it makes stars of them
_BLOCK = 1 << 20  # pairs that are written at a time


def components(
    facts: SparkFacts, edge: Predicate, least: Predicate, limit: int, tell: Tell
) -> SparkFacts:
    """Each node with the least node of its component, as facts of `least`.

    At most `limit` edges are for one task.
    """
    workspace, own = facts.workspace, facts.only([edge])
    if not len(own):
        return SparkFacts(workspace, workspace.embedded.facts({}))
    frame, contract = own.chunks(), Contract(workspace.partitions)
    start = time.perf_counter()
    if len(own) > limit:
        frame, reports = workspace.settled(workspace.over(frame, contract))
        tell("contraction", reports, time.perf_counter() - start)
        links = sum(report["links"] for report in reports)
    if len(own) <= limit or links <= limit:
        together = workspace.over(frame, Contract(workspace.partitions, together=True))
        frame = workspace.over(workspace.exchanged(together), Labels(workspace.partitions))
    else:
        frame = _rounds(workspace, frame, tell)
        frame = workspace.over(frame, Labels(workspace.partitions))
    start = time.perf_counter()
    key = workspace.key(least, 2)
    done = workspace.over(workspace.exchanged(frame), Least(key))
    kept, reports = workspace.settled(done)
    tell("components", reports, time.perf_counter() - start)
    base = Base.of(workspace, [kept], *counts_of(workspace, reports))
    return SparkFacts(workspace, workspace.embedded.facts({}), base)


def _rounds(workspace: Workspace, frame: DataFrame, tell: Tell) -> DataFrame:
    """Large-star and small-star until all components are stars."""
    while True:
        start = time.perf_counter()
        frame = workspace.of_kinds(frame, FRESH)
        for star in (LargeStar, SmallStar):
            frame = workspace.over(workspace.exchanged(frame), star(workspace.partitions))
        frame, reports = workspace.settled(frame)
        tell("stars", reports, time.perf_counter() - start)
        if not sum(report["changed"] for report in reports):
            return frame


def reconnected(
    edge: Predicate,
    pair: Predicate,
    before: SparkFacts,
    after: SparkFacts,
    limit: int,
    tell: Tell,
) -> Difference[SparkFacts]:
    """By what the pairs of connected components differ: those of components that differ."""
    workspace = after.workspace
    labels = [
        components(facts, edge, name, limit, tell)
        for facts, name in ((before, _BEFORE), (after, _AFTER))
    ]
    start = time.perf_counter()
    frame = workspace.united([facts.chunks() for facts in labels if len(facts)])
    keys = {workspace.key(name, 2): name is _AFTER for name in (_BEFORE, _AFTER)}
    names = {True: workspace.key(pair, 2), False: workspace.key(_GONE, 2)}
    for work in (
        Compare(keys, workspace.partitions),
        Spread(workspace.partitions),
        Pairs(names, workspace.partitions),
    ):
        frame = workspace.over(workspace.exchanged(frame), work)
    kept, reports = workspace.settled(frame)
    tell("pairs", reports, time.perf_counter() - start)
    base = Base.of(workspace, [kept], *counts_of(workspace, reports))
    nothing = workspace.embedded.facts({})
    inserted = SparkFacts(workspace, nothing, base.only([pair]))
    deleted = SparkFacts(workspace, nothing, base.only([_GONE]).renamed(_GONE, pair))
    return Difference(inserted.settled(), deleted.settled(), len(before) + len(after))


def report(me: int, rows: int, start: float, **more: Any) -> pa.RecordBatch:
    """What a task of these jobs did."""
    found = {"partition": me, "in": rows, "seconds": time.perf_counter() - start, **more}
    return report_of(me, json.dumps(found).encode())


def _both_ways(out: Gathering, links: Ids, partitions: int) -> None:
    for rows in (links, links[:, ::-1]):
        out.send(FRESH, _LINK, rows, 0, partitions)


@dataclass(frozen=True)
class Contract:
    """Edges to stars; nodes that have an edge to themselves may be the least of their component.

    The stars are for one task if they are `together`, else for those of both nodes.
    """

    partitions: int
    together: bool = False

    def __call__(self, batches: Batches) -> Batches:
        start, total = time.perf_counter(), 0
        out, parts, waiting = Gathering(), [np.zeros((0, 2), np.uint32)], 0
        for _, _, key, rows in chunks_of(batches):
            total += len(rows)
            if key == _LEAST:
                out.send(FRESH, _LEAST, rows, 0, self.partitions)
                continue
            loops = rows[:, 0] == rows[:, 1]
            out.send(FRESH, _LEAST, rows[loops], 0, self.partitions)
            parts.append(rows[~loops])
            waiting += len(parts[-1])
            if waiting > _EDGES:
                parts, waiting = [stars(np.concatenate(parts))], 0
            if out.full:
                yield from out.take()
        links = stars(np.concatenate(parts))
        if self.together:
            out.add(0, FRESH, _LINK, links)
        else:
            _both_ways(out, links, self.partitions)
        yield from out.take()
        yield report(0, total, start, links=len(links), sent=len(links))


def _neighbors(batches: Batches, out: Gathering) -> tuple[Ids, list[bytes]]:
    """The links of a task, in order; what is no link goes on, as do reports."""
    parts, reports = [np.zeros((0, 2), np.uint32)], []
    for batch in batches:
        reports += reports_of(batch)
        for partition, kind, key, rows in chunks_of([batch]):
            if key == _LINK:
                parts.append(rows)
            else:
                out.add(partition, kind, key, rows)
    return _ordered(np.concatenate(parts)), reports


def _ordered(rows: Ids) -> Ids:
    """Pairs in order, each once."""
    keys = in_order(task.keys_of(rows))
    found = np.empty((len(keys), 2), np.uint32)
    found[:, 0], found[:, 1] = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
    return found


def _groups(ids: Ids) -> tuple[Any, Any]:
    """Where each run of equal ids begins, and the number of each one's run."""
    begins = np.concatenate([[True], ids[1:] != ids[:-1]]) if len(ids) else np.zeros(0, bool)
    return np.flatnonzero(begins), np.cumsum(begins) - 1


@dataclass(frozen=True)
class LargeStar:
    """Each greater neighbor of a node with the least of its neighbors and itself."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        start, out = time.perf_counter(), Gathering()
        links, reports = _neighbors(batches, out)
        node, neighbor = links.T
        starts, group = _groups(node)
        least = np.minimum(node[starts], neighbor[starts])[group]
        greater = neighbor > node
        found = np.column_stack([neighbor[greater], least[greater]])
        # The greater node is first, whose task makes a small star of it.
        out.send(FRESH, _LINK, _ordered(found), 0, self.partitions)
        yield from out.take()
        changed = int(np.count_nonzero(least[greater] < node[greater]))
        me = task.this_partition()
        for told in reports:
            yield report_of(me, told)
        yield report(me, len(links), start, changed=changed, sent=len(found))


@dataclass(frozen=True)
class SmallStar:
    """Each smaller neighbor of a node, and the node, with the least of them."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        start, out = time.perf_counter(), Gathering()
        links, reports = _neighbors(batches, out)
        node, neighbor = links.T
        starts, group = _groups(node)
        least = neighbor[starts]
        others = neighbor != least[group]
        found = _ordered(
            np.concatenate(
                [
                    np.column_stack([node[starts], least]),
                    np.column_stack([neighbor[others], least[group[others]]]),
                ]
            )
        )
        _both_ways(out, found, self.partitions)
        yield from out.take()
        me = task.this_partition()
        for told in reports:
            yield report_of(me, told)
        changed = len(links) - len(starts)
        yield report(me, len(links), start, changed=changed, sent=2 * len(found))


@dataclass(frozen=True)
class Labels:
    """Stars, or edges that are all here, as nodes with the least of their component."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        links, _ = _neighbors(batches, out)
        if len(links):
            found = stars(links)
            least = in_order(found[:, 1])
            for rows in (found, np.column_stack([least, least])):
                out.send(FRESH, _LEAST, rows, 0, self.partitions)
        yield from out.take()


@dataclass(frozen=True)
class Least:
    """Of what may be the least node of a node's component, the least."""

    key: Key

    def __call__(self, batches: Batches) -> Batches:
        me, start = task.this_partition(), time.perf_counter()
        parts = [np.zeros((0, 2), np.uint32)]
        parts += [rows for _, _, key, rows in chunks_of(batches) if key == _LEAST]
        rows = _ordered(np.concatenate(parts))
        starts, _ = _groups(rows[:, 0])
        out = Gathering()
        out.add(me, DERIVED, self.key, rows[starts])
        yield from out.take()
        counts = [[list(self.key), len(starts)]] if len(starts) else []
        yield report(me, len(rows), start, counts=counts, sent=len(rows))


@dataclass(frozen=True)
class Compare:
    """Each node with its components before and after, where they are gathered by component."""

    keys: Mapping[Key, bool]  # whether a table is of components afterwards
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        sides = {after: [np.zeros((0, 2), np.uint32)] for after in (False, True)}
        for _, _, key, rows in chunks_of(batches):
            sides[self.keys[key]].append(rows)
        old, new = (np.concatenate(sides[after]) for after in (False, True))
        nodes = in_order(np.concatenate([old[:, 0], new[:, 0]]))
        labels = []
        for rows in (old, new):
            found = np.full(len(nodes), NONE, np.uint32)
            found[np.searchsorted(nodes, rows[:, 0])] = rows[:, 1]
            labels.append(found)
        out = Gathering()
        for after, key in _MEMBERS.items():
            apart, together = labels if after else labels[::-1]
            rows = np.column_stack([nodes, apart, together])[together != NONE]
            out.send(FRESH, key, rows, 2, self.partitions)
        yield from out.take()


def _members(batches: Batches) -> Iterator[tuple[bool, Key, Ids]]:
    """The members of components that come, and of those that go, by component."""
    tables = task.all_of(batches)
    for after, key in _MEMBERS.items():
        if key in tables:
            rows = tables[key]
            yield after, key, rows[np.lexsort((rows[:, 0], rows[:, 2]))]


@dataclass(frozen=True)
class Spread:
    """Components that are not one component in the other graph, to where their members are."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for _, key, rows in _members(batches):
            node, apart, together = rows.T
            starts, group = _groups(together)
            low, high = (f.reduceat(apart, starts) for f in (np.minimum, np.maximum))
            differ = (low != high) | (low == NONE)
            rows, node, group = (a[differ[group]] for a in (rows, node, group))
            homes = partition_of(node, self.partitions)
            for partition in range(self.partitions):
                here = np.zeros(len(starts), bool)
                here[group[homes == partition]] = True
                out.add(partition, FRESH, key, rows[here[group]])
                if out.full:
                    yield from out.take()
        yield from out.take()


@dataclass(frozen=True)
class Pairs:
    """The pairs of this task's nodes with other members of their components."""

    names: Mapping[bool, Key]
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        me, start, total = task.this_partition(), time.perf_counter(), 0
        counts = []
        for after, _, rows in _members(batches):
            total += len(rows)
            out, count, key = Gathering(), 0, self.names[after]
            mine = partition_of(rows[:, 0], self.partitions) == me
            for pairs in _pairs(rows, np.flatnonzero(mine)):
                out.add(me, DERIVED, key, pairs)
                count += len(pairs)
                yield from out.take()
            if count:
                counts.append([list(key), count])
        yield report(me, total, start, counts=counts, sent=total)


def _pairs(rows: Ids, mine: Any) -> Iterator[Ids]:
    """Pairs of a component, by the places of their first nodes, that are in none otherwise."""
    node, apart, together = rows.T
    starts, group = _groups(together)
    sizes = np.diff(np.append(starts, len(rows)))[group[mine]]
    ends = np.cumsum(sizes)
    begin = done = 0
    while begin < len(mine):
        end = max(begin + 1, int(np.searchsorted(ends, done + _BLOCK, side="right")))
        count = sizes[begin:end]
        one = np.repeat(mine[begin:end], count)
        first = np.repeat(starts[group[mine[begin:end]]] - (ends[begin:end] - count), count)
        two = first + np.arange(done, int(ends[end - 1]))
        chosen = (apart[one] != apart[two]) | (apart[one] == NONE)
        yield np.column_stack([node[one], node[two]])[chosen]
        begin, done = end, int(ends[end - 1])
