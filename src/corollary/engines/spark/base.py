"""Facts that are too many for the driver: chunks in Spark, each fact at home in one partition.

A `Base` is a view of some predicates of chunks that were computed once. What the driver has asked
for is remembered with the chunks, which never change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.core.compile import TRIPLES, TYPES
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine
from corollary.engines.spark.packing import (
    ARROW,
    DERIVED,
    FRESH,
    NONE,
    REPORT,
    SCHEMA,
    STATE,
    Gathering,
    Key,
    Packed,
    chunks_of,
)
from corollary.engines.spark.plan import TRIPLE_NUMBER
from corollary.engines.spark.task import (
    Batches,
    Combine,
    Embedded,
    Fetch,
    OverArrow,
    all_of,
    difference_of,
)
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE

Counts = Mapping[Predicate, int]


class Workspace:
    """The session, started when first needed, the engine of tasks, and how facts are cut."""

    def __init__(
        self,
        start: Callable[[], SparkSession],
        dictionary: Dictionary,
        embedded: Embedded,
        small: int,
        partitions: int | None,
    ) -> None:
        self._start = start
        self.dictionary = dictionary
        self.make = embedded
        self.small = small
        self._partitions = partitions
        self._numbers: dict[str, int] = {TRIPLE: TRIPLE_NUMBER}
        self._names: list[str] = [TRIPLE]

    @cached_property
    def session(self) -> SparkSession:
        return self._start()

    @cached_property
    def embedded(self) -> Engine[Any]:
        """The engine of the driver."""
        return self.make(self.dictionary)

    @property
    def partitions(self) -> int:
        """How many parts facts are cut into."""
        if self._partitions is None:
            self._partitions = max(2, self.session.sparkContext.defaultParallelism)
        return self._partitions

    def suit(self, rows: int, per_partition: int = 4_000_000) -> None:
        """Have enough partitions for so many facts, if nobody said how many and none is cut yet."""
        if self._partitions is None:
            self._partitions = max(self.partitions, -(-rows // per_partition))

    @cached_property
    def type_id(self) -> int:
        return self.dictionary.id(TYPE)

    def number(self, relation: str) -> int:
        """The number of a relation."""
        number = self._numbers.get(relation)
        if number is None:
            number = self._numbers[relation] = len(self._names)
            self._names.append(relation)
        return number

    @property
    def names(self) -> Mapping[int, str]:
        """The names of relations by number."""
        return dict(enumerate(self._names))

    def key(self, predicate: Predicate, columns: int) -> Key:
        """What the facts of a predicate are found by."""
        if predicate.relation != TRIPLE:
            return (self.number(predicate.relation), NONE, NONE, columns)
        if predicate is TRIPLES:
            return (TRIPLE_NUMBER, NONE, NONE, 3)
        if predicate is TYPES:
            return (TRIPLE_NUMBER, self.type_id, NONE, 2)
        assert predicate.property is not None, "or it would be TRIPLES"
        property_ = self.dictionary.id(predicate.property)
        if predicate.member_of is None:
            return (TRIPLE_NUMBER, property_, NONE, 2)
        return (TRIPLE_NUMBER, property_, self.dictionary.id(predicate.member_of), 1)

    def predicates(self, keys: Collection[Key]) -> dict[Key, Predicate]:
        """The narrow predicates of keys."""
        ids = {i for key in keys if key[0] == TRIPLE_NUMBER for i in key[1:3] if i != NONE}
        terms = dict(zip(ids, self.dictionary.terms(list(ids)), strict=True))
        found = {}
        for key in keys:
            relation, property_, member_of, _ = key
            if relation != TRIPLE_NUMBER:
                found[key] = Predicate(self._names[relation])
            elif member_of != NONE:
                found[key] = Predicate(TRIPLE, TYPE, terms[member_of])
            else:
                found[key] = Predicate(TRIPLE, terms[property_])
        return found

    def packed(self, facts: Any) -> Packed:
        """Facts of the driver by key."""
        out = {}
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            out[self.key(predicate, rows.shape[1])] = rows
        return out

    def unpacked(self, tables: Packed) -> Any:
        """Tables by key as facts of the driver."""
        names = self.predicates(tables.keys())
        return self.embedded.facts({names[key]: rows for key, rows in tables.items() if len(rows)})

    # -- jobs ------------------------------------------------------------------------------------

    def chunks(self, gathered: Gathering) -> DataFrame | None:
        """Chunks of the driver as a frame."""
        batches = list(gathered.take())
        if not batches:
            return None
        return self.session.createDataFrame(pa.Table.from_batches(batches, ARROW))

    def nothing(self) -> DataFrame:
        """No chunks."""
        return self.session.createDataFrame(ARROW.empty_table(), SCHEMA)

    def at_home(self, tables: Packed) -> DataFrame | None:
        """Facts of the driver as a frame of chunks."""
        out = Gathering()
        for key, rows in tables.items():
            out.send(DERIVED, key, rows, 0, self.partitions)
        return self.chunks(out)

    def exchanged(self, frame: DataFrame) -> DataFrame:
        """The chunks in the partitions that they are for."""
        return frame.repartitionById(self.partitions, frame.partition)

    def over(self, frame: DataFrame, function: OverArrow) -> DataFrame:
        return frame.mapInArrow(function, SCHEMA)

    def settled(self, frame: DataFrame) -> tuple[DataFrame, list[dict[str, Any]]]:
        """Compute a frame once and cut its lineage; with what its tasks report.

        On one machine the checkpoint is local. On a cluster an executor may be lost: there it is
        reliable if Spark knows a folder for checkpoints, and else the lineage stays, so that what
        is lost is computed again.
        """
        context = self.session.sparkContext
        if context.master.startswith("local[") or context.master == "local":
            kept = frame.localCheckpoint(eager=False)
        elif context.getCheckpointDir() is not None:
            kept = frame.checkpoint(eager=False)
        else:
            kept = frame.persist()
        found = self.of_kinds(kept, REPORT).select("data").toArrow()
        return kept, [json.loads(text) for text in found["data"].to_pylist()]

    def of_kinds(self, frame: DataFrame, *kinds: int) -> DataFrame:
        """The chunks of some kinds that are for partitions."""
        return frame.where(f"partition >= 0 AND kind IN ({', '.join(map(str, kinds))})")

    def for_driver(self, frame: DataFrame) -> DataFrame:
        """The chunks that are for the driver."""
        return frame.where("partition < 0")

    def united(self, frames: Sequence[DataFrame]) -> DataFrame:
        """Chunks of several frames."""
        return reduce(DataFrame.union, frames)

    def collected(self, frame: DataFrame) -> dict[Key, Ids]:
        """The tables of a frame of chunks."""
        return all_of(frame.toArrow().to_batches())


def counts_of(
    workspace: Workspace, reports: Iterable[Mapping[str, Any]]
) -> tuple[dict[Predicate, int], dict[Predicate, int]]:
    """How many facts of each predicate tasks have reported, and how many columns they have."""
    sums: dict[Key, int] = {}
    for report in reports:
        for key, count in report.get("counts", ()):
            a, b, c, d = key
            sums[a, b, c, d] = sums.get((a, b, c, d), 0) + count
    names = workspace.predicates(sums.keys())
    return (
        {names[key]: count for key, count in sums.items()},
        {names[key]: key[3] for key in sums},
    )


@dataclass
class Held:
    """Chunks, and what the driver has fetched of them."""

    frames: tuple[DataFrame, ...]
    columns: dict[Predicate, int]
    facts: Any  # fetched, on the driver
    whole: set[Predicate] = field(default_factory=set)  # of which all facts were fetched
    complete: dict[tuple[Predicate, int], Ids] = field(default_factory=dict)  # ids, in order
    looked: Any = None  # facts that were looked for


@dataclass
class Base:
    """A view of chunks: some predicates, and how many facts each of them has."""

    workspace: Workspace
    held: Held
    counts: Counts

    @classmethod
    def of(
        cls, workspace: Workspace, frames: Sequence[DataFrame], counts: Counts, columns: Counts
    ) -> Base:
        nothing = workspace.embedded.facts({})
        own = {predicate: columns[predicate] for predicate in counts}
        return cls(workspace, Held(tuple(frames), own, nothing, looked=nothing), counts)

    def __len__(self) -> int:
        return sum(self.counts.values())

    @property
    def frame(self) -> DataFrame:
        """All chunks, also those of other predicates than the view's."""
        return self.workspace.united(self.held.frames)

    def columns(self, predicate: Predicate) -> int:
        """How many columns the facts of a predicate have."""
        return self.held.columns[predicate]

    def keys(self) -> dict[Key, Predicate]:
        """The predicates of the view by their keys."""
        return {self.key(p): p for p in self.counts}

    def key(self, predicate: Predicate) -> Key:
        """What the facts of a predicate are found by; counted ones have a column more."""
        columns = self.columns(predicate)
        return (*self.workspace.key(predicate, columns)[:3], columns)

    def only(self, predicates: Collection[Predicate]) -> Base:
        """The view of some of the predicates."""
        if len(predicates) == len(self.counts):
            return self
        return Base(self.workspace, self.held, {p: self.counts[p] for p in predicates})

    def fetch(self, wanted: Mapping[Predicate, Mapping[int, Ids] | None]) -> Any:
        """Facts on the driver: at least those with an id in a column, or all of a predicate.

        One job, and none if all of it was fetched before.
        """
        held = self.held
        missing: dict[Key, Mapping[int, Ids] | Ids | None] = {}
        done: list[tuple[tuple[Predicate, int], Ids]] = []
        for predicate, places in wanted.items():
            if predicate not in self.counts or predicate in held.whole:
                continue
            key = self.key(predicate)
            if places is None:
                missing[key] = None
                continue
            new: dict[int, Ids] = {}
            for column, ids in places.items():
                known = held.complete.get((predicate, column))
                left = np.unique(ids) if known is None else np.setdiff1d(ids, known)
                if len(left):
                    new[column] = left
                    done.append(((predicate, column), left))
            if new:
                missing[key] = new
        if missing:
            frame = self.workspace.over(self.frame, Fetch(DERIVED, missing))
            found = self.workspace.unpacked(self.workspace.collected(frame))
            held.facts = held.facts.union(found)
            held.whole |= {p for p, places in wanted.items() if places is None}
            for place, ids in done:
                known = held.complete.get(place)
                held.complete[place] = ids if known is None else np.union1d(known, ids)
        return held.facts

    def present(self, facts: Any) -> Any:
        """Those facts of the driver that are here."""
        held = self.held
        asked = facts.only(list(self.counts))
        known = [p for p in asked.predicates() if p in held.whole]
        left = asked.without(known).difference(held.looked).difference(held.facts)
        if len(left):
            wanted = self.workspace.packed(left)
            found = self.workspace.collected(
                self.workspace.over(self.frame, Fetch(DERIVED, wanted))
            )
            held.facts = held.facts.union(self.workspace.unpacked(found))
            held.looked = held.looked.union(left)
        return asked.intersection(held.facts)

    def renamed(self, predicate: Predicate, new: Predicate) -> Base:
        """The facts of one predicate as facts of another one."""
        columns = self.columns(predicate)
        keys = {self.workspace.key(predicate, columns): self.workspace.key(new, columns)}
        frame = self.workspace.over(self.frame, Select(DERIVED, frozenset(keys), {}, keys))
        return Base.of(self.workspace, [frame], {new: self.counts[predicate]}, {new: columns})

    def without_last(self) -> Base:
        """The facts without their last column, a count."""
        frame = self.workspace.over(self.frame, Shortened(frozenset(self.keys())))
        columns = {p: self.columns(p) - 1 for p in self.counts}
        return Base.of(self.workspace, [frame], self.counts, columns)

    def combined(self, operation: str, other: Base, mine: Packed, theirs: Packed) -> Base:
        """A set operation with another base; some facts of each have been removed."""
        left = selected(self, STATE, mine)
        right = selected(other, FRESH, theirs)
        return merged(
            self.workspace,
            self.workspace.united([left, right]),
            Combine(operation, self.workspace.make),
        )


@dataclass(frozen=True)
class Select:
    """Facts of some relations, less those that were removed, as chunks of another kind."""

    kind: int
    chosen: frozenset[Key]
    removed: Packed
    renamed: Mapping[Key, Key] | None = None

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for partition, _, key, rows in chunks_of(batches):
            if key in self.chosen:
                gone = self.removed.get(key)
                left = rows if gone is None else difference_of(rows, gone)
                name = key if self.renamed is None else self.renamed[key]
                out.add(partition, self.kind, name, left)
        yield from out.take()


@dataclass(frozen=True)
class Shortened:
    """Tables without their last column."""

    chosen: frozenset[Key]

    def __call__(self, batches: Batches) -> Batches:
        out = Gathering()
        for partition, kind, key, rows in chunks_of(batches):
            if key in self.chosen:
                out.add(partition, kind, (*key[:3], key[3] - 1), rows[:, :-1])
        yield from out.take()


def selected(base: Base, kind: int, removed: Packed) -> DataFrame:
    """The facts of a view as chunks of a kind."""
    chosen = frozenset(base.keys())
    return base.workspace.over(base.frame, Select(kind, chosen, removed))


def merged(workspace: Workspace, frame: DataFrame, combine: Combine) -> Base:
    """Chunks exchanged and combined, as a base."""
    kept, reports = workspace.settled(workspace.over(workspace.exchanged(frame), combine))
    return Base.of(workspace, [kept], *counts_of(workspace, reports))
