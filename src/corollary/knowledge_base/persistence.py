"""Knowledge bases in stores: open a version, save a state, commit a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa

from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine, Facts
from corollary.core.files import Identity
from corollary.core.statistics import Statistics
from corollary.engines.columnar.budget import format_bytes
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base.axioms import axiom_texts, axioms_of
from corollary.knowledge_base.patterns import arities_of, materialized_patterns
from corollary.knowledge_base.results import results_of
from corollary.knowledge_base.state import KnowledgeState, Settings
from corollary.knowledge_base.stored import (
    VersionChanges,
    change_rows,
    columns_of,
    counted,
    facts_of,
    rows_in_order,
    with_auxiliary,
)
from corollary.knowledge_base.stores import empty_store
from corollary.lang.declarations import Declarations
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.store import Statistics as VersionStatistics
from corollary.store import Store, cache, compaction
from corollary.store.commits import Count
from corollary.store.opening import open_columns
from corollary.store.places import Place
from corollary.store.snapshot import Snapshot

# An update holds the facts and their indexes about twice; text is compressed in files.
KEY, COPIES, EXPANDED = 8, 4, 4
_BATCH = 1 << 20  # terms per write


@dataclass(frozen=True)
class Committed:
    """A committed version and its changes."""

    version: int
    statistics: VersionStatistics
    changes: VersionChanges[Facts]


@dataclass(eq=False)
class StoreHandle:
    """The store of a knowledge base, and the version loaded in memory."""

    store: Store
    dictionary: Dictionary
    version: int
    stored_terms: int  # dictionary terms that the store already has
    relations: Mapping[str, Count]
    program: Program  # including its axioms
    is_newest: bool = True
    origin: Identity | None = field(init=False)  # of the store's first log entry

    def __post_init__(self) -> None:
        """Remember which store it is: a purge puts another one in its place."""
        self.origin = self.store.origin()

    @classmethod
    def of(cls, snapshot: Snapshot, dictionary: Dictionary, *, is_newest: bool) -> StoreHandle:
        """Create the handle of an opened version, before any term is added."""
        return cls(
            snapshot.store,
            dictionary,
            snapshot.version,
            len(dictionary),
            snapshot.statistics.relations,
            snapshot.program,
            is_newest,
        )

    def refuse_old_version(self) -> None:
        """Fail unless this is the newest version; older ones are read-only."""
        if not self.is_newest:
            raise OperationFailed(
                "E502",
                f"version {self.version} is not the newest one and cannot be changed",
                "open the store without at_version",
                file=str(self.store.path),
            )

    def commit(
        self,
        changes: VersionChanges[Facts],
        program: Program,
        asserted: Sequence[str],
        prefixes: Mapping[str, str],
        declarations: Declarations,
        update: Statistics,
        *,
        message: str = "",
        batch: str | None = None,
    ) -> Committed:
        """Commit the changes of a transaction; a failure leaves memory and store unchanged.

        `program` is the new program with its axioms; it is written if it differs from the last.
        """
        writer = self.store.writer(self.version)
        if writer.first_term != self.stored_terms:
            raise writer.conflict()
        counts = counted(self.relations, changes)
        statistics = changes.statistics(counts, update, "columnar", update.seconds)
        try:
            writer.reserve(max((count.width for count in counts.values()), default=0))
            # May add ids of classes and properties to the dictionary.
            rows = change_rows(changes, self.dictionary, writer.width)
            if len(self.dictionary) > self.stored_terms:
                writer.add_terms(self.dictionary.texts_from(self.stored_terms))
            if rows is not None:
                writer.add_facts(rows.drop(["change"]))
                writer.add_changes(rows.drop(["deleted"]))
            version = writer.commit(
                statistics=statistics,
                program=None if program == self.program else program,
                asserted=asserted,
                prefixes=prefixes,
                declarations=str(declarations),
                message=message,
                batch=batch,
            )
        finally:
            self.stored_terms = writer.stored_terms
        self.version, self.relations, self.program = version, counts, program
        return Committed(version, statistics, changes)

    def compact(self) -> None:
        """Merge small files if there are many, which commits another version."""
        if compaction.needed(self.store.facts.files(self.version)):
            # Another writer may have committed first, or the disk may be full: retry later.
            with suppress(OperationFailed):
                commit = compaction.compact(self.store, attempts=1)
                if commit is not None and commit.version == self.version + 1:
                    self.version = commit.version


def open_state(
    path: Place,
    *,
    at_version: int | None = None,
    settings: Settings | None = None,
    threads: int = 1,
    limit_memory: int | None = None,
    write_cache: bool = True,
) -> KnowledgeState:
    """Open a store; see `KnowledgeBase.open`. Without `write_cache`, nothing is written into it.

    The mode, the treatment of equality and the patterns come from the store.
    """
    store = Store.open(path)
    newest = store.latest()
    snapshot = store.snapshot(newest if at_version is None else at_version)
    is_newest = snapshot.version == newest
    opened = open_columns(snapshot, keep=write_cache and is_newest)
    columnar = ColumnarEngine(opened.dictionary, threads=threads, limit_memory=limit_memory)
    facts, explicit = facts_of(opened, columnar)
    engine = cast("Engine[Facts]", columnar)
    program, commit = snapshot.program.without_facts(), snapshot.commit
    settings = replace(
        settings or Settings(),
        mode=commit.mode,
        equality=commit.equality,
        materialize=materialized_patterns(snapshot),
    )

    return KnowledgeState(
        engine,
        settings,
        settings.stored(program, explicit, results_of(facts), engine),
        axioms_of(snapshot, engine),
        program.prefixes,
        arities_of(snapshot),
        program.declarations,
        snapshot.version,
        StoreHandle.of(snapshot, opened.dictionary, is_newest=is_newest),
    )


def save_state(state: KnowledgeState, path: Place, *, message: str) -> Committed:
    """Save a state as a new store; see `KnowledgeBase.save`."""
    facts, explicit = state.reasoner.facts, state.reasoner.explicit
    if not isinstance(facts, ColumnarFacts) or not isinstance(explicit, ColumnarFacts):
        raise InvalidInput(
            "E507",
            "a knowledge base on Spark cannot be saved as it is",
            "corollary.spark.build makes a store with Spark",
        )
    dictionary, settings, program = state.dictionary, state.settings, state.program
    facts = with_auxiliary(facts, explicit)
    derived, nothing = facts.difference(explicit), facts.only(())
    changes: VersionChanges[Facts] = VersionChanges(
        (explicit, derived), (nothing, nothing), nothing, nothing
    )
    counts = counted({}, changes)
    widths = [count.width for count in counts.values()]
    store = empty_store(path, max([*state.arities.values(), *widths], default=0))
    store.discard_orphaned_terms()
    writer = store.writer()
    writer.reserve(max((count.width for count in counts.values()), default=0))
    columns = columns_of(facts, explicit, dictionary)  # may add ids of classes and properties
    writer.add_terms(_batches(dictionary))
    if len(facts):
        writer.add_facts(rows_in_order(explicit, derived, dictionary))
    update = state.last_update or Statistics("semi-naive", "materialization from scratch")
    statistics = changes.statistics(counts, update, "columnar", update.seconds)
    version = writer.commit(
        statistics=statistics,
        program=program,
        asserted=axiom_texts(state.axioms.asserted),
        prefixes=state.prefixes,
        declarations=str(state.declarations),
        kind="build",
        message=message,
        equality=settings.equality,
        mode=settings.mode,
        materialize=[Printer().atom(pattern) for pattern in settings.materialize],
    )
    cache.write(store, version, [columns], dictionary.arrays())
    state.store = StoreHandle(store, dictionary, version, writer.stored_terms, counts, program)
    state.version = version
    return Committed(version, statistics, changes)


def _batches(dictionary: Dictionary) -> Iterator[pa.Array]:
    texts = dictionary.texts_from(0)
    for start in range(0, len(texts), _BATCH):
        yield texts.slice(start, _BATCH)


def refuse_too_large(store: Store, limit: int | None) -> None:
    """Fail if an update of the newest version would not fit into `limit` bytes."""
    if limit is None:
        return
    snapshot = store.snapshot()
    statistics = snapshot.statistics
    size = KEY * (statistics.facts + statistics.explicit) * COPIES
    size += EXPANDED * sum(file.size for file in snapshot.term_data)
    if size > limit:
        raise OperationFailed(
            "E406",
            f"an update of {statistics.facts:,} facts and {snapshot.commit.terms:,} terms needs"
            f" about {format_bytes(size)}, but --limit-memory allows {format_bytes(limit)}",
            "use --engine spark, or raise the limit",
            file=str(store.path),
        )
