"""Aggregate in tasks: partial counts per partition, then a shuffle by group.

A task counts the occurrences of each value in each group of its instances; every function needs
only these counts. Partial counts are shuffled by the hash of the group and then reduced by the
functions of `core.aggregates`. Tasks have no terms: the driver broadcasts the distinct values, and
tasks return the distinct results. The driver sees neither instances nor groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.aggregates import NO_VALUE, aggregate
from corollary.core.compile import AggregateFunction, CompiledRule, Grouping, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.ids import in_order
from corollary.core.notices import Notices, gathering, note
from corollary.core.terms import term_of
from corollary.engines.spark import task
from corollary.engines.spark.base import SparkRun, merge
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    RESULT,
    ChunkBuffer,
    Key,
    Table,
    iter_tables,
    report_batch,
)
from corollary.engines.spark.plan import DRIVER
from corollary.engines.spark.task import Batches, Numbers
from corollary.lang.stratify import Predicate

INSTANCES = Predicate("INSTANCES")
_VALUES: Key = (NONE, 0, NONE, 1)  # terms whose values the functions need


def instances_rule(grouping: Grouping) -> CompiledRule:
    """Compile a rule whose heads are the instances of an aggregate's atoms."""
    inner = max((v for p in grouping.patterns for v in p.variables), default=-1) + 1
    return task.local_rule(Pattern(INSTANCES, tuple(range(inner))), grouping.patterns, inner)


def groups_of(grouping: Grouping, instances: SparkFacts, name: Predicate) -> SparkFacts:
    """Aggregate by group: facts of `name` with group and results, for groups with all results."""
    run = instances.run
    if not len(instances):
        return SparkFacts(run, run.nothing)
    if instances.base is None:
        rows = instances.rows(INSTANCES)
        counted = [_counted(rows, grouping.group, function) for function in grouping.functions]
        table = _results(grouping, counted, run.dictionary)
        return SparkFacts(run, run.embedded.facts({name: table}))
    return _in_tasks(run, grouping, instances, name)


def _in_tasks(
    run: SparkRun, grouping: Grouping, instances: SparkFacts, name: Predicate
) -> SparkFacts:
    partial = PartialCounts(grouping, run.partitions)
    frame = run.checkpoint(instances.chunks(), partial).frame
    value_rows = run.collect(run.select_for_driver(frame)).get(_VALUES)
    ids = np.zeros(0, np.uint32) if value_rows is None else in_order(value_rows[:, 0])
    texts = run.dictionary.texts(ids)
    counted = run.shuffle(run.select_kinds(frame, FRESH))
    totals = run.checkpoint(counted, GroupTotals(grouping, ids, texts))
    reports = totals.reports
    note_dropped(grouping, sum(report["dropped"] for report in reports))
    # Encoded in one batch: each lookup of a dictionary may be a query.
    found = list(dict.fromkeys(text for report in reports for text in report["results"]))
    numbers = dict(zip(found, run.dictionary.encode(map(term_of, found)), strict=True))
    results = {
        report["partition"]: np.array([numbers[text] for text in report["results"]], np.uint32)
        for report in reports
    }
    group = len(grouping.group)
    named = AssignResultIds(run.key(name, len(grouping.outer)), group, results, run.partitions)
    frame = run.map_chunks(run.select_kinds(totals.frame, RESULT), named)
    base = merge(run, frame, task.Combine("union", run.make_engine))
    return SparkFacts.of(base).collect_if_small()


Counted = tuple[Ids, Ids, Numbers]  # groups, values, and how often each group has each value


def _counted(rows: Ids, group: Sequence[int], function: AggregateFunction) -> Counted:
    """Count the values of each group; a function that counts rows has the single value 0."""
    values = rows[:, [function.variable]]
    if function.counts_rows:
        values = np.zeros((len(rows), 1), np.uint32)
    return _added(np.column_stack([rows[:, list(group)], values]), np.ones(len(rows), np.int64))


def _added(rows: Ids, numbers: Numbers) -> Counted:
    """Sum the numbers of equal rows (group and value); the result is distinct and sorted."""
    order = np.argsort(task.sort_keys(rows)) if rows.shape[1] <= 2 else np.lexsort(rows.T[::-1])
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    distinct = ordered[starts]
    return distinct[:, :-1], distinct[:, -1], np.add.reduceat(numbers[order], starts)


def _results(
    grouping: Grouping,
    counted: Sequence[Counted],
    dictionary: Dictionary,
) -> Ids:
    """Compute the ids of the results of each group; drop groups that lack a result."""
    columns: list[Any] = []
    for function, (groups, values, numbers) in zip(grouping.functions, counted, strict=True):
        begins = np.concatenate([[True], (groups[1:] != groups[:-1]).any(axis=1)])
        if not columns:
            columns.append(groups[begins])
        group = np.cumsum(begins) - 1
        found = aggregate(function, values, group, int(group[-1]) + 1, dictionary, numbers)
        columns.append(found)
    table = np.column_stack(columns).astype(np.uint32)
    complete: Ids = table[(table[:, len(grouping.group) :] != NO_VALUE).all(axis=1)]
    note_dropped(grouping, len(table) - len(complete))
    return complete


def note_dropped(grouping: Grouping, count: int) -> None:
    """Report groups without a result."""
    note("W104", count, detail=", ".join(function.name for function in grouping.functions))


@dataclass(frozen=True)
class PartialCounts:
    """Count the values in each group of a task's instances, and collect the distinct values."""

    grouping: Grouping
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out, parts, waiting = ChunkBuffer(), [], 0
        for _, _, _, rows in iter_tables(batches):
            parts.append(rows)
            waiting += len(rows)
            if waiting > 1 << 22:
                self._send(out, np.concatenate(parts))
                parts, waiting = [], 0
                yield from out.drain()
        if parts:
            self._send(out, np.concatenate(parts))
        yield from out.drain()

    def _send(self, out: ChunkBuffer, rows: Ids) -> None:
        for number, function in enumerate(self.grouping.functions):
            groups, values, numbers = _counted(rows, self.grouping.group, function)
            if function.name != "count":
                out.add(DRIVER, FRESH, _VALUES, in_order(values)[:, None])
            low, high = numbers & 0xFFFFFFFF, numbers >> 32
            table = np.column_stack([_hashed(groups), groups, values, low, high])
            key = (number, NONE, NONE, table.shape[1])
            out.send(FRESH, key, table.astype(np.uint32), 0, self.partitions)


def _hashed(groups: Ids) -> Ids:
    """Hash each group by all its arguments; the first argument alone may have few values."""
    found = np.zeros(len(groups), np.uint32)
    for column in groups.T:
        found = found * np.uint32(0x9E3779B1) + column
    return found


@dataclass(frozen=True)
class GroupTotals:
    """Compute the results of groups; the task numbers the results and reports their texts."""

    grouping: Grouping
    ids: Ids
    texts: pa.LargeStringArray

    def __call__(self, batches: Batches) -> Batches:
        me = task.this_partition()
        tables = task.merge_chunks(batches)
        results: list[str] = []
        out = ChunkBuffer()
        notices = Notices()
        if tables:
            dictionary = Dictionary()
            dictionary.encode_texts(self.texts)  # in the order of their ids
            counted = []
            for key in sorted(tables):
                rows = tables[key]
                numbers = rows[:, -2].astype(np.int64) + (rows[:, -1].astype(np.int64) << 32)
                groups, values, sums = _added(rows[:, 1:-2], numbers)
                if self.grouping.functions[key[0]].name != "count":
                    values = np.searchsorted(self.ids, values).astype(np.uint32)
                counted.append((groups, values, sums))
            with gathering(notices):
                table = _results(self.grouping, counted, dictionary)
            group = len(self.grouping.group)
            distinct, place = np.unique(table[:, group:], return_inverse=True)
            table[:, group:] = place.reshape(table[:, group:].shape)
            results = dictionary.texts(distinct).to_pylist()
            out.add(me, RESULT, (0, NONE, NONE, table.shape[1]), table)
        yield from out.drain()
        dropped = sum(notice.count for notice in notices.by_code.values())
        report = {"partition": me, "results": results, "dropped": dropped}
        yield report_batch(me, report)


@dataclass(frozen=True)
class AssignResultIds(task.TableTask):
    """Replace results by their ids, and hash-partition the groups."""

    key: Key
    group: int
    results: Mapping[int, Ids]  # by the task that computed them
    partitions: int

    def add(self, table: Table, out: ChunkBuffer) -> None:
        rows = table.rows.copy()
        rows[:, self.group :] = self.results[table.partition][rows[:, self.group :]]
        out.send(DERIVED, self.key, rows, 0, self.partitions)
