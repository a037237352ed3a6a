"""Compute connected components of many edges in tasks; no edge is sent to the driver.

Paper: Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii: Connected Components in MapReduce and
Beyond, SoCC 2014 (large-star and small-star, alternating).

Idea: a task contracts its edges to stars, which connect each node with the least node that it
reaches; at most one edge per node remains. If the remaining edges fit one task, that task computes
the components. Otherwise, in rounds, each node connects its greater neighbors with the least one
(large-star), then its smaller neighbors and itself with the least one (small-star), until all
components are stars. One job does both. Pairs are then computed from members: the task of a
component's least node sends the members to the partitions that own at least one of them, and each
of these tasks writes the pairs of its own members, so the work is linear in the size of the result.

Invariants: each step preserves connectivity; the greater node is first in an edge that is counted,
and in a round each edge is sent in both directions.
Cost: O(log² n) rounds by the paper's proof, five or six in practice. All neighbors of a node are in
one task, which therefore needs memory for the members of the largest component.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
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
from corollary.engines.spark.base import Base, SparkRun
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    ChunkBuffer,
    Key,
    iter_tables,
    partition_of,
    report_batch,
    reports_of,
)
from corollary.engines.spark.reports import TaskReport
from corollary.engines.spark.task import Batches
from corollary.lang.stratify import Predicate

# Tables of these jobs; no relation has the number NONE.
_LINK: Key = (NONE, 0, NONE, 2)  # two connected nodes
_LEAST: Key = (NONE, 1, NONE, 2)  # a node, and a candidate for the least node of its component
_MEMBERS: Mapping[bool, Key] = {  # node, other component, component: pairs gained, pairs lost
    True: (NONE, 2, NONE, 3),
    False: (NONE, 3, NONE, 3),
}
_BEFORE, _AFTER = Predicate("LEAST BEFORE"), Predicate("LEAST AFTER")
GONE = Predicate("GONE PAIRS")

_EDGES = 1 << 22  # edges that a task reads before it contracts them to stars
_BLOCK = 1 << 20  # pairs that are written together


def components(facts: SparkFacts, edge: Predicate, least: Predicate) -> SparkFacts:
    """Label each node with the least node of its component, as facts of `least`."""
    run, own = facts.run, facts.only([edge])
    if not len(own):
        return SparkFacts(run, run.nothing)
    frame, links, limit = own.chunks(), len(own), run.options.edges
    if links > limit:
        contracted = run.job("contraction", frame, Contract(run.partitions))
        frame, links = contracted.frame, sum(report["links"] for report in contracted.reports)
    if links <= limit:
        frame = run.shuffle(run.map_chunks(frame, Contract(run.partitions, to_one_task=True)))
    else:
        frame = _rounds(run, frame)
    labels = run.shuffle(run.map_chunks(frame, Labels(run.partitions)))
    done = run.job("components", labels, Least(run.key(least, 2)))
    return SparkFacts.of(Base.reported(run, done))


def _rounds(run: SparkRun, frame: DataFrame) -> DataFrame:
    """Alternate large-star and small-star until all components are stars."""
    while True:
        frame = run.select_kinds(frame, FRESH)
        frame = run.map_chunks(run.shuffle(frame), LargeStar(run.partitions))
        done = run.job("stars", run.shuffle(frame), SmallStar(run.partitions))
        frame = done.frame
        if not sum(report["changed"] for report in done.reports):
            return frame


def component_changes(
    edge: Predicate, pair: Predicate, before: SparkFacts, after: SparkFacts
) -> Difference[SparkFacts]:
    """Compute the pairs gained and lost, from the components that differ."""
    run = after.run
    labels = [components(facts, edge, n) for facts, n in ((before, _BEFORE), (after, _AFTER))]
    frame = run.union([facts.chunks() for facts in labels if len(facts)])
    keys = {run.key(name, 2): name is _AFTER for name in (_BEFORE, _AFTER)}
    names = {True: run.key(pair, 2), False: run.key(GONE, 2)}
    for work in (Compare(keys, run.partitions), Spread(run.partitions)):
        frame = run.map_chunks(run.shuffle(frame), work)
    done = run.job("pairs", run.shuffle(frame), Pairs(names, run.partitions))
    base = Base.reported(run, done)
    inserted = SparkFacts.of(base.only([pair]))
    deleted = SparkFacts.of(base.only([GONE]).renamed(GONE, pair))
    return Difference(
        inserted.collect_if_small(), deleted.collect_if_small(), len(before) + len(after)
    )


def report(out: ChunkBuffer, me: int, rows: int, start: float, **more: Any) -> pa.RecordBatch:
    """Report the work of a task."""
    return out.report(me, {"in": rows, "seconds": time.perf_counter() - start, **more})


def _both_ways(out: ChunkBuffer, links: Ids, partitions: int) -> None:
    for rows in (links, links[:, ::-1]):
        out.send(FRESH, _LINK, rows, 0, partitions)


@dataclass(frozen=True)
class Contract:
    """Contract edges to stars; nodes with a self-loop may be the least of their component.

    With `to_one_task`, all stars are sent to one task, otherwise to the tasks of both nodes.
    """

    partitions: int
    to_one_task: bool = False

    def __call__(self, batches: Batches) -> Batches:
        start, total = time.perf_counter(), 0
        out, parts, waiting = ChunkBuffer(), [np.zeros((0, 2), np.uint32)], 0
        for _, _, key, rows in iter_tables(batches):
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
                yield from out.drain()
        links = stars(np.concatenate(parts))
        if self.to_one_task:
            out.add(0, FRESH, _LINK, links)
        else:
            _both_ways(out, links, self.partitions)
        yield from out.drain()
        yield report(out, 0, total, start, links=len(links), sent=len(links))


def _neighbors(batches: Batches, out: ChunkBuffer) -> tuple[Ids, list[TaskReport]]:
    """Collect the links of a task, sorted; forward all other tables, and the reports."""
    parts, reports = [np.zeros((0, 2), np.uint32)], list[TaskReport]()
    for batch in batches:
        reports += reports_of(batch)
        for partition, kind, key, rows in iter_tables([batch]):
            if key == _LINK:
                parts.append(rows)
            else:
                out.add(partition, kind, key, rows)
    return _ordered(np.concatenate(parts)), reports


def _ordered(rows: Ids) -> Ids:
    """Sort pairs and remove duplicates."""
    keys = in_order(task.sort_keys(rows))
    found = np.empty((len(keys), 2), np.uint32)
    found[:, 0], found[:, 1] = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
    return found


def _groups(ids: Ids) -> tuple[Any, Any]:
    """Return the start of each run of equal ids, and the run number of each id."""
    begins = np.concatenate([[True], ids[1:] != ids[:-1]]) if len(ids) else np.zeros(0, bool)
    return np.flatnonzero(begins), np.cumsum(begins) - 1


@dataclass(frozen=True)
class Star(ABC):
    """Replaces the links of each node by others, preserving connectivity."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        start, out = time.perf_counter(), ChunkBuffer()
        links, reports = _neighbors(batches, out)
        changed, sent = self.replace(links, out)
        yield from out.drain()
        me = task.this_partition()
        for earlier in reports:
            yield report_batch(me, earlier)
        yield report(out, me, len(links), start, changed=changed, sent=sent)

    @abstractmethod
    def replace(self, links: Ids, out: ChunkBuffer) -> tuple[int, int]:
        """Send the new links; return how many differ and how many are sent."""


class LargeStar(Star):
    """Connect each greater neighbor of a node with the least of its neighbors and itself."""

    def replace(self, links: Ids, out: ChunkBuffer) -> tuple[int, int]:
        node, neighbor = links.T
        starts, group = _groups(node)
        least = np.minimum(node[starts], neighbor[starts])[group]
        greater = neighbor > node
        found = np.column_stack([neighbor[greater], least[greater]])
        # The greater node is first: its task applies small-star next.
        out.send(FRESH, _LINK, _ordered(found), 0, self.partitions)
        return int(np.count_nonzero(least[greater] < node[greater])), len(found)


class SmallStar(Star):
    """Connect each smaller neighbor of a node, and the node itself, with the least of them."""

    def replace(self, links: Ids, out: ChunkBuffer) -> tuple[int, int]:
        node, neighbor = links.T
        starts, group = _groups(node)
        least = neighbor[starts]
        others = neighbor != least[group]
        own = np.column_stack([node[starts], least])
        rest = np.column_stack([neighbor[others], least[group[others]]])
        found = _ordered(np.concatenate([own, rest]))
        _both_ways(out, found, self.partitions)
        return len(links) - len(starts), 2 * len(found)


@dataclass(frozen=True)
class Labels:
    """Label nodes with the least node of their component, from stars or from all edges."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = ChunkBuffer()
        links, _ = _neighbors(batches, out)
        if len(links):
            found = stars(links)
            least = in_order(found[:, 1])
            for rows in (found, np.column_stack([least, least])):
                out.send(FRESH, _LEAST, rows, 0, self.partitions)
        yield from out.drain()


@dataclass(frozen=True)
class Least:
    """Reduce the candidates for the least node of each node's component to the minimum."""

    key: Key

    def __call__(self, batches: Batches) -> Batches:
        me, start = task.this_partition(), time.perf_counter()
        parts = [np.zeros((0, 2), np.uint32)]
        parts += [rows for _, _, key, rows in iter_tables(batches) if key == _LEAST]
        rows = _ordered(np.concatenate(parts))
        starts, _ = _groups(rows[:, 0])
        out = ChunkBuffer()
        out.add(me, DERIVED, self.key, rows[starts])
        yield from out.drain()
        yield report(out, me, len(rows), start, sent=len(rows))


@dataclass(frozen=True)
class Compare:
    """Join each node's components before and after, and partition the rows by component."""

    keys: Mapping[Key, bool]  # whether a table has the components after the change
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        sides = {after: [np.zeros((0, 2), np.uint32)] for after in (False, True)}
        for _, _, key, rows in iter_tables(batches):
            sides[self.keys[key]].append(rows)
        old, new = (np.concatenate(sides[after]) for after in (False, True))
        nodes = in_order(np.concatenate([old[:, 0], new[:, 0]]))
        labels = []
        for rows in (old, new):
            found = np.full(len(nodes), NONE, np.uint32)
            found[np.searchsorted(nodes, rows[:, 0])] = rows[:, 1]
            labels.append(found)
        out = ChunkBuffer()
        for after, key in _MEMBERS.items():
            other, own = labels if after else labels[::-1]
            rows = np.column_stack([nodes, other, own])[own != NONE]
            out.send(FRESH, key, rows, 2, self.partitions)
        yield from out.drain()


def _members(batches: Batches) -> Iterator[tuple[bool, Key, Ids]]:
    """Yield the members of the components after and before the change, sorted by component."""
    tables = task.merge_chunks(batches)
    for after, key in _MEMBERS.items():
        if key in tables:
            rows = tables[key]
            yield after, key, rows[np.lexsort((rows[:, 0], rows[:, 2]))]


@dataclass(frozen=True)
class Spread:
    """Route components that are not a single component in the other graph to their members."""

    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = ChunkBuffer()
        for _, key, rows in _members(batches):
            node, other, own = rows.T
            starts, group = _groups(own)
            low, high = (f.reduceat(other, starts) for f in (np.minimum, np.maximum))
            differ = (low != high) | (low == NONE)
            rows, node, group = (a[differ[group]] for a in (rows, node, group))
            homes = partition_of(node, self.partitions)
            for partition in range(self.partitions):
                here = np.zeros(len(starts), bool)
                here[group[homes == partition]] = True
                out.add(partition, FRESH, key, rows[here[group]])
                if out.full:
                    yield from out.drain()
        yield from out.drain()


@dataclass(frozen=True)
class Pairs:
    """Emit the pairs of this task's nodes with other members of their components."""

    names: Mapping[bool, Key]
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        me, start, total = task.this_partition(), time.perf_counter(), 0
        out = ChunkBuffer()
        for after, _, rows in _members(batches):
            total += len(rows)
            mine = partition_of(rows[:, 0], self.partitions) == me
            for pairs in _pairs(rows, np.flatnonzero(mine)):
                out.add(me, DERIVED, self.names[after], pairs)
                yield from out.drain()
        yield report(out, me, total, start, sent=total)


def _pairs(rows: Ids, mine: Any) -> Iterator[Ids]:
    """Yield the pairs of a component, by first node, that the other graph does not connect."""
    node, other, own = rows.T
    starts, group = _groups(own)
    sizes = np.diff(np.append(starts, len(rows)))[group[mine]]
    ends = np.cumsum(sizes)
    begin = done = 0
    while begin < len(mine):
        end = max(begin + 1, int(np.searchsorted(ends, done + _BLOCK, side="right")))
        count = sizes[begin:end]
        one = np.repeat(mine[begin:end], count)
        first = np.repeat(starts[group[mine[begin:end]]] - (ends[begin:end] - count), count)
        two = first + np.arange(done, int(ends[end - 1]))
        chosen = (other[one] != other[two]) | (other[one] == NONE)
        yield np.column_stack([node[one], node[two]])[chosen]
        begin, done = end, int(ends[end - 1])
