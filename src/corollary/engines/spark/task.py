"""Task functions: apply the embedded engine to tables and emit tables.

Each class here is a function for `DataFrame.mapInArrow` over chunks (`packing`). All input of a
task is in its chunks and in the pickled function, so a lost executor only costs a retry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.compile import CompiledRule, Condition, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine
from corollary.core.ids import Contained, in_order, row_groups
from corollary.engines.spark import rows as fact_rows
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    RESULT,
    STATE,
    ChunkBuffer,
    Key,
    Packed,
    Table,
    iter_tables,
    report_batch,
    reports_of,
)
from corollary.engines.spark.plan import TRIPLE_NUMBER
from corollary.engines.spark.reports import TaskReport
from corollary.lang.stratify import Predicate

Batches = Iterator[pa.RecordBatch]
OverArrow = Callable[[Batches], Batches]
Embedded = Callable[[Dictionary], Engine[Any]]
Numbers = npt.NDArray[np.int64]


def this_partition() -> int:
    """Return the partition number of the running task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "tasks run inside Spark"
    return context.partitionId()


class TableTask(ABC):
    """A task that processes its tables one by one."""

    def __call__(self, batches: Batches) -> Batches:
        out = ChunkBuffer()
        for table in iter_tables(batches):
            self.add(table, out)
            if out.full:
                yield from out.drain()
        yield from out.drain()

    @abstractmethod
    def add(self, table: Table, out: ChunkBuffer) -> None:
        """Process a table and add the results to the output."""


def local_rule(
    head: Pattern,
    body: Sequence[Pattern],
    bound: int,
    negated: Sequence[Pattern] = (),
    conditions: Sequence[Condition] = (),
) -> CompiledRule:
    """Compile a rule for the embedded engine, which does not read its source."""
    return CompiledRule(
        None,  # type: ignore[arg-type]
        head,
        tuple(body),
        tuple(negated),
        tuple(conditions),
        (),
        bound,
    )


def local_predicate(key: Key) -> Predicate:
    """Return the predicate of a key inside a task: without terms, and never wide."""
    return Predicate(f"{key[0]} {key[1]} {key[2]}")


def split_triples(rows: Ids, type_id: int) -> Iterator[tuple[Key, Ids]]:
    """Split triples by property, and those of rdf:type by class."""
    yield from _split(rows, 1, lambda property_: (TRIPLE_NUMBER, property_, NONE, 2), type_id)


def _split(
    rows: Ids, column: int, key: Callable[[int], Key], type_id: int = NONE
) -> Iterator[tuple[Key, Ids]]:
    for label, places in row_groups(rows[:, column]):
        left = np.delete(rows[places], column, axis=1)
        if label == type_id:
            yield from _split(left, 1, lambda c: (TRIPLE_NUMBER, type_id, c, 1))
        else:
            yield key(label), left


def narrow(key: Key, rows: Ids, type_id: int, extra: int = 0) -> Iterator[tuple[Key, Ids]]:
    """Split facts of a wide relation into narrow ones; keep the last `extra` columns."""
    if key[0] == TRIPLE_NUMBER and key[2] == NONE and key[1] in (NONE, type_id):
        if key[1] == type_id:
            parts = _split(rows, 1, lambda c: (TRIPLE_NUMBER, type_id, c, 1))
        else:
            parts = split_triples(rows, type_id)
        for (relation, property_, member_of, columns), part in parts:
            yield (relation, property_, member_of, columns + extra), part
    else:
        yield (*key[:3], key[3] + extra), rows


def sort_keys(rows: Ids) -> npt.NDArray[Any]:
    """Convert rows to values that can be sorted and compared."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    if rows.shape[1] == 2:
        return rows[:, 0].astype(np.uint64) << np.uint64(32) | rows[:, 1]
    big_endian = np.ascontiguousarray(rows.astype(">u4"))
    return big_endian.view(np.dtype((np.void, 4 * rows.shape[1])))[:, 0]


def distinct(rows: Ids) -> Ids:
    """Remove duplicate rows; the result is sorted.

    >>> distinct(np.array([[2, 1], [1, 2], [2, 1]], np.uint32)).tolist()
    [[1, 2], [2, 1]]
    """
    if not rows.shape[1]:
        return rows[:1]
    _, places = np.unique(sort_keys(rows), return_index=True)
    return rows[places]


def subtract_rows(rows: Ids, others: Ids) -> Ids:
    """Keep the rows that do not occur in `others` (anti-join)."""
    if not rows.shape[1]:
        return rows[: 0 if len(others) else 1]
    return rows[~np.isin(sort_keys(rows), sort_keys(others))]


def intersect_rows(rows: Ids, others: Ids) -> Ids:
    """Keep the rows that occur in `others` (semi-join)."""
    if not rows.shape[1]:
        return rows[: 1 if len(others) else 0]
    return rows[np.isin(sort_keys(rows), sort_keys(others))]


@dataclass(frozen=True)
class Select(TableTask):
    """Select facts of some relations, less the removed ones, as chunks of another kind."""

    kind: int
    chosen: frozenset[Key]
    removed: Packed
    renamed: Mapping[Key, Key] | None = None

    def add(self, table: Table, out: ChunkBuffer) -> None:
        if table.key in self.chosen:
            removed = self.removed.get(table.key)
            left = table.rows if removed is None else subtract_rows(table.rows, removed)
            name = table.key if self.renamed is None else self.renamed[table.key]
            out.add(table.partition, self.kind, name, left)


@dataclass(frozen=True)
class DropLastColumn(TableTask):
    """Drop the last column of tables."""

    def add(self, table: Table, out: ChunkBuffer) -> None:
        key = (*table.key[:3], table.key[3] - 1)
        out.add(table.partition, table.kind, key, table.rows[:, :-1])


@dataclass(frozen=True)
class Combine:
    """Apply a set operation to two co-partitioned sets of facts, `STATE` and `FRESH` chunks."""

    operation: str  # union, difference, intersection
    embedded: Embedded
    counted: int = 0  # the last column is a count: sum it

    def __call__(self, batches: Batches) -> Batches:
        partition = this_partition()
        sides: dict[int, dict[Key, list[Ids]]] = {STATE: {}, FRESH: {}}
        reports: list[TaskReport] = []
        for batch in batches:
            reports += reports_of(batch)
            for _, kind, key, rows in iter_tables([batch]):
                side = STATE if kind in (STATE, DERIVED, RESULT) else FRESH
                sides[side].setdefault(key, []).append(rows)
        out = ChunkBuffer()
        engine = self.embedded(Dictionary())
        for key in [*sides[STATE], *(k for k in sides[FRESH] if k not in sides[STATE])]:
            one, two = (np.concatenate([_none(key), *s.pop(key, [])]) for s in sides.values())
            if self.counted:
                rows = sum_counts(one)
                rows = rows[rows[:, -1] != 0]
            else:
                relation = local_predicate(key)
                a, b = (engine.facts({relation: t} if len(t) else {}) for t in (one, two))
                rows = getattr(a, self.operation)(b).rows(relation)
            if len(rows):
                out.add(partition, DERIVED, key, rows)
                if out.full:
                    yield from out.drain()
        yield from out.drain()
        for report in reports:  # their facts are replaced
            yield report_batch(partition, {**report, "counts": []})
        yield out.report(partition)


def _none(key: Key) -> Ids:
    return np.zeros((0, key[3]), np.uint32)


def sum_counts(rows: Ids) -> Ids:
    """Sum the last column of rows that agree in all others."""
    if not len(rows):
        return rows
    if rows.shape[1] == 1:
        return np.full((1, 1), rows.sum(dtype=np.uint32))
    keys = sort_keys(rows[:, :-1])
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    out = rows[order[starts]].copy()
    out[:, -1] = np.add.reduceat(rows[order, -1], starts)
    return out


@dataclass(frozen=True)
class HashPartitioned:
    """Hash-partition rows of a DataFrame as facts: `relation`, `arg0`, `arg1`, …"""

    relations: Mapping[str, int]  # numbers by name, including triples
    type_id: int
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = ChunkBuffer()
        parts: dict[str, list[Ids]] = {}
        waiting = 0
        for batch in batches:
            names = batch.column(0)
            if not pa.types.is_dictionary(names.type):
                names = names.dictionary_encode()
            codes = names.indices.to_numpy(zero_copy_only=False)
            for code, name in enumerate(names.dictionary.to_pylist()):
                chosen = codes == code
                table = batch if chosen.all() else batch.filter(pa.array(chosen))
                rows = self._rows(name, table)
                parts.setdefault(name, []).append(rows)
                waiting += rows.size
            if waiting > 1 << 23:
                self._send(out, parts)
                yield from out.drain()
                parts, waiting = {name: [] for name in parts}, 0
        self._send(out, parts)
        yield from out.drain()
        yield out.report(0, {"unknown": [name for name in parts if name not in self.relations]})

    def _rows(self, name: str, table: pa.RecordBatch) -> Ids:
        columns = []
        for at in range(1, table.num_columns):
            column = table.column(at)
            if column.null_count == len(column):
                break
            columns.append(column.to_numpy(zero_copy_only=False).astype(np.uint32))
        if not columns:
            return np.zeros((table.num_rows, 0), np.uint32)
        return np.stack(columns, axis=1)

    def _send(self, out: ChunkBuffer, parts: Mapping[str, Sequence[Ids]]) -> None:
        for name, rows in parts.items():
            number = self.relations.get(name)
            if number is None or not rows:
                continue
            table = np.concatenate(rows)
            wide = (number, NONE, NONE, table.shape[1])
            for key, part in narrow(wide, table, self.type_id):
                out.send(DERIVED, key, part, 0, self.partitions)


@dataclass(frozen=True)
class ToRows:
    """Unpack chunks into rows of a DataFrame: `relation`, `arg0`, `arg1`, …"""

    names: Mapping[int, str]
    width: int

    def __call__(self, batches: Batches) -> Batches:
        for _, _, key, rows in iter_tables(batches):
            yield fact_batch(key, rows, self.names, self.width)


def fact_batch(key: Key, rows: Ids, names: Mapping[int, str], width: int) -> pa.RecordBatch:
    """Convert one table to rows of a DataFrame."""
    columns: list[Ids] = [*rows.T]
    if key[0] == TRIPLE_NUMBER:
        labels = [label for label in key[1:3] if label != NONE]
        columns[1:1] = [np.full(len(rows), label, np.uint32) for label in labels]
    return fact_rows.batch(names[key[0]], columns, len(rows), width)


ANY = -1  # instead of a column
TOO_MANY = -2  # instead of the number of a fetch that found more facts than its limit


@dataclass(frozen=True)
class Fetch:
    """Fetch facts by ids in a column, by their rows, or (`None`) all facts of a table.

    With `ANY` instead of a column, the ids hold the number of arbitrary facts to fetch. If a task
    finds more than `limit` facts by ids, it sends one with the number `TOO_MANY`, and stops.
    """

    kind: int
    wanted: Mapping[Key, Mapping[int, Ids] | Ids | None]
    number: int = 0  # returned as partition number, to distinguish several fetches of one job
    replicated: frozenset[Key] = frozenset()  # replicated tables, of which one copy is read
    limit: int | None = None

    def __call__(self, batches: Batches) -> Batches:
        out, contained = ChunkBuffer(), Contained()
        subjects: dict[Key, Ids] = {}
        found = 0
        for partition, kind, key, rows in iter_tables(batches):
            if kind != self.kind or key not in self.wanted:
                continue
            if partition and key in self.replicated:
                continue
            wanted = self.wanted[key]
            if isinstance(wanted, np.ndarray):
                if key[3]:
                    if key not in subjects:
                        subjects[key] = in_order(wanted[:, 0])
                    rows = rows[contained(subjects[key], rows[:, 0])]
                rows = intersect_rows(rows, wanted)
            elif wanted is not None:
                chosen = np.zeros(len(rows), bool)
                for column, ids in wanted.items():
                    if column == ANY:
                        chosen[: int(ids.max())] = True
                    else:
                        chosen |= contained(ids, rows[:, column])
                rows = rows[chosen]
                found += len(rows)
                if self.limit is not None and found > self.limit:
                    out = ChunkBuffer()
                    out.add(TOO_MANY, kind, key, rows[:1])
                    break
            out.add(self.number, kind, key, rows)
        yield from out.drain()


def merge_by_partition(batches: Iterable[pa.RecordBatch]) -> dict[int, dict[Key, Ids]]:
    """Concatenate the tables of all chunks with the same target partition."""
    parts: dict[int, dict[Key, list[Ids]]] = {}
    for partition, _, key, rows in iter_tables(batches):
        parts.setdefault(partition, {}).setdefault(key, []).append(rows)
    return {
        partition: {key: np.concatenate(rows) for key, rows in tables.items()}
        for partition, tables in parts.items()
    }


def merge_chunks(batches: Iterable[pa.RecordBatch]) -> dict[Key, Ids]:
    """Concatenate the tables of all chunks."""
    parts: dict[Key, list[Ids]] = {}
    for _, _, key, rows in iter_tables(batches):
        parts.setdefault(key, []).append(rows)
    return {key: np.concatenate(rows) for key, rows in parts.items()}
