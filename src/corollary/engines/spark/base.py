"""Facts that are too many for the driver: chunks in Spark, each fact at home in one partition.

A `Base` is a view of some predicates of chunks that were computed once. What the driver has asked
for is remembered with the chunks, which never change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.core.compile import TRIPLES, TYPES
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine
from corollary.core.ids import in_order, missing_in, together
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
)
from corollary.engines.spark.plan import TRIPLE_NUMBER
from corollary.engines.spark.task import (
    Combine,
    Embedded,
    Fetch,
    OverArrow,
    all_of,
    by_partition,
)
from corollary.engines.spark.terms import TermTable
from corollary.engines.spark.tuning import tuning
from corollary.engines.spark.views import Select, Shortened
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
        self.terms: TermTable | None = None  # None: the dictionary has all terms
        self._numbers: dict[str, int] = {TRIPLE: TRIPLE_NUMBER}
        self._names: list[str] = [TRIPLE]
        self._kept: list[DataFrame] = []

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

    def adopt(self, names: Sequence[str], partitions: int) -> None:
        """Number relations and cut facts as another workspace did; there are none so far."""
        assert self._names == [TRIPLE], "no relation has a number"
        self._names = list(names)
        self._numbers = {name: number for number, name in enumerate(names)}
        self._partitions = partitions

    def keep(self, frame: DataFrame) -> DataFrame:
        """Have Spark keep the rows of a frame once it has computed them, until `release`."""
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def release(self) -> None:
        """Let Spark forget what it has kept."""
        for frame in self._kept:
            frame.unpersist()
        self._kept = []

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
        """Compute a frame once and cut its lineage; with what its tasks report."""
        kept = self.once(frame)
        found = self.of_kinds(kept, REPORT).select("data").toArrow()
        return kept, [json.loads(text) for text in found["data"].to_pylist()]

    def once(self, frame: DataFrame) -> DataFrame:
        """The frame, which is computed once, when it is first needed.

        On one machine the checkpoint is local. On a cluster an executor may be lost: there it is
        reliable if Spark knows a folder for checkpoints, and else the lineage stays, so that what
        is lost is computed again.
        """
        context = self.session.sparkContext
        master = str(context.master)
        if master == "local" or master.startswith("local["):
            return frame.localCheckpoint(eager=False)
        if context.getCheckpointDir() is not None:
            return frame.checkpoint(eager=False)
        return frame.persist()

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

    def collected_by_partition(self, frame: DataFrame) -> dict[int, dict[Key, Ids]]:
        """The tables of a frame of chunks, apart for each partition that they are for."""
        return by_partition(frame.toArrow().to_batches())


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


@dataclass(eq=False)
class Held:
    """Chunks that were computed once, and what the driver has fetched of them."""

    frames: tuple[DataFrame, ...]
    counts: Mapping[Predicate, int]
    columns: Mapping[Predicate, int]
    facts: Any  # fetched, on the driver
    looked: Any  # facts that were looked for
    whole: set[Predicate] = field(default_factory=set)  # of which all facts were fetched
    complete: dict[tuple[Predicate, int], Ids] = field(default_factory=dict)  # ids, in order
    folder: str | None = None  # where they are files too, see `chunk_cache`

    def key(self, workspace: Workspace, predicate: Predicate) -> Key:
        """What the facts of a predicate are found by; counted ones have a column more."""
        columns = self.columns[predicate]
        return (*workspace.key(predicate, columns)[:3], columns)


Part = tuple[Held, frozenset[Predicate]]  # chunks, and the predicates that are seen of them


@dataclass
class Base:
    """A view of chunks: some predicates of each; no fact is in two of them."""

    workspace: Workspace
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        merged: dict[Held, frozenset[Predicate]] = {}
        for held, predicates in self.parts:
            if predicates:
                merged[held] = merged.get(held, frozenset()) | predicates
        self.parts = tuple(merged.items())
        self.counts: dict[Predicate, int] = {}
        for held, predicates in self.parts:
            for predicate in predicates:
                self.counts[predicate] = self.counts.get(predicate, 0) + held.counts[predicate]

    @classmethod
    def of(
        cls, workspace: Workspace, frames: Sequence[DataFrame], counts: Counts, columns: Counts
    ) -> Base:
        nothing = workspace.embedded.facts({})
        held = Held(tuple(frames), counts, columns, nothing, nothing)
        return cls(workspace, ((held, frozenset(counts)),))

    def __len__(self) -> int:
        return sum(self.counts.values())

    def chunks(self, kind: int = DERIVED, removed: Packed | None = None) -> DataFrame:
        """The facts as chunks of a kind, less those that were removed."""
        workspace = self.workspace
        parts = []
        for held, predicates in self.parts:
            frame = workspace.united(held.frames)
            if removed or kind != DERIVED or len(predicates) < len(held.counts):
                chosen = frozenset(held.key(workspace, p) for p in predicates)
                frame = workspace.over(frame, Select(kind, chosen, removed or {}))
            parts.append(frame)
        return workspace.united(parts)

    def keys(self) -> dict[Key, Predicate]:
        """The predicates by their keys."""
        return {held.key(self.workspace, p): p for held, named in self.parts for p in named}

    def only(self, predicates: Collection[Predicate]) -> Base:
        """The view of some of the predicates."""
        chosen = frozenset(predicates)
        return Base(self.workspace, tuple((held, named & chosen) for held, named in self.parts))

    def fetch(self, wanted: Mapping[Predicate, Mapping[int, Ids] | None]) -> Any:
        """Facts on the driver: at least those with an id in a column, or all of a predicate.

        At most one job. Who asks for all facts of a predicate will ask for others: the small ones
        of the same chunks come along.
        """
        workspace = self.workspace
        found = workspace.embedded.facts({})
        frames: list[DataFrame] = []
        done: list[Callable[[], None]] = []
        holders: list[Held] = []
        shared: dict[bytes, Ids] = {}  # so that tasks get the same ids once
        for held, predicates in self.parts:
            missing: dict[Key, Mapping[int, Ids] | Ids | None] = {}
            for predicate in wanted.keys() & predicates:
                if predicate in held.whole:
                    continue
                places = wanted[predicate]
                if places is not None:
                    places = _not_known(held, predicate, places, shared)
                    if not places:
                        continue
                    done.append(partial(_complete, held, predicate, places))
                else:
                    done.append(partial(held.whole.add, predicate))
                missing[held.key(workspace, predicate)] = places
            if missing and None in missing.values():
                for predicate, count in held.counts.items():
                    if count <= tuning.prefetched_facts_limit and predicate not in held.whole:
                        missing[held.key(workspace, predicate)] = None
                        done.append(partial(held.whole.add, predicate))
            if missing:
                fetch = Fetch(DERIVED, missing, len(frames))
                frames.append(workspace.over(workspace.united(held.frames), fetch))
                holders.append(held)
        if frames:
            tables = workspace.collected_by_partition(workspace.united(frames))
            for number, held in enumerate(holders):
                held.facts = held.facts.union(workspace.unpacked(tables.get(number, {})))
            for action in done:
                action()
        for held, predicates in self.parts:
            found = found.union(held.facts.only(list(predicates & wanted.keys())))
        return found

    def present(self, facts: Any) -> Any:
        """Those facts of the driver that are here; at most one job."""
        workspace = self.workspace
        found = workspace.embedded.facts({})
        frames: list[DataFrame] = []
        asked_of: list[tuple[Held, Any]] = []
        for held, predicates in self.parts:
            asked = facts.only(list(predicates))
            known = [p for p in asked.predicates() if p in held.whole]
            left = asked.without(known).difference(held.looked).difference(held.facts)
            if len(left):
                fetch = Fetch(DERIVED, workspace.packed(left), len(frames))
                frames.append(workspace.over(workspace.united(held.frames), fetch))
                asked_of.append((held, left))
        if frames:
            tables = workspace.collected_by_partition(workspace.united(frames))
            for number, (held, left) in enumerate(asked_of):
                held.facts = held.facts.union(workspace.unpacked(tables.get(number, {})))
                held.looked = held.looked.union(left)
        for held, predicates in self.parts:
            found = found.union(facts.only(list(predicates)).intersection(held.facts))
        return found

    def renamed(self, predicate: Predicate, new: Predicate) -> Base:
        """The facts of one predicate as facts of another one."""
        parts: list[Part] = []
        for held, predicates in self.parts:
            if predicate in predicates:
                key = held.key(self.workspace, predicate)
                keys = {key: (*self.workspace.key(new, key[3])[:3], key[3])}
                frame = self.workspace.over(
                    self.workspace.united(held.frames), Select(DERIVED, frozenset(keys), {}, keys)
                )
                count, columns = {new: held.counts[predicate]}, {new: key[3]}
                parts += Base.of(self.workspace, [frame], count, columns).parts
        return Base(self.workspace, tuple(parts))

    def without_last(self) -> Base:
        """The facts without their last column, a count."""
        if not self.parts:
            return self
        frame = self.workspace.over(self.chunks(), Shortened())
        columns = {p: key[3] - 1 for key, p in self.keys().items()}
        return Base.of(self.workspace, [frame], self.counts, columns)

    def combined(self, operation: str, other: Base, mine: Packed, theirs: Packed) -> Base:
        """A set operation with another base; some facts of each have been removed."""
        frames = [self.chunks(STATE, mine), other.chunks(FRESH, theirs)]
        return merged(
            self.workspace,
            self.workspace.united(frames),
            Combine(operation, self.workspace.make),
        )


def _not_known(
    held: Held, predicate: Predicate, places: Mapping[int, Ids], shared: dict[bytes, Ids]
) -> dict[int, Ids]:
    """The ids in places that were not fetched before."""
    new: dict[int, Ids] = {}
    for column, ids in places.items():
        known = held.complete.get((predicate, column))
        left = in_order(ids) if known is None else missing_in(known, ids)
        if len(left):
            new[column] = shared.setdefault(left.tobytes(), left)
    return new


def _complete(held: Held, predicate: Predicate, places: Mapping[int, Ids]) -> None:
    for column, ids in places.items():
        known = held.complete.get((predicate, column))
        held.complete[predicate, column] = ids if known is None else together(known, ids)


def merged(workspace: Workspace, frame: DataFrame, combine: OverArrow) -> Base:
    """Chunks exchanged and combined, as a base."""
    return merged_with_reports(workspace, frame, combine)[0]


def merged_with_reports(
    workspace: Workspace, frame: DataFrame, combine: OverArrow
) -> tuple[Base, list[dict[str, Any]]]:
    """The same, with what tasks have reported."""
    kept, reports = workspace.settled(workspace.over(workspace.exchanged(frame), combine))
    return Base.of(workspace, [kept], *counts_of(workspace, reports)), reports
