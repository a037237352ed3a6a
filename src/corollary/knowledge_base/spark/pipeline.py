"""Build: from sources to a committed version, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from corollary.core.notices import gathering
from corollary.core.partial import PartialDictionary
from corollary.engines.spark import hadoop, stored
from corollary.engines.spark.evaluate import RoundReport
from corollary.engines.spark.failures import explained
from corollary.engines.spark.local import address
from corollary.engines.spark.stored import DataFrame, SparkSession
from corollary.engines.spark.write import read_files, write_facts, write_terms
from corollary.errors import InvalidInput
from corollary.knowledge_base import distributed
from corollary.knowledge_base.axioms import axiom_texts
from corollary.knowledge_base.hybrid import check_mode
from corollary.knowledge_base.patterns import read_pattern
from corollary.knowledge_base.persistence import is_empty
from corollary.knowledge_base.rules import Rules, read_rules
from corollary.knowledge_base.spark import chunks
from corollary.knowledge_base.spark.built import Built
from corollary.knowledge_base.spark.hybrid import kept_by
from corollary.knowledge_base.spark.load import Loaded, load
from corollary.knowledge_base.spark.parts import RELATION, SourceReader, cells
from corollary.knowledge_base.spark.sessions import cores_of, started, steady
from corollary.knowledge_base.spark.sources import gathered
from corollary.knowledge_base.spark.stages import OnProgress, Stage, Stages, skew
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLES_NAME, TYPE
from corollary.rdf.triples import OnError
from corollary.store import Statistics, Store, Writer
from corollary.store.commits import Count
from corollary.store.marker import remove_store
from corollary.store.places import local_path
from corollary.store.term_hash import hashes


def build(
    path: str | Path,
    sources: Any,
    *,
    rules: Rules | Iterable[Rules],
    mode: str,
    patterns: Sequence[str],
    master: str | None,
    session: SparkSession | None,
    on_error: OnError,
    limit_input_bytes: int | None,
    message: str | None,
    partitions: int | None,
    on_progress: OnProgress | None,
) -> Built:
    """See `corollary.knowledge_base.spark.build`."""
    address(local_path(path))  # fails at once if Spark cannot write there
    check_mode(mode, "rules", patterns)
    program = read_rules(rules)
    stages = Stages(on_progress)
    with stages.stage("session"):
        session = started(session, master)
        cores = cores_of(session)
    inputs = gathered(
        sources,
        find=partial(hadoop.find, session),
        is_frame=stored.is_frame,
        first=0,
        cores=cores,
        arities=program.arities,
    )
    if len(inputs.program):
        program = program | inputs.program
    kept = [read_pattern(text, program.arities, program.prefixes) for text in patterns]
    make = partial(kept_by, materialize=kept) if mode == "hybrid" else None
    with steady(session), _created(path, mode) as store:
        writer = store.writer()
        reader = SourceReader(on_error, limit=limit_input_bytes, arities=program.arities)
        loaded = load(session, inputs, program, reader, stages, first=0, terms=None, cores=cores)
        try:
            writer.reserve(loaded.width)
            terms = add_terms(session, writer, loaded, stages)
            with stages.stage("materialize") as stage, gathering(loaded.notices):
                done, dictionary = derived(
                    session, loaded, program, terms, stages, partitions, make
                )
                _measure(stage, done)
            with stages.stage("commit") as stage, explained("commit"):
                asserted = loaded.repeated(program.axioms)
                add_new_terms(writer, dictionary)
                found = _write(session, writer, loaded, done, stage, cores)
                chunks.save(done.engine.workspace, writer, done.keeper)
            counts = {
                name: Count(_width(name, loaded, program), *numbers)
                for name, numbers in found.items()
            }
            statistics = Statistics(
                counts,
                inserted=stage.rows,
                algorithm=done.statistics.algorithm,
                reason=done.statistics.reason,
                engine="spark",
                rounds=len(done.rounds),
                derivations=done.statistics.derivations,
                seconds=stages.seconds,
            )
            version = writer.commit(
                program=program,
                asserted=axiom_texts(asserted),
                prefixes={**loaded.prefixes, **program.prefixes},
                statistics=statistics,
                mode=mode,
                materialize=[Printer().atom(pattern) for pattern in kept],
                kind="build",
                message=message or "",
            )
            done.derived.unpersist()
            done.engine.release()
        finally:
            loaded.release()
    loaded.notices.warn()
    return Built(
        version,
        statistics.explicit,
        statistics.facts,
        statistics.facts,
        0,
        statistics.rounds,
        statistics.derivations,
        statistics.algorithm,
        statistics.reason,
        stages.done,
        stages.seconds,
        loaded.skipped,
        loaded.samples,
    )


def _write(
    session: SparkSession,
    writer: Writer,
    loaded: Loaded,
    done: distributed.Materialized,
    stage: Stage,
    cores: int,
) -> dict[str, tuple[int, int]]:
    """Write explicit and derived facts; how many there are of each relation."""
    width, version, folder = writer.width, writer.version, writer.store.facts.folder
    explicit = done.engine.frame(done.explicit)
    rows = stored.fact_rows(explicit, width, explicit=True, version=version).union(
        stored.fact_rows(done.derived, width, explicit=False, version=version)
    )
    files = write_facts(
        rows,
        folder,
        writer.id,
        rows=sum(loaded.rows.values()) + done.count,
        type_id=loaded.constants[TYPE],
        least=cores,
    )
    writer.add_fact_files(files)
    written = [folder / file for file in files]
    found = stored.counts(read_files(session, written, stored.fact_columns(width)))
    stage.rows = sum(total for _, total in found.values())
    stage.bytes = sum(stored.sizes(written))
    stage.skew = skew(stored.sizes(written) or [1])
    return found


def add_terms(session: SparkSession, writer: Writer, loaded: Loaded, stages: Stages) -> DataFrame:
    """Write the new terms into the folder of the terms table; the table with them."""
    store = writer.store
    known = store.snapshot(writer.base.version).term_files()
    if loaded.numbered.count:
        with stages.stage("terms") as stage, explained("writing terms"):
            files = write_terms(loaded.terms, store.terms.folder, writer.id)
            writer.add_term_files(files)
            written = [store.terms.folder / file for file in files]
            stage.rows = loaded.numbered.count
            stage.bytes = sum(stored.sizes(written))
            known = [*known, *written]
    return read_files(session, known, stored.TERM_COLUMNS)


def derived(
    session: SparkSession,
    loaded: Loaded,
    program: Program,
    terms: DataFrame,
    stages: Stages,
    partitions: int | None,
    make: Callable[..., Any] | None = None,
) -> tuple[distributed.Materialized, PartialDictionary]:
    """All that follows from loaded facts, or what `make` keeps; and the dictionary of the rules."""
    dictionary = dictionary_of(loaded, terms)
    with explained("materialize"):
        done = distributed.materialize(
            loaded.facts,
            program.without_facts(),
            dictionary,
            session=session,
            partitions=partitions,
            make=make,
            rows=sum(loaded.rows.values()),
            terms=terms,
            on_round=lambda report: stages.tell(_round(report)),
        )
    return done, dictionary


def dictionary_of(loaded: Loaded, terms: DataFrame) -> PartialDictionary:
    """The constants of the program; other terms are looked up in the terms table."""

    def look_up(texts: list[str]) -> list[int | None]:
        wanted = hashes(pa.array(texts, pa.large_string())).to_pylist()
        found = stored.ids_of(terms, texts, wanted)
        return [found.get(text) for text in texts]

    return PartialDictionary(
        loaded.constants,
        loaded.numbered.first + loaded.numbered.count,
        fetch=lambda ids: stored.texts_of(terms, ids),
        look_up=look_up,
    )


def add_new_terms(writer: Writer, dictionary: PartialDictionary) -> None:
    """Terms that rules have made: results of aggregates and the like."""
    new = dictionary.new_terms
    if new:
        writer.add_terms(pa.array([text for _, text in new], pa.large_string()))


def materialize(
    frame: DataFrame,
    program: Program | Rules | Iterable[Rules],
    *,
    on_error: OnError,
    on_progress: OnProgress | None,
) -> DataFrame:
    """See `corollary.knowledge_base.spark.materialize`."""
    triples = {"subject", "predicate", "object"} <= {*frame.columns}
    if not triples and RELATION not in frame.columns:
        raise InvalidInput(
            "E546",
            f"expected the columns subject, predicate and object, or {RELATION}, arg0, arg1, …;"
            f" found {', '.join(frame.columns) or 'none'}",
            "rename the columns of the DataFrame",
        )
    rules = read_rules(program)
    session = frame.sparkSession
    stages = Stages(on_progress)
    cores = cores_of(session)
    inputs = gathered(
        [frame], find=None, is_frame=stored.is_frame, first=0, cores=cores, arities=rules.arities
    )
    with steady(session):
        reader = SourceReader(on_error, keep_labels=True, arities=rules.arities)
        loaded = load(session, inputs, rules, reader, stages, first=0, terms=None, cores=cores)
        terms = loaded.terms
        with gathering(loaded.notices):
            done, dictionary = derived(session, loaded, rules, terms, stages, None)
    loaded.notices.warn()
    if new := dictionary.new_terms:
        columns = list(zip(*new, strict=True))
        made = pa.table({"id": pa.array(columns[0]), "term": pa.array(columns[1], pa.string())})
        terms = terms.select("id", "term").union(session.createDataFrame(made))
    width = loaded.width
    facts = stored.fact_rows(
        done.engine.frame(done.explicit), width, explicit=True, version=0
    ).union(stored.fact_rows(done.derived, width, explicit=False, version=0))
    if triples:
        names = dict(zip(stored.arguments(3), ("subject", "predicate", "object"), strict=True))
        chosen = facts.where(f"relation = '{TRIPLES_NAME}'")
        return stored.written_out(chosen, terms, 3, names, None)
    same = {name: name for name in stored.arguments(width)}
    return stored.written_out(facts, terms, width, {"relation": RELATION, **same}, cells)


@contextmanager
def _created(path: str | Path, mode: str) -> Iterator[Store]:
    """A new store, of which nothing is left if what follows fails.

    An empty one, such as an interrupted build leaves, is used as it is.
    """
    if is_empty(path):
        store = Store.open(path)
        store.begin_again()
        yield store
        return
    folder = local_path(path)
    there = folder.is_dir()
    store = Store.create(path, mode=mode)
    try:
        yield store
    except BaseException:
        with suppress(OSError):
            remove_store(folder)
            if not there:
                folder.rmdir()
        raise


def _width(name: str, loaded: Loaded, program: Program) -> int:
    return loaded.arities.get(name) or program.arities.get(name, 3)


def _measure(stage: Stage, done: distributed.Materialized) -> None:
    stage.rows = done.count
    stage.rounds = len(done.rounds)
    stage.skew = max((report.skew for report in done.rounds), default=1.0)


def _round(report: RoundReport) -> str:
    return (
        f"round {report.number}, {report.phase}: {report.new:,} facts derived,"
        f" {report.exchanged:,} exchanged, {report.seconds:.2f} s"
    )
