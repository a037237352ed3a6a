"""What runs inside tasks: arrays in, the embedded engine over them, arrays out.

Each function here makes one for `DataFrame.mapInArrow` over chunks (`packing`). What a task needs
comes with its chunks and with the function, so that a lost executor costs a repetition, no more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.compile import CompiledRule, Pattern
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine
from corollary.core.ids import Contained, in_order
from corollary.engines.spark.packing import (
    DERIVED,
    FRESH,
    NONE,
    RESULT,
    STATE,
    Gathering,
    Key,
    chunks_of,
    partition_of,
    report_of,
    reports_of,
)
from corollary.engines.spark.plan import ASKED, DRIVER, EVERYWHERE, TRIPLE_NUMBER, Plan, Source
from corollary.lang.stratify import Predicate

Batches = Iterator[pa.RecordBatch]
OverArrow = Callable[[Batches], Batches]
Embedded = Callable[[Dictionary], Engine[Any]]
Numbers = npt.NDArray[np.int64]


def this_partition() -> int:
    """The number of the partition that the task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "tasks run inside Spark"
    return context.partitionId()


def relation_of(key: Key) -> Predicate:
    """What the tables of a key are called inside a task: no term, and no wide predicate."""
    return Predicate(f"{key[0]} {key[1]} {key[2]}")


def split_triples(rows: Ids, type_id: int) -> Iterator[tuple[Key, Ids]]:
    """Triples by property, and those of rdf:type by class."""
    yield from _split(rows, 1, lambda property_: (TRIPLE_NUMBER, property_, NONE, 2), type_id)


def _split(
    rows: Ids, column: int, key: Callable[[int], Key], type_id: int = NONE
) -> Iterator[tuple[Key, Ids]]:
    if not len(rows):
        return
    order = np.argsort(rows[:, column], kind="stable")
    labels, starts = np.unique(rows[order, column], return_index=True)
    for label, part in zip(labels.tolist(), np.split(order, starts[1:]), strict=True):
        left = np.delete(rows[part], column, axis=1)
        if label == type_id:
            yield from _split(left, 1, lambda c: (TRIPLE_NUMBER, type_id, c, 1))
        else:
            yield key(label), left


def narrow(key: Key, rows: Ids, type_id: int, extra: int = 0) -> Iterator[tuple[Key, Ids]]:
    """Facts of a wide relation as facts of narrow ones; the last `extra` columns stay."""
    if key[0] == TRIPLE_NUMBER and key[2] == NONE and key[1] in (NONE, type_id):
        if key[1] == type_id:
            found = _split(rows, 1, lambda c: (TRIPLE_NUMBER, type_id, c, 1))
        else:
            found = split_triples(rows, type_id)
        for (relation, property_, member_of, columns), part in found:
            yield (relation, property_, member_of, columns + extra), part
    else:
        yield (*key[:3], key[3] + extra), rows


class Local:
    """The steps of a plan over an embedded engine, in a task or on the driver."""

    def __init__(
        self,
        plan: Plan,
        embedded: Embedded,
        *,
        cuts: bool = False,
        dictionary: Dictionary | None = None,
    ) -> None:
        """With `cuts`, of the steps those only that make auxiliary relations of bodies.

        The dictionary has the terms that filters compare.
        """
        self.plan = plan
        self.engine = embedded(Dictionary() if dictionary is None else dictionary)
        self.numbers = [Predicate(str(number)) for number in range(len(plan.placed))]
        self.columns = [placed.source.key[3] for placed in plan.placed]
        self.targets = [Predicate(f"t{number}") for number in range(len(plan.targets))]
        self._target_of = {predicate: n for n, predicate in enumerate(self.targets)}
        self.number_of = {predicate: n for n, predicate in enumerate(self.numbers)}
        # rules that are counted, and those of auxiliary steps
        self._rules: dict[bool, list[CompiledRule]] = {True: [], False: []}
        for step in plan.steps:
            if cuts and not step.cut:
                continue
            rule = CompiledRule(
                source=None,  # type: ignore[arg-type]  # engines do not look at it
                head=Pattern(self.targets[step.head], step.arguments),
                body=tuple(Pattern(self.numbers[n], a) for n, a in step.body),
                negated=tuple(Pattern(self.numbers[n], a) for n, a in step.negated),
                conditions=step.conditions,
                groupings=(),
                bound=step.bound,
            )
            self._rules[step.final].append(rule)

    def facts(self, tables: Mapping[int, list[Ids]]) -> Any:
        """A set of placed facts."""
        return self.engine.facts(
            {self.numbers[n]: np.concatenate(rows) for n, rows in tables.items() if rows}
        )

    def advance(
        self, full: Any, delta: Any | None, counted: bool
    ) -> tuple[list[tuple[int, Ids, Numbers | None]], int]:
        """One application of the steps: rows of targets (and counts), and instances of rules."""
        out: list[tuple[int, Ids, Numbers | None]] = []
        instances = 0
        changed = frozenset(delta.predicates()) if delta is not None else None
        for final, rules in self._rules.items():
            if changed is not None:
                rules = [r for r in rules if any(p.predicate in changed for p in r.body)]
            if not rules:
                continue
            found = self.engine.derive(rules, full, delta=delta, counted=counted and final)
            if final:
                instances += found.instances
            for predicate in found.facts.predicates():
                counts = found.counts[predicate] if found.counts is not None else None
                out.append((self._target_of[predicate], found.facts.rows(predicate), counts))
        return out, instances


@dataclass(frozen=True)
class Round:
    """The local closure of a partition, and what others must know of it."""

    plan: Plan
    embedded: Embedded
    partitions: int
    first: bool = True
    whole: bool = True  # whether there were no facts before the first round
    counted: bool = False
    keep: bool = True  # whether there may be another round
    cuts: bool = False  # auxiliary relations of old facts only, before the first round
    dictionary: Callable[[], Dictionary] = Dictionary  # of the terms that filters compare

    def __call__(self, batches: Batches) -> Batches:
        me = this_partition()
        start = time.perf_counter()
        plan, dictionary = self.plan, self.dictionary()
        local = Local(plan, self.embedded, cuts=self.cuts, dictionary=dictionary)
        tables: dict[int, dict[int, list[Ids]]] = {STATE: {}, FRESH: {}}
        out = Gathering()
        for _, kind, key, rows in chunks_of(batches):
            if kind in tables:
                tables[kind].setdefault(key[0], []).append(rows)
            else:
                out.add(me, kind, key, rows)
                if out.full:
                    yield from out.take()
        known, delta = local.facts(tables[STATE]), local.facts(tables[FRESH])
        tables.clear()
        if not self.first:
            delta = delta.difference(known)
        everything = self.first and self.whole
        full = known.union(delta)
        foreign: dict[int, list[Ids]] = {}
        report: dict[str, Any] = {"partition": me, "in": len(full), "instances": 0, "steps": 0}
        new = local.facts({})
        homes = {number: source.key for source, number in plan.homes.items()}
        if not self.first and len(delta):
            new = delta.only([local.numbers[n] for n in homes])
        asked = 0
        while len(delta):
            found, instances = local.advance(full, None if everything else delta, self.counted)
            everything = False
            report["instances"] += instances
            report["steps"] += 1
            mine: dict[int, list[Ids]] = {}
            for target, rows, counts in found:
                source = plan.targets[target]
                if source.operand == ASKED:
                    out.add(DRIVER, FRESH, source.key, rows)
                    asked += len(rows)
                elif source.operand == "r":
                    self._results(out, source.key, rows, counts)
                else:
                    rows = self._unknown(local, full, source, rows)
                    self._place(source.operand, source.key, rows, me, mine, foreign)
            delta = local.facts(mine).difference(full)
            full = full.union(delta)
            new = new.union(delta.only([local.numbers[n] for n in homes]))
        counts_of: dict[Key, int] = {}
        for number, home in homes.items():
            rows = new.rows(local.numbers[number])
            for key, part in narrow(home, rows, plan.type_id) if len(rows) else ():
                out.add(me, DERIVED, key, part)
                counts_of[key] = counts_of.get(key, 0) + len(part)
        others = local.facts(foreign)
        for predicate in others.predicates():
            number = local.number_of[predicate]
            rows, placed = others.rows(predicate), plan.placed[number]
            key = (number, NONE, NONE, placed.source.key[3])
            if placed.place == EVERYWHERE:
                for partition in range(self.partitions):
                    if partition != me:
                        out.add(partition, FRESH, key, rows)
            else:
                out.send(FRESH, key, rows, placed.place, self.partitions)
        if self.keep:
            for predicate in full.predicates():
                number = local.number_of[predicate]
                out.add(
                    me, STATE, (number, NONE, NONE, local.columns[number]), full.rows(predicate)
                )
        report |= {
            "sent": len(others),
            "everywhere": any(
                plan.placed[local.number_of[p]].place == EVERYWHERE for p in others.predicates()
            ),
            "asked": asked,
            "derived": sum(counts_of.values()),
            "counts": [[list(key), count] for key, count in counts_of.items()],
            "seconds": time.perf_counter() - start,
        }
        yield from out.take()
        yield report_of(me, json.dumps(report).encode())

    def _unknown(self, local: Local, full: Any, source: Source, rows: Ids) -> Ids:
        """The rows that other partitions may not know.

        What this one knows of a relation that is everywhere was sent wherever it is read.
        """
        if not self.plan.is_placed(source, EVERYWHERE):
            return rows
        number = self.plan.place(source, EVERYWHERE)
        new = local.facts({number: [rows]}).difference(full)
        return new.rows(local.numbers[number]) if len(new) else rows[:0]

    def _results(self, out: Gathering, key: Key, rows: Ids, counts: Numbers | None) -> None:
        extra = 0
        if counts is not None:
            rows, extra = np.column_stack([rows, counts.astype(np.uint32)]), 1
        for narrowed, part in narrow(key, rows, self.plan.type_id, extra):
            place = 0 if narrowed[3] > extra else None
            if place is None:
                out.add(0, RESULT, narrowed, part)
            else:
                out.send(RESULT, narrowed, part, place, self.partitions)

    def _place(
        self,
        operand: str,
        key: Key,
        rows: Ids,
        me: int,
        mine: dict[int, list[Ids]],
        foreign: dict[int, list[Ids]],
    ) -> None:
        plan = self.plan
        for source, part in plan.readers(operand, key, rows):
            for number in plan.numbers(source):
                place = plan.placed[number].place
                if self.partitions == 1 or not len(part):
                    mine.setdefault(number, []).append(part)
                elif place == EVERYWHERE:
                    mine.setdefault(number, []).append(part)
                    foreign.setdefault(number, []).append(part)
                else:
                    if part.shape[1]:
                        here = partition_of(part[:, place], self.partitions) == me
                    else:
                        here = np.full(len(part), me == 0)
                    mine.setdefault(number, []).append(part[here])
                    foreign.setdefault(number, []).append(part[~here])


@dataclass(frozen=True)
class Route:
    """Facts to the partitions where the relations of a plan want them."""

    plan: Plan
    operand: str
    kind: int
    partitions: int

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for _, _, key, rows in chunks_of(batches):
            self.add(out, key, rows)
            if out.full:
                yield from out.take()
        yield from out.take()

    def add(self, out: Gathering, key: Key, rows: Ids) -> None:
        """Send facts."""
        plan = self.plan
        for source, part in plan.readers(self.operand, key, rows):
            for number in plan.numbers(source):
                place = plan.placed[number].place
                placed_key = (number, NONE, NONE, source.key[3])
                out.send(
                    self.kind,
                    placed_key,
                    part,
                    None if place == EVERYWHERE else place,
                    self.partitions,
                )


def keys_of(rows: Ids) -> npt.NDArray[Any]:
    """Rows as values that can be sorted and compared."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    if rows.shape[1] == 2:
        return rows[:, 0].astype(np.uint64) << np.uint64(32) | rows[:, 1]
    big_endian = np.ascontiguousarray(rows.astype(">u4"))
    return big_endian.view(np.dtype((np.void, 4 * rows.shape[1])))[:, 0]


def distinct(rows: Ids) -> Ids:
    """The rows without duplicates.

    >>> distinct(np.array([[2, 1], [1, 2], [2, 1]], np.uint32)).tolist()
    [[1, 2], [2, 1]]
    """
    if not rows.shape[1]:
        return rows[:1]
    _, places = np.unique(keys_of(rows), return_index=True)
    return rows[places]


def difference_of(rows: Ids, others: Ids) -> Ids:
    """The rows that are not among the others."""
    if not rows.shape[1]:
        return rows[: 0 if len(others) else 1]
    return rows[~np.isin(keys_of(rows), keys_of(others))]


def intersection_of(rows: Ids, others: Ids) -> Ids:
    """The rows that are among the others."""
    if not rows.shape[1]:
        return rows[: 1 if len(others) else 0]
    return rows[np.isin(keys_of(rows), keys_of(others))]


@dataclass(frozen=True)
class Combine:
    """Two sets of facts, both at home, put together: `STATE` and `FRESH` chunks."""

    operation: str  # union, difference, intersection
    embedded: Embedded
    counted: int = 0  # whether the last column is a count, to be added up

    def __call__(self, batches: Batches) -> Batches:
        me = this_partition()
        sides: dict[int, dict[Key, list[Ids]]] = {STATE: {}, FRESH: {}}
        reports: list[bytes] = []
        for batch in batches:
            reports += reports_of(batch)
            for _, kind, key, rows in chunks_of([batch]):
                side = STATE if kind in (STATE, DERIVED, RESULT) else FRESH
                sides[side].setdefault(key, []).append(rows)
        out = Gathering()
        engine = self.embedded(Dictionary())
        counts: dict[Key, int] = {}
        for key in [*sides[STATE], *(k for k in sides[FRESH] if k not in sides[STATE])]:
            one, two = (np.concatenate([_none(key), *s.pop(key, [])]) for s in sides.values())
            if self.counted:
                rows = summed(one)
                rows = rows[rows[:, -1] != 0]
            else:
                relation = relation_of(key)
                a, b = (engine.facts({relation: t} if len(t) else {}) for t in (one, two))
                rows = getattr(a, self.operation)(b).rows(relation)
            if len(rows):
                out.add(me, DERIVED, key, rows)
                counts[key] = len(rows)
                if out.full:
                    yield from out.take()
        yield from out.take()
        for report in reports:
            yield report_of(me, report)
        found = [[list(key), count] for key, count in counts.items()]
        yield report_of(me, json.dumps({"partition": me, "counts": found}).encode())


def _none(key: Key) -> Ids:
    return np.zeros((0, key[3]), np.uint32)


def summed(rows: Ids) -> Ids:
    """Rows with the same columns but the last, which is added up."""
    if not len(rows):
        return rows
    if rows.shape[1] == 1:
        return np.full((1, 1), rows.sum(dtype=np.uint32))
    keys = keys_of(rows[:, :-1])
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    out = rows[order[starts]].copy()
    out[:, -1] = np.add.reduceat(rows[order, -1], starts)
    return out


@dataclass(frozen=True)
class Home:
    """Rows of a DataFrame as facts at home: `relation`, `arg0`, `arg1`, …"""

    relations: Mapping[str, int]
    triples: str  # what the relation of triples is called
    type_id: int
    partitions: int
    counted: bool = False  # whether to report how many facts there are, which are no duplicates
    # Facts of other relations are left out, and the names reported.

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        parts: dict[str, list[Ids]] = {}
        counts: dict[Key, int] = {}
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
                self._send(out, parts, counts)
                yield from out.take()
                parts, waiting = {name: [] for name in parts}, 0
        self._send(out, parts, counts)
        yield from out.take()
        report: dict[str, Any] = {"unknown": [name for name in parts if self._number(name) is None]}
        if self.counted:
            report["counts"] = [[list(key), count] for key, count in counts.items()]
        yield report_of(0, json.dumps(report).encode())

    def _number(self, name: str) -> int | None:
        return TRIPLE_NUMBER if name == self.triples else self.relations.get(name)

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

    def _send(self, out: Gathering, parts: dict[str, list[Ids]], counts: dict[Key, int]) -> None:
        for name, rows in parts.items():
            number = self._number(name)
            if number is None or not rows:
                continue
            table = np.concatenate(rows)
            if number == TRIPLE_NUMBER:
                found = split_triples(table, self.type_id)
            else:
                found = iter([((number, NONE, NONE, table.shape[1]), table)])
            for key, part in found:
                out.send(DERIVED, key, part, 0, self.partitions)
                counts[key] = counts.get(key, 0) + len(part)


@dataclass(frozen=True)
class Rows:
    """Facts at home as rows of a DataFrame: `relation`, `arg0`, `arg1`, …"""

    names: Mapping[int, str]
    width: int

    def __call__(self, batches: Batches) -> Batches:
        for _, _, key, rows in chunks_of(batches):
            yield from rows_of(key, rows, self.names, self.width)


def rows_of(key: Key, rows: Ids, names: Mapping[int, str], width: int) -> Batches:
    """Facts as rows."""
    n = len(rows)
    columns: list[Any] = [rows[:, at] for at in range(rows.shape[1])]
    if key[0] == TRIPLE_NUMBER:
        columns.insert(1, np.full(n, key[1]))
        if key[2] != NONE:
            columns.append(np.full(n, key[2]))
    relation = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n, np.int8)), pa.array([names[key[0]]])
    ).cast(pa.string())
    arrays = [pa.array(c.astype(np.int64)) for c in columns]
    arrays += [pa.nulls(n, pa.int64())] * (width - len(arrays))
    fields = ["relation", *(f"arg{at}" for at in range(width))]
    if n:
        yield pa.RecordBatch.from_arrays([relation, *arrays], fields)


ANY = -1  # no column


@dataclass(frozen=True)
class Fetch:
    """The facts that have one of some ids in a column, or that are named; `None`: all facts.

    In the place of a column may stand `ANY`, and then, in that of ids, how many facts there should
    be at least, whichever they are.
    """

    kind: int
    wanted: Mapping[Key, Mapping[int, Ids] | Ids | None]
    number: int = 0  # whom the answers are for
    replicated: frozenset[Key] = frozenset()  # tables that all partitions have, read from one

    def __call__(self, batches: Batches) -> Batches:
        out, contained = Gathering(), Contained()
        subjects: dict[Key, Ids] = {}
        for partition, kind, key, rows in chunks_of(batches):
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
                rows = intersection_of(rows, wanted)
            elif wanted is not None:
                chosen = np.zeros(len(rows), bool)
                for column, ids in wanted.items():
                    if column == ANY:
                        chosen[: int(ids.max())] = True
                    else:
                        chosen |= contained(ids, rows[:, column])
                rows = rows[chosen]
            out.add(self.number, kind, key, rows)
        yield from out.take()


def by_partition(batches: Iterable[pa.RecordBatch]) -> dict[int, dict[Key, Ids]]:
    """The tables of all chunks, apart for each partition that they are for."""
    parts: dict[int, dict[Key, list[Ids]]] = {}
    for partition, _, key, rows in chunks_of(batches):
        parts.setdefault(partition, {}).setdefault(key, []).append(rows)
    return {
        partition: {key: np.concatenate(rows) for key, rows in tables.items()}
        for partition, tables in parts.items()
    }


def all_of(batches: Iterable[pa.RecordBatch]) -> dict[Key, Ids]:
    """The tables of all chunks."""
    parts: dict[Key, list[Ids]] = {}
    for _, _, key, rows in chunks_of(batches):
        parts.setdefault(key, []).append(rows)
    return {key: np.concatenate(rows) for key, rows in parts.items()}
