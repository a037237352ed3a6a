"""Large sets of facts: chunks in Spark, hash-partitioned by first argument.

A `Base` is a view of some predicates of checkpointed chunks. Chunks are immutable, so facts that
the driver fetches from them are cached with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corollary.core.compile import TRIPLES, TYPES
from corollary.core.dictionary import Dictionary, Ids
from corollary.core.engine import Engine
from corollary.core.ids import contains, in_order, missing_in, together
from corollary.engines.spark.copies import Checkpoint, WithCopies
from corollary.engines.spark.options import EngineOptions
from corollary.engines.spark.packing import (
    ARROW,
    COPIED,
    DERIVED,
    FRESH,
    NONE,
    REPORT,
    SCHEMA,
    STATE,
    ChunkBuffer,
    Key,
    Packed,
    unpack_counts,
)
from corollary.engines.spark.plan import TRIPLE_NUMBER
from corollary.engines.spark.remote import parallelism
from corollary.engines.spark.reports import RoundReport
from corollary.engines.spark.shuffle import repartition_by_id
from corollary.engines.spark.task import (
    TOO_MANY,
    Combine,
    DropLastColumn,
    Embedded,
    Fetch,
    OverArrow,
    Select,
    merge_by_partition,
    merge_chunks,
)
from corollary.engines.spark.terms import TermTable
from corollary.engines.spark.tuning import tuning
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, TYPE

_LOOKED_UP = 4  # facts that one look-up may answer, per fact that the driver keeps
_SHARES = 4  # by which the partitions of looked-up facts may differ in size

Wanted = Mapping[Key, Mapping[int, Ids] | Ids | None]  # see `task.Fetch`


class TooManyFacts(Exception):
    """A look-up found more facts than the driver should hold."""


class SparkRun:
    """The lazily started session, the embedded engine, and the numbering of facts."""

    def __init__(
        self,
        start: Callable[[], SparkSession],
        dictionary: Dictionary,
        embedded: Embedded,
        options: EngineOptions,
    ) -> None:
        self._start = start
        self.dictionary = dictionary
        self.make_engine = embedded
        self.options = options
        self.small = options.small
        self.looked_up_limit = _LOOKED_UP * options.small
        self.driver_pairs_limit = tuning.driver_pairs_ratio * options.small
        self.frames = options.frames
        self.reports: list[RoundReport] = []
        self._partitions = options.partitions
        self._numbers: dict[str, int] = {TRIPLE: TRIPLE_NUMBER}
        self._names: list[str] = [TRIPLE]

    @cached_property
    def session(self) -> SparkSession:
        return self._start()

    @cached_property
    def embedded(self) -> Engine[Any]:
        """The engine of the driver."""
        return self.make_engine(self.dictionary)

    @cached_property
    def nothing(self) -> Any:
        """The empty set of driver facts."""
        return self.embedded.facts({})

    @cached_property
    def terms(self) -> TermTable | None:
        """The terms table; None if the dictionary has all terms."""
        return None if self.options.terms is None else TermTable(self, self.options.terms)

    @property
    def partitions(self) -> int:
        """The number of partitions of facts."""
        if self._partitions is None:
            self._partitions = max(2, parallelism(self.session))
        return self._partitions

    def choose_partitions(self, rows: int, per_partition: int = 4_000_000) -> None:
        """Choose the number of partitions from the row count, unless it is already fixed."""
        if self._partitions is None:
            self._partitions = max(self.partitions, -(-rows // per_partition))

    def restore_numbering(self, names: Sequence[str], partitions: int) -> None:
        """Restore the relation numbers and partitions of an earlier run, before any is assigned."""
        assert self._names == [TRIPLE], "no relation has a number"
        self._names = list(names)
        self._numbers = {name: number for number, name in enumerate(names)}
        self._partitions = partitions

    @cached_property
    def type_id(self) -> int:
        return self.dictionary.id(TYPE)

    def number(self, relation: str) -> int:
        """Number a relation, assigning the next number if it is new."""
        number = self._numbers.get(relation)
        if number is None:
            number = self._numbers[relation] = len(self._names)
            self._names.append(relation)
        return number

    @property
    def names(self) -> Sequence[str]:
        """The names of relations by number."""
        return self._names

    def numbers(self, tables: Iterable[str]) -> dict[str, int]:
        """Map the names of relations in tables to their numbers, triples included."""
        numbers = {name: self.number(name) for name in tables if name != TRIPLES_NAME}
        return {TRIPLES_NAME: TRIPLE_NUMBER, **numbers}

    def key(self, predicate: Predicate, columns: int) -> Key:
        """Encode a predicate and an arity as the key of its tables."""
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
        """Decode keys to narrow predicates."""
        ids = {i for key in keys if key[0] == TRIPLE_NUMBER for i in key[1:3] if i != NONE}
        terms = dict(zip(ids, self.dictionary.terms(list(ids)), strict=True))
        predicates = {}
        for key in keys:
            relation, property_, member_of, _ = key
            if relation != TRIPLE_NUMBER:
                predicates[key] = Predicate(self._names[relation])
            elif member_of != NONE:
                predicates[key] = Predicate(TRIPLE, TYPE, terms[member_of])
            else:
                predicates[key] = Predicate(TRIPLE, terms[property_])
        return predicates

    def tables_of(self, facts: Any) -> Packed:
        """Convert driver facts to tables by key."""
        out = {}
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            out[self.key(predicate, rows.shape[1])] = rows
        return out

    def facts_of(self, tables: Packed) -> Any:
        """Convert tables by key to driver facts."""
        names = self.predicates(tables.keys())
        return self.embedded.facts({names[key]: rows for key, rows in tables.items() if len(rows)})

    # -- jobs ------------------------------------------------------------------------------------

    def chunks(self, buffer: ChunkBuffer) -> DataFrame | None:
        """Create a frame from chunks of the driver."""
        batches = list(buffer.drain())
        if not batches:
            return None
        return self.session.createDataFrame(pa.Table.from_batches(batches, ARROW))

    def empty(self) -> DataFrame:
        """Create a frame without chunks."""
        return self.session.createDataFrame(ARROW.empty_table(), SCHEMA)

    def partitioned(self, tables: Packed) -> DataFrame | None:
        """Create a frame from driver facts, hash-partitioned by first argument."""
        out = ChunkBuffer()
        for key, rows in tables.items():
            out.send(DERIVED, key, rows, 0, self.partitions)
        return self.chunks(out)

    def shuffle(self, frame: DataFrame) -> DataFrame:
        """Shuffle chunks to their target partitions."""
        return repartition_by_id(frame, self.partitions, frame.partition)

    def map_chunks(self, frame: DataFrame, function: OverArrow) -> DataFrame:
        return frame.mapInArrow(function, SCHEMA)

    def map_rows(self, frame: DataFrame, function: OverArrow, schema: str) -> DataFrame:
        """Apply a function to a frame whose results are rows of another schema, not chunks."""
        return frame.mapInArrow(function, schema)

    def job(self, phase: str, frame: DataFrame, function: OverArrow) -> Checkpoint:
        """Apply a function to chunks, checkpoint them, and record the job under its phase."""
        start = time.perf_counter()
        self.describe(phase)
        found = self.checkpoint(frame, function)
        done = [report for report in found.reports if "in" in report]
        seconds = time.perf_counter() - start
        self.record(RoundReport.of(len(self.reports) + 1, phase, done, seconds))
        return found

    def describe(self, step: str) -> None:
        """Label the next jobs in Spark's UI."""
        self.options.labels.describe(step)

    def record(self, report: RoundReport) -> None:
        """Record a round or job of the engine."""
        self.reports.append(report)
        if self.options.on_report is not None:
            self.options.on_report(report)

    def checkpoint(self, frame: DataFrame, function: OverArrow) -> Checkpoint:
        """Apply a function to chunks and cut their lineage: one job.

        Small results are copied to the driver with the reports of the tasks.
        """
        return self.compute(self.map_chunks(frame, WithCopies(function, self.copies_limit)))

    def compute(self, frame: DataFrame) -> Checkpoint:
        """Compute a frame and cut its lineage, and collect reports and copies."""
        checkpointed = self.frames.checkpoint(frame)
        found = checkpointed.where(f"kind = {REPORT} OR kind >= {COPIED}").toArrow()
        return Checkpoint.of(checkpointed, found.to_batches())

    @property
    def copies_limit(self) -> int:
        """The number of facts that a task copies to the driver: its share of those kept there."""
        return self.small // self.partitions

    def select_kinds(self, frame: DataFrame, *kinds: int) -> DataFrame:
        """Select chunks of some kinds, without those for the driver."""
        return frame.where(f"partition >= 0 AND kind IN ({', '.join(map(str, kinds))})")

    def select_for_driver(self, frame: DataFrame) -> DataFrame:
        """Select the chunks addressed to the driver."""
        return frame.where(f"partition < 0 AND kind < {COPIED}")

    def union(self, frames: Sequence[DataFrame]) -> DataFrame:
        """Concatenate frames of chunks."""
        return reduce(DataFrame.union, frames)

    def collect(self, frame: DataFrame) -> dict[Key, Ids]:
        """Collect the tables of a frame on the driver."""
        return merge_chunks(frame.toArrow().to_batches())

    def collect_by_partition(self, frame: DataFrame) -> dict[int, dict[Key, Ids]]:
        """Collect the tables of a frame on the driver, by target partition."""
        return merge_by_partition(frame.toArrow().to_batches())


@dataclass(eq=False)
class CachedChunks:
    """Checkpointed chunks, with a cache of the facts that the driver has fetched."""

    frame: DataFrame
    counts: Mapping[Predicate, int]
    keys: Mapping[Predicate, Key]
    facts: Any  # fetched facts, on the driver
    probed: Any  # facts whose membership was probed
    fully_fetched: set[Predicate] = field(default_factory=set)  # predicates fetched as a whole
    fetched_ids: dict[tuple[Predicate, int], Ids] = field(default_factory=dict)  # sorted ids
    folder: str | None = None  # their files, see `chunk_cache`


Part = tuple[CachedChunks, frozenset[Predicate]]  # chunks, and the predicates in view


@dataclass
class Base:
    """A view of some predicates of several disjoint sets of chunks."""

    run: SparkRun
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        merged: dict[CachedChunks, frozenset[Predicate]] = {}
        for cached, predicates in self.parts:
            if predicates:
                merged[cached] = merged.get(cached, frozenset()) | predicates
        self.parts = tuple(merged.items())
        self.counts: dict[Predicate, int] = {}
        for cached, predicates in self.parts:
            for predicate in predicates:
                self.counts[predicate] = self.counts.get(predicate, 0) + cached.counts[predicate]

    @classmethod
    def of(cls, run: SparkRun, frame: DataFrame, counts: Mapping[Key, int]) -> Base:
        """Create a base from chunks with these numbers of facts by key."""
        names = run.predicates(counts.keys())
        cached = CachedChunks(
            frame,
            {names[key]: count for key, count in counts.items()},
            {name: key for key, name in names.items()},
            run.nothing,
            run.nothing,
        )
        return cls(run, ((cached, frozenset(cached.counts)),))

    @classmethod
    def known(cls, run: SparkRun, facts: Any) -> Base:
        """Create a base from driver facts, which stay cached on the driver too."""
        tables = run.tables_of(facts)
        frame = run.partitioned(tables)
        assert frame is not None, "there are facts"
        base = cls.of(run, frame, {key: len(rows) for key, rows in tables.items()})
        [(cached, named)] = base.parts
        cached.facts = facts
        cached.fully_fetched |= named
        return base

    @classmethod
    def reported(cls, run: SparkRun, found: Checkpoint) -> Base:
        """Create a base from chunks whose facts are counted in the reports of tasks.

        Predicates of which the driver received all facts stay cached there.
        """
        sums: dict[Key, int] = {}
        for report in found.reports:
            for key, count in unpack_counts(report["counts"]).items() if report["counts"] else ():
                sums[key] = sums.get(key, 0) + count
        base = cls.of(run, found.frame, sums)
        received = {key: t for key, t in found.derived.items() if len(t) == sums.get(key)}
        if received:
            [(cached, _)] = base.parts
            names = base.keys()
            cached.facts = run.facts_of(received)
            cached.fully_fetched |= {names[key] for key in received}
        return base

    def __len__(self) -> int:
        return sum(self.counts.values())

    @property
    def is_known(self) -> bool:
        """Whether the driver has cached all facts."""
        return all(named <= cached.fully_fetched for cached, named in self.parts)

    def chunks(self, kind: int = DERIVED, removed: Packed | None = None) -> DataFrame:
        """Emit the facts as chunks of a kind, without those in `removed`."""
        run = self.run
        parts = []
        for cached, predicates in self.parts:
            frame = cached.frame
            if removed or kind != DERIVED or len(predicates) < len(cached.counts):
                chosen = frozenset(cached.keys[p] for p in predicates)
                frame = run.map_chunks(frame, Select(kind, chosen, removed or {}))
            parts.append(frame)
        return run.union(parts)

    def keys(self) -> dict[Key, Predicate]:
        """Map keys to the predicates in view."""
        return {cached.keys[p]: p for cached, named in self.parts for p in named}

    def only(self, predicates: Collection[Predicate]) -> Base:
        """Restrict the view to some predicates."""
        chosen = frozenset(predicates)
        return Base(self.run, tuple((cached, named & chosen) for cached, named in self.parts))

    def fetch(
        self, wanted: Mapping[Predicate, Mapping[int, Ids] | None], *, limit: int | None = None
    ) -> Any:
        """Fetch at least the facts with given ids in a column, or all facts of a predicate.

        Raises `TooManyFacts` if more than about `limit` facts have these ids; all tasks together
        send at most a few times as many. Runs at most one job. A fetch of a whole predicate also
        prefetches the small predicates of the same chunks, which are likely to be needed next.
        """
        run = self.run
        fetched = run.nothing
        requests: list[tuple[CachedChunks, Wanted]] = []
        on_success: list[Callable[[], None]] = []
        shared: dict[bytes, Ids] = {}  # equal id arrays are pickled once
        for cached, predicates in self.parts:
            missing: dict[Key, Mapping[int, Ids] | Ids | None] = {}
            for predicate in wanted.keys() & predicates:
                if predicate in cached.fully_fetched:
                    continue
                places = wanted[predicate]
                if places is not None:
                    places = _unfetched(cached, predicate, places, shared)
                    if not places:
                        continue
                    on_success.append(partial(_mark_fetched, cached, predicate, places))
                else:
                    on_success.append(partial(cached.fully_fetched.add, predicate))
                missing[cached.keys[predicate]] = places
            if missing and None in missing.values():
                for predicate, count in cached.counts.items():
                    if (
                        count <= tuning.prefetched_facts_limit
                        and predicate not in cached.fully_fetched
                    ):
                        missing[cached.keys[predicate]] = None
                        on_success.append(partial(cached.fully_fetched.add, predicate))
            if missing:
                requests.append((cached, missing))
        self._fetch(requests, limit)
        for action in on_success:
            action()
        for cached, predicates in self.parts:
            fetched = fetched.union(cached.facts.only(list(predicates & wanted.keys())))
        return fetched

    def probe(self, facts: Any) -> Any:
        """Keep the driver facts that are in the base (semi-join); runs at most one job."""
        run = self.run
        members = run.nothing
        requests: list[tuple[CachedChunks, Wanted]] = []
        probed: list[tuple[CachedChunks, Any]] = []
        for cached, predicates in self.parts:
            probes = facts.only(list(predicates))
            known = [p for p in probes.predicates() if p in cached.fully_fetched]
            unknown = probes.without(known).difference(cached.probed).difference(cached.facts)
            unknown = self._not_fetched(cached, unknown)
            if len(unknown):
                requests.append((cached, run.tables_of(unknown)))
                probed.append((cached, unknown))
        self._fetch(requests)
        for cached, unknown in probed:
            cached.probed = cached.probed.union(unknown)
        for cached, predicates in self.parts:
            members = members.union(facts.only(list(predicates)).intersection(cached.facts))
        return members

    def _not_fetched(self, cached: CachedChunks, facts: Any) -> Any:
        """Select the facts of which no id was looked up in its column."""
        tables = {}
        for predicate in facts.predicates():
            rows = facts.rows(predicate)
            known = np.zeros(len(rows), bool)
            for column in range(rows.shape[1]):
                ids = cached.fetched_ids.get((predicate, column))
                if ids is not None:
                    known |= contains(ids, rows[:, column])
            if not known.all():
                tables[predicate] = rows[~known]
        return self.run.embedded.facts(tables)

    def _fetch(
        self, requests: Sequence[tuple[CachedChunks, Wanted]], limit: int | None = None
    ) -> None:
        """Fetch tables of several chunks in one job and cache them on the driver.

        Facts with the same subjects are likely to be needed next, so they are fetched too, if all
        are few.
        """
        if not requests:
            return
        more, on_success = self._with_subjects(requests)
        if on_success:
            with suppress(TooManyFacts):
                self._fetch_once(more, min(limit or self.run.small, self.run.small))
                for action in on_success:
                    action()
                return
        self._fetch_once(requests, limit)

    def _with_subjects(
        self, requests: Sequence[tuple[CachedChunks, Wanted]]
    ) -> tuple[list[tuple[CachedChunks, Wanted]], list[Callable[[], None]]]:
        """Extend look-ups of few subjects to all predicates of their chunks.

        Return the requests, and what to do when they have succeeded: nothing if none is extended.
        """
        parts: list[Ids] = []
        for _, wanted in requests:
            for places in wanted.values():
                if isinstance(places, np.ndarray):
                    parts += [places[:, 0]] if places.shape[1] else []
                elif places is not None:
                    parts += [places[0]] if 0 in places else []
        subjects = in_order(np.concatenate([np.empty(0, np.uint32), *parts]))
        if not 0 < len(subjects) <= tuning.prefetched_subjects_limit:
            return [], []
        extended: list[tuple[CachedChunks, Wanted]] = []
        on_success: list[Callable[[], None]] = []
        shared: dict[bytes, Ids] = {}
        for cached, wanted in requests:
            if len(cached.keys) > tuning.prefetched_predicates_limit:
                return [], []
            merged = dict(wanted)
            for predicate, key in cached.keys.items():
                before = wanted.get(key)
                if (
                    predicate in cached.fully_fetched
                    or not key[3]
                    or (key in wanted and before is None)
                ):
                    continue
                new = _unfetched(cached, predicate, {0: subjects}, shared)
                others = dict(before) if isinstance(before, Mapping) else {}
                if new or others:
                    merged[key] = others | new
                    on_success.append(partial(_mark_fetched, cached, predicate, new))
            extended.append((cached, merged))
        return extended, on_success

    def _fetch_once(
        self, requests: Sequence[tuple[CachedChunks, Wanted]], limit: int | None
    ) -> None:
        run = self.run
        # All tasks together send at most `_SHARES` times the limit, even if no key is skewed.
        share = None if limit is None else -(-_SHARES * limit // run.partitions)
        frames = [
            run.map_chunks(cached.frame, Fetch(DERIVED, wanted, number, limit=share))
            for number, (cached, wanted) in enumerate(requests)
        ]
        run.describe("look up facts")
        tables = run.collect_by_partition(run.union(frames))
        if TOO_MANY in tables:
            raise TooManyFacts
        for number, (cached, _) in enumerate(requests):
            cached.facts = cached.facts.union(run.facts_of(tables.get(number, {})))

    def renamed(self, predicate: Predicate, new: Predicate) -> Base:
        """Rename a predicate."""
        run, parts = self.run, list[Part]()
        for cached, predicates in self.parts:
            if predicate in predicates:
                key = cached.keys[predicate]
                new_key = (*run.key(new, key[3])[:3], key[3])
                select = Select(DERIVED, frozenset([key]), {}, {key: new_key})
                frame = run.map_chunks(cached.frame, select)
                parts += Base.of(run, frame, {new_key: cached.counts[predicate]}).parts
        return Base(run, tuple(parts))

    def drop_last_column(self) -> Base:
        """Drop the last column, a count."""
        if not self.parts:
            return self
        frame = self.run.map_chunks(self.chunks(), DropLastColumn())
        counts = {(*key[:3], key[3] - 1): self.counts[p] for key, p in self.keys().items()}
        return Base.of(self.run, frame, counts)

    def combine(self, operation: str, other: Base, mine: Packed, theirs: Packed) -> Base:
        """Apply a set operation to two bases, without the facts removed from each."""
        frames = [self.chunks(STATE, mine), other.chunks(FRESH, theirs)]
        combine = Combine(operation, self.run.make_engine)
        return merge(self.run, self.run.union(frames), combine)


def _unfetched(
    cached: CachedChunks, predicate: Predicate, places: Mapping[int, Ids], shared: dict[bytes, Ids]
) -> dict[int, Ids]:
    """Select, by column, the ids that have not been fetched yet."""
    new: dict[int, Ids] = {}
    for column, ids in places.items():
        known = cached.fetched_ids.get((predicate, column))
        left = in_order(ids) if known is None else missing_in(known, ids)
        if len(left):
            new[column] = shared.setdefault(left.tobytes(), left)
    return new


def _mark_fetched(cached: CachedChunks, predicate: Predicate, places: Mapping[int, Ids]) -> None:
    for column, ids in places.items():
        known = cached.fetched_ids.get((predicate, column))
        cached.fetched_ids[predicate, column] = ids if known is None else together(known, ids)


def merge(run: SparkRun, frame: DataFrame, combine: OverArrow) -> Base:
    """Shuffle and combine chunks into a base."""
    run.describe("combine sets")
    return Base.reported(run, run.checkpoint(run.shuffle(frame), combine))
