"""Update: a version as DataFrames, maintained on Spark by the algorithms of every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from corollary.algorithms.maintain import Maintainer
from corollary.core.changes import Changes
from corollary.core.notices import gathering
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark import hadoop, stored
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.failures import explained
from corollary.engines.spark.on_demand import read_on_demand
from corollary.engines.spark.stored import DataFrame, SparkSession
from corollary.engines.spark.write import read_files, union, write_facts
from corollary.errors import InvalidInput
from corollary.knowledge_base.axioms import Axioms, axiom_texts, axioms_of
from corollary.knowledge_base.distributed import maintained
from corollary.knowledge_base.patterns import read_pattern
from corollary.knowledge_base.rules import Rules, read_rules
from corollary.knowledge_base.spark import chunks
from corollary.knowledge_base.spark.built import Built
from corollary.knowledge_base.spark.hybrid import kept_by
from corollary.knowledge_base.spark.load import GONE, Loaded, load
from corollary.knowledge_base.spark.parts import SourceReader
from corollary.knowledge_base.spark.pipeline import add_new_terms, add_terms, dictionary_of
from corollary.knowledge_base.spark.sessions import cores_of, started, steady
from corollary.knowledge_base.spark.sources import Inputs, gathered
from corollary.knowledge_base.spark.stages import OnProgress, Stages
from corollary.knowledge_base.stored import Difference, counted
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, TYPE, Atom
from corollary.rdf.triples import OnError
from corollary.store import Snapshot, Statistics, Store, Writer
from corollary.store.layout import DELETED

_FEW = 100_000  # changed facts that the driver takes at once
# On Spark, where each step is a job, `auto` is FP-update, which has the fewest steps, for more
# deletions than these,
_CHECKED = 1_000
# unless they are more than 1 / 50 of the explicit facts, where everything may be derived anew.
_SHARE = 50


def update(
    path: str | Path,
    *,
    insert: Any,
    delete: Any,
    add_rules: Rules | Iterable[Rules],
    remove_rules: Rules | Iterable[Rules],
    algorithm: str,
    master: str | None,
    session: SparkSession | None,
    on_error: OnError,
    limit_input_bytes: int | None,
    keep_labels: bool,
    message: str | None,
    batch: str | None,
    on_progress: OnProgress | None,
) -> Built:
    """See `corollary.knowledge_base.spark.update`."""
    store = Store.open(path)
    snapshot = store.snapshot()
    _refuse(snapshot)
    stages = Stages(on_progress)
    with stages.stage("session"):
        session = started(session, master)
        cores = cores_of(session)
    writer = store.writer(snapshot.version)
    arities = {name: count.width for name, count in snapshot.statistics.relations.items()}
    gather = partial(
        gathered,
        find=partial(hadoop.find, session),
        is_frame=stored.is_frame,
        first=writer.first_term,
        cores=cores,
        arities=arities,
    )
    inserted, deleted = gather(insert), gather(delete, name="x")
    before, added, removed, stated = _programs(snapshot, inserted, deleted, add_rules, remove_rules)
    program = before.removed(*removed).added(*added)
    reader = SourceReader(on_error, keep_labels, limit_input_bytes, arities | dict(program.arities))
    with steady(session):
        loaded = load(
            session,
            inserted,
            Program.of([*dict.fromkeys((*_statements(before), *_statements(program)))]),
            reader,
            stages,
            first=writer.first_term,
            terms=read_files(session, snapshot.term_files(), stored.TERM_COLUMNS),
            cores=cores,
            deleted=deleted,
        )
        engine = None
        try:
            writer.reserve(loaded.width)
            terms = add_terms(session, writer, loaded, stages)
            dictionary = dictionary_of(loaded, terms)
            engine = SparkEngine(dictionary, ColumnarEngine, session, terms=terms)
            with (
                stages.stage("update") as stage,
                explained("update"),
                gathering(loaded.notices),
            ):
                difference, done, kept, axioms = _maintained(
                    engine, snapshot, loaded, before, added, removed, stated, algorithm
                )
                statistics = done.statistics
                assert statistics is not None, "an update has statistics"
                stage.rounds = statistics.rounds
            with stages.stage("commit") as stage, explained("commit"):
                add_new_terms(writer, dictionary)
                stage.rows = _write(writer, difference, engine, loaded.constants[TYPE])
                chunks.save(engine.workspace, writer, kept)
                made = Statistics(
                    counted(snapshot.statistics.relations, difference, _widths(loaded, program)),
                    sum(map(len, difference.inserted)),
                    sum(map(len, difference.deleted)),
                    statistics.algorithm,
                    statistics.reason,
                    "spark",
                    statistics.rounds,
                    dict(statistics.derivations),
                    stages.seconds,
                )
                same = program == before and stated == snapshot.program.axioms
                version = writer.commit(
                    program=None if same else program.with_axioms(stated),
                    asserted=axiom_texts(axioms.asserted),
                    prefixes={**loaded.prefixes, **before.prefixes},
                    statistics=made,
                    message=message or "",
                    batch=batch,
                )
                chunks.clean(writer)
        finally:
            if engine is not None:
                engine.release()
            loaded.release()
    loaded.notices.warn()
    return Built(
        version,
        made.explicit,
        made.facts,
        made.inserted,
        made.deleted,
        made.rounds,
        made.derivations,
        made.algorithm,
        made.reason,
        stages.done,
        stages.seconds,
        loaded.skipped,
        loaded.samples,
    )


def _maintained(
    engine: Any,
    snapshot: Snapshot,
    loaded: Loaded,
    before: Program,
    added: tuple[Any, ...],
    removed: tuple[Any, ...],
    stated: frozenset[Atom],
    algorithm: str,
) -> tuple[Difference, Changes[Any], Any, Axioms[Any]]:
    """The difference after the changes that were loaded, what was done, the reasoner, the axioms.

    `stated` are the axioms of the program afterwards.
    """
    gone = sum(count for name, count in loaded.rows.items() if name.startswith(GONE))
    if algorithm == "auto" and _CHECKED < gone <= snapshot.statistics.explicit // _SHARE:
        algorithm = "fp"
    kept: Any
    if snapshot.mode == "hybrid":  # what is kept is small, and made again
        own = _facts(engine, snapshot).where("explicit").drop("explicit")
        explicit = read_on_demand(engine.workspace, own, TRIPLES_NAME)
        patterns = [
            read_pattern(text, before.arities, before.prefixes)
            for text in snapshot.commit.materialize
        ]
        kept = kept_by(before, explicit, engine, materialize=patterns, algorithm=algorithm)
    else:
        found = chunks.load(engine.workspace, snapshot)
        if found is None:
            rows = _facts(engine, snapshot)
            found = (*engine.read_stored(rows, snapshot.statistics.relations), None)
        explicit, known, complete = found
        kept = maintained(
            before,
            explicit,
            engine,
            algorithm=algorithm,
            coarse=True,
            known=known,
            complete=complete,
        )
        if isinstance(kept, Maintainer):
            kept.begin()
    inserted, deleted = (_changed(engine, loaded, gone=gone) for gone in (False, True))
    axioms, asked = axioms_of(
        snapshot, lambda atoms: engine.facts(encode(atoms, engine.dictionary)), engine.dictionary
    ).change(stated, Changes(inserted, deleted, added, removed), explicit)
    done = kept.update(asked)
    return Difference.of(done, asked, explicit, kept.explicit), done, kept, axioms


def _facts(engine: Any, snapshot: Snapshot) -> DataFrame:
    """The facts of a version, from its tables."""
    session = engine.workspace.session
    width = snapshot.schema.names.index("explicit") - 1
    rows = read_files(session, snapshot.fact_files(), stored.fact_columns(width))
    engine.workspace.suit(snapshot.statistics.facts)
    return stored.current_facts(rows, width)


def _changed(engine: Any, loaded: Loaded, *, gone: bool) -> Any:
    """The inserted or the deleted facts."""
    rows = {name: count for name, count in loaded.rows.items() if name.startswith(GONE) is gone}
    if not sum(rows.values()):
        return engine.facts({})
    frame = _chosen(loaded.facts, gone=gone)
    if sum(rows.values()) > _FEW:
        return engine.read(frame)
    return engine.read_few(frame, [name.removeprefix(GONE) for name in rows])


def _chosen(facts: DataFrame, *, gone: bool) -> DataFrame:
    """The inserted or the deleted ones of loaded facts."""
    marked = f"relation LIKE '{GONE}%'"
    if not gone:
        return facts.where(f"NOT {marked}")
    others = [name for name in facts.columns if name != "relation"]
    name = f"substring(relation, {len(GONE) + 1}) AS relation"
    return facts.where(marked).selectExpr(name, *others)


def _write(writer: Writer, difference: Difference, engine: Any, type_id: int) -> int:
    """Write the rows of facts and of changes; how many there are."""
    parts = [part for part in difference.parts() if len(part[2])]
    if not parts:
        return 0
    facts, changes = [], []
    for change, explicit, part in parts:
        frame = engine.frame(part).selectExpr("*", f"{str(explicit).lower()} AS explicit")
        gone = change == DELETED
        facts.append(
            stored.fact_rows(
                frame, writer.width, explicit=None, version=writer.version, deleted=gone
            )
        )
        changes.append(stored.change_rows(frame, writer.width, change, writer.version, writer.id))
    rows = sum(len(part) for _, _, part in parts)
    store = writer.store
    for table, frames, add in (
        (store.facts, facts, writer.add_fact_files),
        (store.changes, changes, writer.add_change_files),
    ):
        add(write_facts(union(frames), table.folder, writer.id, rows=rows, type_id=type_id))
    return rows


def _widths(loaded: Loaded, program: Program) -> Callable[[Predicate, Any], int]:
    """The number of arguments of a predicate."""

    def width(predicate: Predicate, facts: Any) -> int:
        name = predicate.relation
        return 3 if name == TRIPLE else loaded.arities.get(name) or program.arities.get(name, 0)

    return width


def _programs(
    snapshot: Snapshot,
    inserted: Inputs,
    deleted: Inputs,
    add_rules: Rules | Iterable[Rules],
    remove_rules: Rules | Iterable[Rules],
) -> tuple[Program, tuple[Any, ...], tuple[Any, ...], frozenset[Atom]]:
    """The rules before, those that come and go, and the axioms afterwards."""
    before = snapshot.program.without_facts()
    if len(deleted.program.rules) or len(deleted.program.constraints):
        raise InvalidInput("E341", "expected facts to delete, found rules", "use --remove-rules")
    new = read_rules(add_rules) | inserted.program
    old = read_rules(remove_rules)
    added = tuple(rule for rule in _statements(new) if rule not in before)
    removed = tuple(rule for rule in _statements(old) if rule not in new)
    axioms = snapshot.program.axioms
    for axiom in old.axioms - axioms:
        text = Printer(before.prefixes).atom(axiom)
        raise InvalidInput(
            "E307", f"the program has no axiom {text}", "use --delete for facts of the data"
        )
    return before, added, removed, (axioms - old.axioms) | new.axioms


def _statements(program: Program) -> tuple[Any, ...]:
    return (*program.rules, *program.constraints)


def _refuse(snapshot: Snapshot) -> None:
    if snapshot.commit.equality != "rules":
        raise InvalidInput(
            "E547",
            "Spark does not update stores with representatives of equal terms",
            "update it with --engine columnar",
            file=str(snapshot.store.path),
        )
