"""Aggregates in tasks: instances are counted where they are, and groups made where they meet.

A task counts how often its instances have a value in a group, which is all that any function needs
to know; groups meet by their hash, and the functions are those of `core.aggregates`. Tasks know no
terms, so the driver tells them the values that occur, each once, and is told the results, each
once: it sees neither instances nor groups.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.compile import CompiledRule, Grouping, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.ids import in_order
from corollary.core.notices import Notices, gathering, note
from corollary.core.terms import term_of
from corollary.engines.spark import task
from corollary.engines.spark.base import Workspace, merged
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    RESULT,
    Gathering,
    Key,
    chunks_of,
    report_of,
)
from corollary.engines.spark.plan import DRIVER
from corollary.lang.stratify import Predicate

Batches = Iterator[pa.RecordBatch]
Numbers = npt.NDArray[np.int64]
Function = tuple[str, int]  # its name, and the variable that it is of

INSTANCES = Predicate("INSTANCES")
_VALUES: Key = (NONE, 0, NONE, 1)  # terms that functions ask for


def instances_rule(grouping: Grouping) -> CompiledRule:
    """The rule whose heads are the instances of an aggregate's atoms."""
    inner = max((v for p in grouping.patterns for v in p.variables), default=-1) + 1
    return CompiledRule(
        source=None,  # type: ignore[arg-type]  # engines do not look at it
        head=Pattern(INSTANCES, tuple(range(inner))),
        body=grouping.patterns,
        negated=(),
        conditions=(),
        groupings=(),
        bound=inner,
    )


def groups_of(grouping: Grouping, instances: SparkFacts, name: Predicate) -> SparkFacts:
    """The groups that have all their results, as facts of a name: group, then results."""
    workspace = instances.workspace
    nothing = workspace.embedded.facts({})
    if not len(instances):
        return SparkFacts(workspace, nothing)
    if instances.base is None:
        rows = instances.rows(INSTANCES)
        counted = [_counted(rows, grouping.group, function) for function in grouping.functions]
        table = _results(grouping, counted, workspace.dictionary)
        return SparkFacts(workspace, workspace.embedded.facts({name: table}))
    return _in_tasks(workspace, grouping, instances, name)


def _in_tasks(
    workspace: Workspace, grouping: Grouping, instances: SparkFacts, name: Predicate
) -> SparkFacts:
    partial = Partial(grouping, workspace.partitions)
    frame, _ = workspace.settled(workspace.over(instances.chunks(), partial))
    asked = workspace.collected(workspace.for_driver(frame)).get(_VALUES)
    ids = np.zeros(0, np.uint32) if asked is None else in_order(asked[:, 0])
    texts = workspace.dictionary.texts(ids)
    counted = workspace.exchanged(workspace.of_kinds(frame, FRESH))
    frame, reports = workspace.settled(workspace.over(counted, Totals(grouping, ids, texts)))
    note_dropped(grouping, sum(told["dropped"] for told in reports))
    # Together: a dictionary may have to ask for them.
    found = list(dict.fromkeys(text for told in reports for text in told["results"]))
    numbers = dict(zip(found, workspace.dictionary.encode(map(term_of, found)), strict=True))
    results = {
        told["partition"]: np.array([numbers[text] for text in told["results"]], np.uint32)
        for told in reports
    }
    group = len(grouping.group)
    named = Named(workspace.key(name, len(grouping.outer)), group, results, workspace.partitions)
    frame = workspace.over(workspace.of_kinds(frame, RESULT), named)
    base = merged(workspace, frame, task.Combine("union", workspace.make))
    return SparkFacts(workspace, workspace.embedded.facts({}), base).settled()


Counted = tuple[Ids, Ids, Numbers]  # groups, values, and how often each group has each value


def _counted(rows: Ids, group: Sequence[int], function: Function) -> Counted:
    """The values of each group with their number; of a count, there is one that is 0."""
    name, variable = function
    values = rows[:, [variable]] if name != "count" else np.zeros((len(rows), 1), np.uint32)
    return _added(np.column_stack([rows[:, list(group)], values]), np.ones(len(rows), np.int64))


def _added(rows: Ids, numbers: Numbers) -> Counted:
    """Rows of group and value, each once and in order, with their numbers added up."""
    order = np.argsort(task.keys_of(rows)) if rows.shape[1] <= 2 else np.lexsort(rows.T[::-1])
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    distinct = ordered[starts]
    return distinct[:, :-1], distinct[:, -1], np.add.reduceat(numbers[order], starts)


def _results(
    grouping: Grouping,
    counted: Sequence[Counted],
    dictionary: Dictionary,
) -> Ids:
    """Groups with the ids of their results, of those that have all of them."""
    columns: list[Any] = []
    for (name, _), (groups, values, numbers) in zip(grouping.functions, counted, strict=True):
        begins = np.concatenate([[True], (groups[1:] != groups[:-1]).any(axis=1)])
        if not columns:
            columns.append(groups[begins])
        group = np.cumsum(begins) - 1
        found = aggregate(name, values, group, int(group[-1]) + 1, dictionary, numbers)
        columns.append(found)
    table = np.column_stack(columns).astype(np.uint32)
    complete: Ids = table[(table[:, len(grouping.group) :] != NO_VALUE).all(axis=1)]
    note_dropped(grouping, len(table) - len(complete))
    return complete


def note_dropped(grouping: Grouping, count: int) -> None:
    """Report groups without a result."""
    note("W104", count, detail=", ".join(name for name, _ in grouping.functions))


@dataclass(frozen=True)
class Partial:
    """How often each group of a task's instances has each value, and which values there are."""

    grouping: Grouping
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out, parts, waiting = Gathering(), [], 0
        for _, _, _, rows in chunks_of(batches):
            parts.append(rows)
            waiting += len(rows)
            if waiting > 1 << 22:
                self._send(out, np.concatenate(parts))
                parts, waiting = [], 0
                yield from out.take()
        if parts:
            self._send(out, np.concatenate(parts))
        yield from out.take()

    def _send(self, out: Gathering, rows: Ids) -> None:
        for number, function in enumerate(self.grouping.functions):
            groups, values, numbers = _counted(rows, self.grouping.group, function)
            if function[0] != "count":
                out.add(DRIVER, FRESH, _VALUES, in_order(values)[:, None])
            low, high = numbers & 0xFFFFFFFF, numbers >> 32
            table = np.column_stack([_hashed(groups), groups, values, low, high])
            key = (number, NONE, NONE, table.shape[1])
            out.send(FRESH, key, table.astype(np.uint32), 0, self.partitions)


def _hashed(groups: Ids) -> Ids:
    """A number for each group; the first argument alone may have few values."""
    found = np.zeros(len(groups), np.uint32)
    for column in groups.T:
        found = found * np.uint32(0x9E3779B1) + column
    return found


@dataclass(frozen=True)
class Totals:
    """The results of groups, numbered by the task, which reports what they are."""

    grouping: Grouping
    ids: Ids
    texts: pa.LargeStringArray

    def __call__(self, batches: Batches) -> Batches:
        me = task.this_partition()
        tables = task.all_of(batches)
        results: list[str] = []
        out = Gathering()
        notices = Notices()
        if tables:
            dictionary = Dictionary()
            dictionary.encode_texts(self.texts)  # in the order of their ids
            counted = []
            for key in sorted(tables):
                rows = tables[key]
                numbers = rows[:, -2].astype(np.int64) + (rows[:, -1].astype(np.int64) << 32)
                groups, values, sums = _added(rows[:, 1:-2], numbers)
                if self.grouping.functions[key[0]][0] != "count":
                    values = np.searchsorted(self.ids, values).astype(np.uint32)
                counted.append((groups, values, sums))
            with gathering(notices):
                table = _results(self.grouping, counted, dictionary)
            group = len(self.grouping.group)
            distinct, place = np.unique(table[:, group:], return_inverse=True)
            table[:, group:] = place.reshape(table[:, group:].shape)
            results = dictionary.texts(distinct).to_pylist()
            out.add(me, RESULT, (0, NONE, NONE, table.shape[1]), table)
        yield from out.take()
        dropped = sum(notice.count for notice in notices.by_code.values())
        told = {"partition": me, "results": results, "dropped": dropped}
        yield report_of(me, json.dumps(told).encode())


@dataclass(frozen=True)
class Named:
    """Groups with the ids of their results, at home."""

    key: Key
    group: int
    results: Mapping[int, Ids]  # by the task that has found them
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for partition, _, _, rows in chunks_of(batches):
            table = rows.copy()
            table[:, self.group :] = self.results[partition][rows[:, self.group :]]
            out.send(DERIVED, self.key, table, 0, self.partitions)
        yield from out.take()
