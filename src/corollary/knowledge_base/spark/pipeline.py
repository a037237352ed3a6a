"""Build a committed version from sources, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corollary.core.graphs import DEFAULT, DEFAULTS, REASON_OVER
from corollary.core.notices import gathering
from corollary.core.object_store import StorePath
from corollary.core.partial import PartialDictionary
from corollary.engines.spark import stored
from corollary.engines.spark.failures import explain_failures
from corollary.engines.spark.local import address
from corollary.engines.spark.reports import RoundReport
from corollary.engines.spark.rows import arguments
from corollary.engines.spark.stored import DataFrame
from corollary.engines.spark.write import write_facts
from corollary.errors import InvalidInput, OperationFailed
from corollary.knowledge_base import distributed
from corollary.knowledge_base.axioms import axiom_texts
from corollary.knowledge_base.fact_forms import FactForm, read_fact
from corollary.knowledge_base.graphs import ReasonOver, graph_named, reason_over_terms
from corollary.knowledge_base.hybrid import check_mode
from corollary.knowledge_base.relation_frames import result_relations
from corollary.knowledge_base.rules import Rules, read_rules
from corollary.knowledge_base.spark import chunks
from corollary.knowledge_base.spark.built import Built, built
from corollary.knowledge_base.spark.graphs import axiom_rows, explicit_rows
from corollary.knowledge_base.spark.load import Loaded
from corollary.knowledge_base.spark.operation import (
    Operation,
    add_new_terms,
    all_terms,
    dictionary_of,
)
from corollary.knowledge_base.spark.options import Options
from corollary.knowledge_base.spark.parts import RELATION, cells
from corollary.knowledge_base.spark.relations import relation_rows, result_frame
from corollary.knowledge_base.spark.sessions import in_session
from corollary.knowledge_base.spark.sources import input_parts
from corollary.knowledge_base.spark.stages import Stage, skew
from corollary.knowledge_base.stores import QUAD_WIDTH, is_empty
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import QUADS, TRIPLE_COLUMNS, TRIPLES_NAME, TYPE, Atom
from corollary.store import Statistics, Store, Writer
from corollary.store.commits import Count
from corollary.store.marker import remove_store


@dataclass(frozen=True)
class Kind:
    """What a store holds: its mode, its treatment of equality, and patterns of hybrid stores;
    and the graphs that rules read.
    """

    mode: str = "materialized"
    equality: str = "rules"
    materialize: Sequence[FactForm] = ()
    reason_over: ReasonOver = "union"


def build(
    path: StorePath,
    sources: Any,
    rules: Rules | Iterable[Rules],
    kind: Kind,
    partitions: int | None,
    options: Options,
) -> Built:
    """See `corollary.knowledge_base.spark.build`."""
    if isinstance(path, Path):
        address(path)  # fails early if Spark cannot write there
    check_mode(kind.mode, kind.equality, kind.materialize)
    program = read_rules(rules)
    read = reason_over_terms(
        kind.reason_over, lambda text: graph_named(str(text), program.prefixes)
    )
    with Operation.begin(options, f"build {path}") as operation, operation.frames:
        inputs = operation.gather(sources, program.arities)
        inputs.parts += input_parts(program)
        if inputs.program:
            program = program | inputs.program
        prematerialized = [
            read_fact(pattern, program.arities, program.prefixes) for pattern in kind.materialize
        ]
        with _create_store(path, kind) as store:
            writer = store.writer()
            chosen = Program.of((), [Atom(REASON_OVER.relation, (graph,)) for graph in read])
            loaded = operation.load(inputs, program | chosen, arities=program.arities)
            if read or QUADS in loaded.rows:
                graphs = {loaded.constants[graph] for graph in read} if read else None
                default = loaded.constants.get(DEFAULT)
                rows = explicit_rows(loaded.facts, default, graphs)
                if graphs is not None and default not in graphs:
                    axioms = axiom_rows(rows, program.axioms, loaded.constants)
                    rows = rows.unionAll(axioms)
                facts = operation.frames.persist(rows)
                encoded = replace(loaded.encoded, facts=facts)
                loaded = replace(loaded, encoded=encoded)
            writer.reserve(loaded.width)
            terms = operation.add_terms(writer, loaded)
            with (
                operation.stages.stage("materialize") as stage,
                gathering(loaded.notices),
                explain_failures("materialize"),
            ):
                done, dictionary = _materialize(
                    operation,
                    loaded,
                    program,
                    terms,
                    mode=kind.mode,
                    equality=kind.equality,
                    patterns=prematerialized,
                    partitions=partitions,
                )
                stage.rows, stage.rounds = done.count, len(done.rounds)
                stage.skew = max((report.skew for report in done.rounds), default=1.0)
            with operation.stages.stage("commit") as stage, explain_failures("commit"):
                asserted = loaded.encoded.repeated
                add_new_terms(writer, dictionary)
                counts = _write(writer, loaded, done, stage, operation.cores)
                if kind.equality == "rules":
                    chunks.save(done.engine.run, writer, done.reasoner)
            records = {DEFAULTS.relation: 3, REASON_OVER.relation: 1}
            widths = {**program.arities, **loaded.arities, **records}
            statistics = Statistics(
                {name: Count(widths.get(name, 3), *n) for name, n in counts.items()},
                inserted=stage.rows,
                algorithm=done.statistics.algorithm,
                reason=done.statistics.reason,
                engine="spark",
                rounds=len(done.rounds),
                derivations=done.statistics.derivations,
                seconds=operation.stages.seconds,
            )
            version = writer.commit(
                program=program,
                asserted=axiom_texts(asserted),
                prefixes={**loaded.prefixes, **program.prefixes},
                statistics=statistics,
                mode=kind.mode,
                equality=kind.equality,
                materialize=[Printer().atom(pattern) for pattern in prematerialized],
                kind="build",
                message=options.message or "",
            )
    loaded.notices.warn()
    return built(version, statistics, operation.stages, loaded)


def materialize(
    frame: DataFrame | Mapping[str, DataFrame],
    program: Program | Rules | Iterable[Rules],
    options: Options,
) -> DataFrame | dict[str, DataFrame]:
    """See `corollary.knowledge_base.spark.materialize`."""
    rules = read_rules(program)
    if isinstance(frame, Mapping):
        return _materialize_relations(frame, rules, options)
    triples = {*TRIPLE_COLUMNS} <= {*frame.columns}
    if not triples and RELATION not in frame.columns:
        raise InvalidInput(
            "E546",
            f"expected the columns subject, predicate and object, or {RELATION}, arg0, arg1, …;"
            f" found {', '.join(frame.columns) or 'none'}",
            "rename the columns of the DataFrame",
        )
    with Operation.begin(options, "materialize") as operation:  # the result reads its frames
        facts, terms, width = _closed([frame], rules, operation)
        if triples:
            names = dict(zip(arguments(3), TRIPLE_COLUMNS, strict=True))
            chosen = facts.where(f"relation = '{TRIPLES_NAME}'")
            found = stored.with_texts(chosen, terms, 3, names, None)
        else:
            same = {name: name for name in arguments(width)}
            found = stored.with_texts(facts, terms, width, {"relation": RELATION, **same}, cells)
    return in_session(found, frame.sparkSession)


def _closed(
    frames: Sequence[DataFrame], rules: Program, operation: Operation
) -> tuple[DataFrame, DataFrame, int]:
    """Materialize the facts of DataFrames: all facts in ids, their terms, and the width."""
    inputs = operation.gather(frames, rules.arities)
    inputs.parts += input_parts(rules)
    loaded = operation.load(inputs, rules, arities=rules.arities, keep_labels=True)
    terms = loaded.terms
    with gathering(loaded.notices), explain_failures("materialize"):
        done, dictionary = _materialize(operation, loaded, rules, terms)
    loaded.notices.warn()
    terms = all_terms(terms, dictionary)
    return _fact_rows(done, loaded.width, 0), terms, loaded.width


def _materialize_relations(
    frames: Mapping[str, DataFrame], rules: Program, options: Options
) -> dict[str, DataFrame]:
    """Materialize a DataFrame for each relation, and return one for each derived relation."""
    if not frames:
        raise InvalidInput("E546", "there is no DataFrame", 'give a relation: {"edge": frame}')
    session = next(iter(frames.values())).sparkSession
    with Operation.begin(options, "materialize") as operation:  # the results read its frames
        rows = [relation_rows(frame, name, rules) for name, frame in frames.items()]
        facts, terms, _ = _closed(rows, rules, operation)
        found = {name: result_frame(facts, terms, name, rules) for name in result_relations(rules)}
    return {name: in_session(frame, session) for name, frame in found.items()}


def _materialize(
    operation: Operation,
    loaded: Loaded,
    program: Program,
    terms: DataFrame,
    **options: Any,
) -> tuple[distributed.Materialized, PartialDictionary]:
    """Materialize facts; also return the dictionary."""
    dictionary = dictionary_of(terms, loaded)
    done = distributed.materialize(
        loaded.facts,
        program.without_facts(),
        dictionary,
        rows=sum(loaded.rows.values()),
        terms=terms,
        on_round=lambda report: operation.stages.tell(_round(report)),
        **operation.engine_options(),
        **options,
    )
    return done, dictionary


def _fact_rows(done: distributed.Materialized, width: int, version: int) -> DataFrame:
    """Convert explicit and derived facts to rows of the facts table."""
    explicit = stored.fact_rows(
        done.engine.frame(done.explicit), width, explicit=True, version=version
    )
    return explicit.union(stored.fact_rows(done.derived, width, explicit=False, version=version))


def _write(
    writer: Writer, loaded: Loaded, done: distributed.Materialized, stage: Stage, cores: int
) -> dict[str, tuple[int, int]]:
    """Write explicit and derived facts; return explicit and total counts by relation."""
    files = write_facts(
        _fact_rows(done, writer.width, writer.version),
        writer.store.facts.folder,
        writer.id,
        rows=len(done.explicit) + done.count,
        type_id=loaded.constants[TYPE],
        least=cores,
    )
    writer.add_fact_files([file.name for file in files])
    stage.rows = sum(file.rows for file in files)
    stage.bytes = sum(file.bytes for file in files)
    stage.skew = skew([file.bytes for file in files] or [1])
    counts: dict[str, tuple[int, int]] = {}
    for file in files:
        for (relation, explicit), count in file.counts.items():
            own, total = counts.get(relation, (0, 0))
            counts[relation] = own + count * explicit, total + count
    return counts


@contextmanager
def _create_store(path: StorePath, kind: Kind) -> Iterator[Store]:
    """Create a store, and remove it if the block fails.

    An existing empty store of this kind, such as an interrupted build leaves, is reused.
    """
    if is_empty(path):
        store = Store.open(path)
        store.discard_orphaned_terms()
        yield store
        return
    there = path.is_dir()
    store = Store.create(path, mode=kind.mode, equality=kind.equality, width=QUAD_WIDTH)
    try:
        yield store
    except BaseException:
        with suppress(OSError, OperationFailed):
            remove_store(path)
            if not there:
                path.rmdir()
        raise


def _round(report: RoundReport) -> str:
    return (
        f"round {report.number}, {report.phase}: {report.new:,} facts derived,"
        f" {report.exchanged:,} exchanged, {report.seconds:.2f} s"
    )
