"""`Operation`: the shared state of the stages of one build, update or materialization."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from corollary.core.partial import CreatedTerms, PartialDictionary
from corollary.engines.spark import hadoop, stored
from corollary.engines.spark.failures import explain_failures
from corollary.engines.spark.jobs import JobLabels
from corollary.engines.spark.persisted import PersistedFrames
from corollary.engines.spark.remote import parallelism
from corollary.engines.spark.stored import DataFrame, SparkSession
from corollary.engines.spark.write import read_files, write
from corollary.knowledge_base.graphs import check_graph, graph_named
from corollary.knowledge_base.spark.load import Loaded, load
from corollary.knowledge_base.spark.options import Options
from corollary.knowledge_base.spark.parts import SourceReader
from corollary.knowledge_base.spark.sessions import (
    get_session,
    keep_active_session,
    operation_session,
)
from corollary.knowledge_base.spark.sources import Inputs, classify_sources
from corollary.knowledge_base.spark.stages import Stages
from corollary.lang.program import Program
from corollary.store import Snapshot, Writer
from corollary.store.term_hash import hashes

_NOTHING: Mapping[int, str] = {}


@dataclass(frozen=True, eq=False)
class Operation:
    """The session, stages and persisted frames of one operation, and its common steps."""

    options: Options
    session: SparkSession
    cores: int
    stages: Stages
    frames: PersistedFrames

    @classmethod
    @contextmanager
    def begin(cls, options: Options, title: str) -> Iterator[Operation]:
        """Start Spark if needed, and run an operation in a session of its own.

        Settings and the active session of the user stay as they are. `title` labels the jobs. The
        owner of the operation's frames releases them.
        """
        labels = JobLabels(title)
        stages = Stages(labels, options.on_progress)
        with stages.stage("session"):
            running = get_session(options.session, options.master, options.config)
        with keep_active_session(running):
            session = operation_session(running, options.config)
            with labels.grouped(session):
                cores = parallelism(session)
                yield cls(options, session, cores, stages, PersistedFrames())

    def engine_options(self) -> dict[str, Any]:
        """Options of `SparkEngine`: the owner of frames, and the labels of jobs."""
        return {"frames": self.frames, "labels": self.stages.labels}

    def gather(
        self, sources: Any, arities: Mapping[str, int], *, first: int = 0, name: str = ""
    ) -> Inputs:
        """Classify sources by reader; `first` and `name` scope the blank nodes of a load."""
        return classify_sources(
            sources,
            find=lambda pattern: hadoop.find(self.session, pattern),
            is_frame=stored.is_frame,
            first=first,
            cores=self.cores,
            arities=arities,
            name=name,
        )

    def load(
        self,
        inserted: Inputs,
        program: Program,
        *,
        deleted: Inputs | None = None,
        arities: Mapping[str, int],
        keep_labels: bool = False,
        known: tuple[DataFrame, int] | None = None,
    ) -> Loaded:
        """Parse and encode sources; `known` is the terms table of a store and its next id."""
        options = self.options
        declarations = program.declarations.columns_only()
        graph = None
        if options.graph is not None:
            graph = check_graph(graph_named(options.graph, program.prefixes))
        reader = SourceReader(
            options.on_error,
            keep_labels,
            options.limit_input_bytes,
            graph=graph,
            arities=arities,
            declarations=declarations,
        )
        return load(self, (inserted, deleted), program, reader, known)

    def add_terms(self, writer: Writer, loaded: Loaded) -> DataFrame:
        """Write the new terms into the folder of the terms table; return the extended table."""
        table = writer.store.terms
        files = writer.store.snapshot(writer.base.version).term_files()
        if count := loaded.numbered.count:
            with self.stages.stage("terms") as stage, explain_failures("writing terms"):
                stage.rows = count
                if loaded.encoded.table is not None:
                    file = writer.add_terms(loaded.numbered.texts)
                    stage.bytes, names = file.size, [file.path]
                else:
                    written = write(loaded.terms, table.folder, writer.id, rows=count)
                    names = [file.name for file in written]
                    writer.add_term_files(names)
                    stage.bytes = sum(file.bytes for file in written)
                files = [*files, *(table.folder / name for name in names)]
        return read_files(self.session, files, stored.TERM_COLUMNS)


def term_table(session: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Read the terms table of a version."""
    return read_files(session, snapshot.term_files(), stored.TERM_COLUMNS)


def current_facts(session: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Read the facts of a version: `relation`, `arg0`, `arg1`, … and `explicit`."""
    width = snapshot.schema.names.index("explicit") - 1
    rows = read_files(session, snapshot.fact_files(), stored.fact_columns(width))
    return stored.current_facts(rows, width)


def partial_dictionary(
    terms: DataFrame,
    constants: Mapping[Any, int],
    count: int,
    texts: Mapping[int, str] = _NOTHING,
    *,
    extensible: bool = False,
) -> PartialDictionary:
    """Create a dictionary of `count` terms that looks up others than these in the terms table.

    If it is `extensible`, the caller also stores the terms that tasks create.
    """

    def table() -> DataFrame:
        return reduce(DataFrame.union, map(_hashed, dictionary.created), terms)

    def fetch(ids: list[int]) -> list[str]:
        return stored.texts_of(table(), ids)

    def look_up(texts: list[str]) -> list[int | None]:
        wanted = hashes(pa.array(texts, pa.large_string())).to_pylist()
        found = stored.ids_of(table(), texts, wanted)
        return [found.get(text) for text in texts]

    dictionary = PartialDictionary(constants, count, fetch, look_up, extensible=extensible)
    dictionary.keep(texts)
    return dictionary


def dictionary_of(terms: DataFrame, loaded: Loaded) -> PartialDictionary:
    """Create the dictionary of a load; `terms` includes its new terms."""
    constants, count = loaded.constants, loaded.numbered.next_id
    return partial_dictionary(terms, constants, count, loaded.encoded.texts, extensible=True)


def add_new_terms(writer: Writer, dictionary: PartialDictionary) -> None:
    """Add the terms that rules have created, in the order of their ids."""
    new = dictionary.new_terms

    def add(first: int, last: int) -> None:
        texts = [text for number, text in new if first <= number < last]
        if texts:
            writer.add_terms(pa.array(texts, pa.large_string()))

    first = 0
    for part in dictionary.created:
        add(first, part.first)
        folder, name = writer.store.terms.folder, f"{writer.id}-{part.first}"
        files = write(_hashed(part), folder, name, rows=part.size)
        writer.add_term_files([file.name for file in files])
        first = part.first + part.size
    add(first, len(dictionary))


def all_terms(terms: DataFrame, dictionary: PartialDictionary) -> DataFrame:
    """Return ids and texts of a terms table, and of the terms that rules have created."""
    return stored.with_new_terms(terms, dictionary.new_terms, dictionary.created)


def _hashed(part: CreatedTerms) -> DataFrame:
    """Return terms that tasks have created as rows of the terms table."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = hashes(batch["term"].cast(pa.large_string()))
            yield pa.record_batch({"id": batch["id"], "term": batch["term"], "hash": found})

    table: DataFrame = part.table
    return table.mapInArrow(task, stored.TERM_COLUMNS)
