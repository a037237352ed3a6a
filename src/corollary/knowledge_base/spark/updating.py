"""Update a version on Spark, with the maintenance algorithms of every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.algorithms.reasoner import Reasoner
from corollary.core.changes import Changes
from corollary.core.graphs import DEFAULTS, REASON_OVER
from corollary.core.notices import gathering
from corollary.core.object_store import StorePath
from corollary.core.statistics import Statistics
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.spark import stored
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.facts import SparkFacts
from corollary.engines.spark.failures import explain_failures
from corollary.engines.spark.on_demand import read_on_demand
from corollary.engines.spark.stored import DataFrame
from corollary.engines.spark.write import write_facts
from corollary.errors import InvalidInput
from corollary.knowledge_base.axioms import Axioms, axiom_texts, axioms_of
from corollary.knowledge_base.distributed import spark_reasoner
from corollary.knowledge_base.graphs import explicit_changes
from corollary.knowledge_base.patterns import arities_of, materialized_patterns
from corollary.knowledge_base.rules import Rules, read_rules
from corollary.knowledge_base.spark import chunks
from corollary.knowledge_base.spark.built import Built, built
from corollary.knowledge_base.spark.load import DELETION_MARK, Loaded
from corollary.knowledge_base.spark.operation import (
    Operation,
    add_new_terms,
    current_facts,
    dictionary_of,
    term_table,
)
from corollary.knowledge_base.spark.options import Options
from corollary.knowledge_base.stored import VersionChanges, counted
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import TRIPLE, TYPE, Atom, Rule
from corollary.store import Snapshot, Store, Writer
from corollary.store.layout import DELETED

_COLLECTED_FACTS_LIMIT = 100_000  # changed facts that the driver collects directly
# On Spark, where each step is a job, `auto` chooses FP-update, which has the fewest steps, above
# this number of deletions,
_FP_DELETIONS_MINIMUM = 1_000
# but not above 1 / 50 of the explicit facts, where it may rematerialize.
_FP_SHARE = 50


@dataclass(frozen=True)
class Request:
    """The requested changes of an update."""

    insert: Any = ()
    delete: Any = ()
    add_rules: Rules | Iterable[Rules] = ()
    remove_rules: Rules | Iterable[Rules] = ()
    algorithm: str = "auto"
    keep_labels: bool = False
    batch: str | None = None


@dataclass(frozen=True)
class RuleChanges:
    """The rules before, the rules added and removed, and the axioms of the updated program."""

    before: Program
    added: tuple[Rule, ...]
    removed: tuple[Rule, ...]
    axioms: frozenset[Atom]

    @property
    def after(self) -> Program:
        """The rules after the update."""
        return self.before.removed(*self.removed).added(*self.added)


@dataclass(frozen=True)
class Maintained:
    """The materialization after an update, and its diff to the previous one."""

    reasoner: Reasoner[SparkFacts]
    difference: VersionChanges[SparkFacts]
    statistics: Statistics
    axioms: Axioms[SparkFacts]


def update(path: StorePath, request: Request, options: Options) -> Built:
    """See `corollary.knowledge_base.spark.update`."""
    store = Store.open(path)
    snapshot = store.snapshot()
    with Operation.begin(options, f"update {path}") as operation, operation.frames:
        writer = store.writer(snapshot.version)
        rules, loaded = _load(operation, snapshot, writer, request)
        program = rules.after
        writer.reserve(loaded.width)
        terms = operation.add_terms(writer, loaded)
        dictionary = dictionary_of(terms, loaded)
        engine = SparkEngine(
            dictionary, ColumnarEngine, operation.session, terms=terms, **operation.engine_options()
        )
        with (
            operation.stages.stage("update") as stage,
            explain_failures("update"),
            gathering(loaded.notices),
        ):
            done = _maintain(engine, snapshot, loaded, rules, request.algorithm)
            stage.rounds = done.statistics.rounds
        with operation.stages.stage("commit") as stage, explain_failures("commit"):
            add_new_terms(writer, dictionary)
            stage.rows = _write(writer, done.difference, engine, loaded.constants[TYPE])
            if snapshot.commit.equality == "rules":
                chunks.save(engine.run, writer, done.reasoner)
            counts = counted(
                snapshot.statistics.relations, done.difference, _widths(loaded, program)
            )
            statistics = done.difference.statistics(
                counts, done.statistics, "spark", operation.stages.seconds
            )
            same = program == rules.before and rules.axioms == snapshot.program.axioms
            version = writer.commit(
                program=None if same else program.with_axioms(rules.axioms),
                asserted=axiom_texts(done.axioms.asserted),
                prefixes={**loaded.prefixes, **rules.before.prefixes},
                statistics=statistics,
                message=options.message or "",
                batch=request.batch,
            )
            chunks.clean(writer)
    loaded.notices.warn()
    return built(version, statistics, operation.stages, loaded)


def _load(
    operation: Operation, snapshot: Snapshot, writer: Writer, request: Request
) -> tuple[RuleChanges, Loaded]:
    """Read the sources and the rules of an update."""
    arities = arities_of(snapshot)
    first = writer.first_term
    inserted = operation.gather(request.insert, arities, first=first)
    deleted = operation.gather(request.delete, arities, first=first, name="x")
    if len(deleted.program.rules) or len(deleted.program.constraints):
        raise InvalidInput("E341", "expected facts to delete, found rules", "use --remove-rules")
    rules = _rule_changes(
        snapshot, read_rules(request.add_rules) | inserted.program, read_rules(request.remove_rules)
    )
    known = Program.of([*dict.fromkeys((*_statements(rules.before), *_statements(rules.after)))])
    loaded = operation.load(
        inserted,
        known,
        deleted=deleted,
        arities=arities | dict(rules.after.arities),
        keep_labels=request.keep_labels,
        known=(term_table(operation.session, snapshot), first),
    )
    return rules, loaded


def _rule_changes(snapshot: Snapshot, new: Program, old: Program) -> RuleChanges:
    before, axioms = snapshot.program.without_facts(), snapshot.program.axioms
    for axiom in old.axioms - axioms:
        text = Printer(before.prefixes).atom(axiom)
        raise InvalidInput(
            "E307", f"the program has no axiom {text}", "use --delete for facts of the data"
        )
    return RuleChanges(
        before,
        tuple(rule for rule in _statements(new) if rule not in before),
        tuple(rule for rule in _statements(old) if rule not in new),
        (axioms - old.axioms) | new.axioms,
    )


def _maintain(
    engine: SparkEngine, snapshot: Snapshot, loaded: Loaded, rules: RuleChanges, algorithm: str
) -> Maintained:
    """Apply loaded changes to the materialization of a version."""
    deletions = sum(count for name, count in loaded.rows.items() if name.startswith(DELETION_MARK))
    if (
        algorithm == "auto"
        and _FP_DELETIONS_MINIMUM < deletions <= snapshot.statistics.explicit // _FP_SHARE
    ):
        algorithm = "fp"
    reasoner, explicit = _reasoner(engine, snapshot, rules.before, algorithm)
    inserted, deleted = (_read_changes(engine, loaded, deleted=flag) for flag in (False, True))
    changes = Changes(inserted, deleted, rules.added, rules.removed)
    own: Any = engine  # mypy does not see that an engine of SparkFacts is one of facts
    changes = cast("Changes[SparkFacts]", explicit_changes(cast("Any", changes), explicit, own))
    axioms, requested = axioms_of(snapshot, engine).change(rules.axioms, changes, explicit)
    done = reasoner.update(requested)
    assert done.statistics is not None, "an update has statistics"
    difference = VersionChanges.of(done, requested, explicit, reasoner.explicit)
    return Maintained(reasoner, difference, done.statistics, axioms)


def _reasoner(
    engine: SparkEngine, snapshot: Snapshot, program: Program, algorithm: str
) -> tuple[Reasoner[Any], SparkFacts]:
    """Create the reasoner of a version; return it and its explicit facts."""
    if snapshot.mode == "hybrid":  # the pre-materialized facts are few, and recomputed
        own = _facts(engine, snapshot).where("explicit").drop("explicit")
        patterns = materialized_patterns(snapshot)
        explicit = read_on_demand(engine.run, own)
        reasoner = spark_reasoner(
            program, explicit, engine, mode="hybrid", materialize=patterns, algorithm=algorithm
        )
        return reasoner, explicit
    found = chunks.load(engine.run, snapshot)
    if found is None:
        rows = _facts(engine, snapshot)
        found = (*engine.read_stored(rows, snapshot.statistics.relations), None)
    explicit, known, complete = found
    reasoner = spark_reasoner(
        program,
        explicit,
        engine,
        equality=snapshot.commit.equality,
        algorithm=algorithm,
        known=known,
        complete=complete,
    )
    return reasoner, explicit


def _facts(engine: SparkEngine, snapshot: Snapshot) -> DataFrame:
    """Read the facts of a version from its tables."""
    engine.run.choose_partitions(snapshot.statistics.facts)
    return current_facts(engine.run.session, snapshot)


def _read_changes(engine: SparkEngine, loaded: Loaded, *, deleted: bool) -> SparkFacts:
    """Read the inserted or the deleted facts."""
    rows = {
        name: count
        for name, count in loaded.rows.items()
        if name.startswith(DELETION_MARK) is deleted
    }
    if not sum(rows.values()):
        return engine.facts({})
    if (table := loaded.encoded.table) is not None:
        return engine.read_rows(_select_rows(table, deleted=deleted), _names(rows))
    frame = _select(loaded.facts, deleted=deleted)
    if sum(rows.values()) > _COLLECTED_FACTS_LIMIT:
        return engine.read(frame)
    return engine.read_few(frame, _names(rows))


def _names(rows: Iterable[str]) -> list[str]:
    return [name.removeprefix(DELETION_MARK) for name in rows]


def _select_rows(facts: pa.Table, *, deleted: bool) -> pa.Table:
    """Select the inserted or the deleted facts on the driver."""
    marked = pc.starts_with(facts.column("relation"), DELETION_MARK)
    if not deleted:
        return facts.filter(pc.invert(marked))
    chosen = facts.filter(marked)
    names = pc.utf8_slice_codeunits(chosen.column("relation"), len(DELETION_MARK))
    return chosen.set_column(0, "relation", names)


def _select(facts: DataFrame, *, deleted: bool) -> DataFrame:
    """Select the inserted or the deleted facts."""
    marked = f"relation LIKE '{DELETION_MARK}%'"
    if not deleted:
        return facts.where(f"NOT {marked}")
    others = [name for name in facts.columns if name != "relation"]
    name = f"substring(relation, {len(DELETION_MARK) + 1}) AS relation"
    return facts.where(marked).selectExpr(name, *others)


def _write(
    writer: Writer, difference: VersionChanges[SparkFacts], engine: SparkEngine, type_id: int
) -> int:
    """Write the rows of facts and of changes; return their number."""
    parts = [part for part in difference.parts() if len(part[2])]
    if not parts:
        return 0
    if all(part.base is None for _, _, part in parts):
        return _write_here(writer, parts, engine)
    facts, changes = [], []
    for change, explicit, part in parts:
        frame = engine.frame(part).selectExpr("*", f"{str(explicit).lower()} AS explicit")
        is_deletion = change == DELETED
        facts.append(
            stored.fact_rows(
                frame, writer.width, explicit=None, version=writer.version, deleted=is_deletion
            )
        )
        changes.append(stored.change_rows(frame, writer.width, change, writer.version, writer.id))
    rows = sum(len(part) for _, _, part in parts)
    store = writer.store
    for table, frames, add in (
        (store.facts, facts, writer.add_fact_files),
        (store.changes, changes, writer.add_change_files),
    ):
        frame = reduce(DataFrame.union, frames)
        files = write_facts(frame, table.folder, writer.id, rows=rows, type_id=type_id)
        add([file.name for file in files])
    return rows


def _write_here(
    writer: Writer, parts: Iterable[tuple[str, bool, SparkFacts]], engine: SparkEngine
) -> int:
    """Write the rows of facts and of changes that the driver has; return their number."""
    facts, changes, count = [], [], 0
    for change, explicit, part in parts:
        rows = engine.table(part, width=writer.width)
        count += rows.num_rows
        rows = rows.append_column("explicit", pa.array(np.full(rows.num_rows, explicit)))
        deleted = pa.array(np.full(rows.num_rows, change == DELETED))
        facts.append(rows.append_column("deleted", deleted))
        changes.append(rows.append_column("change", pa.array([change] * rows.num_rows)))
    writer.add_facts(pa.concat_tables(facts))
    writer.add_changes(pa.concat_tables(changes))
    return count


def _widths(loaded: Loaded, program: Program) -> Callable[[Predicate, Any], int]:
    """Return a function from predicates to arities."""

    def width(predicate: Predicate, facts: Any) -> int:
        name = predicate.relation
        records = {TRIPLE: 3, DEFAULTS.relation: 3, REASON_OVER.relation: 1}
        return records.get(name) or loaded.arities.get(name) or program.arities.get(name, 0)

    return width


def _statements(program: Program) -> tuple[Rule, ...]:
    return (*program.rules, *program.constraints)
