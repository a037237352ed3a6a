"""A DataFrame of encoded facts, materialized on Spark by the same algorithms as everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corollary.algorithms.maintain import Maintainer
from corollary.core.dictionary import Dictionary
from corollary.core.statistics import Statistics
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.knowledge_base.general import GeneralMaintainer
from corollary.knowledge_base.ontology import Specialized
from corollary.knowledge_base.tuning import tuning
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.rdf.specialize import is_specializable, schema_predicates

if TYPE_CHECKING:
    from corollary.engines.spark.engine import SparkEngine
    from corollary.engines.spark.evaluate import RoundReport
    from corollary.engines.spark.frames import DataFrame, SparkSession


@dataclass(frozen=True)
class Materialized:
    """What follows from the facts of a DataFrame, and what it took."""

    engine: SparkEngine
    keeper: Maintainer[Any] | Specialized[Any] | GeneralMaintainer[Any]  # to go on with updates
    explicit: Any
    facts: Any
    derived: DataFrame  # facts that follow and are not explicit: relation, arg0, arg1, …
    count: int  # of them
    rounds: list[RoundReport]

    @property
    def program(self) -> Program:
        """The rules that did the work."""
        keeper = self.keeper
        return keeper.program if isinstance(keeper, Maintainer) else keeper.specialized

    @property
    def statistics(self) -> Statistics:
        """The exchanges and the rule instances of all rounds."""
        found = Statistics("semi-naive", "materialization from scratch, on Spark")
        found.rounds = len(self.rounds)
        for report in self.rounds:
            found.count(report.phase, report.instances)
        found.seconds["rounds"] = sum(report.seconds for report in self.rounds)
        return found


def materialize(
    frame: DataFrame,
    program: Program,
    dictionary: Dictionary,
    *,
    specialize: bool = True,
    session: SparkSession | None = None,
    partitions: int | None = None,
    rows: int = 0,
    algorithm: str = "auto",
    modules: bool = True,
    make: Callable[..., Any] | None = None,
    on_round: Callable[[RoundReport], None] | None = None,
    **options: Any,
) -> Materialized:
    """The closure of encoded facts under a program.

    `frame` has the columns relation, arg0, arg1, …, as the store's table of facts: a triple is of
    the relation `triples`, and its arguments are subject, property and object. A program with
    variable properties or classes is specialized to the schema that the facts hold, if that is
    small, unless `specialize` is false (`maintained`). Strata are as few as negation allows: each
    costs some jobs. `algorithm` and `modules` are those of updates that follow; without modules, a
    small one is not closed again (`fp` and `bf` then take some twenty to thirty jobs, whatever the
    size of the data). `rows` are about how many rows the frame has, for as many `partitions` as
    they need if that is not given. `make` is what keeps the facts, if not all that follow are kept.
    Other `options` are those of `SparkEngine`.
    """
    from corollary.engines.spark.engine import SparkEngine

    engine = SparkEngine(
        dictionary,
        ColumnarEngine,
        session or frame.sparkSession,
        partitions=partitions,
        on_report=on_round,
        **options,
    )
    engine.workspace.suit(rows)
    for relation in program.arities:
        engine.workspace.number(relation)  # a relation that has a number is read without asking
    explicit = engine.read(frame)
    make = make or (maintained if specialize else Maintainer)
    keeper: Any = make(
        program.without_facts(),
        explicit,
        engine,
        algorithm=algorithm,
        modules=modules,
        coarse=True,
    )
    facts = keeper.facts
    new = facts.difference(explicit)
    return Materialized(
        engine, keeper, explicit, facts, engine.frame(new), len(new), list(engine.reports)
    )


def maintained(
    program: Program, explicit: Any, engine: SparkEngine, **options: Any
) -> Maintainer[Any] | Specialized[Any] | GeneralMaintainer[Any]:
    """What keeps mat(Π, E) on Spark; the options are those of `Maintainer`.

    Rules with variable properties or classes are specialized to a schema of few axioms. With more,
    they stay as they are, and every task has the schema.
    """
    if not is_specializable(program):
        return Maintainer(program, explicit, engine, **options)
    predicates = schema_predicates(program)
    if len(explicit.only(predicates)) <= tuning.specialized_axioms_limit:
        return Specialized(program, explicit, engine, **options)
    engine.replicated = predicates
    return GeneralMaintainer(program, explicit, engine, **options)


def components(
    frame: DataFrame,
    edge: Predicate,
    dictionary: Dictionary,
    *,
    session: SparkSession | None = None,
    partitions: int | None = None,
    on_round: Callable[[RoundReport], None] | None = None,
    **options: Any,
) -> DataFrame:
    """The connected components of encoded facts: `node`, and `least`, the least node of its own.

    `edge` names the facts that connect, a relation or a property, without direction. A relation
    that is symmetric and transitive has the square of a component's nodes as facts; where they are
    too many to be written, who is connected with whom is told by this table as well.
    """
    from corollary.engines.spark.engine import SparkEngine

    engine = SparkEngine(
        dictionary,
        ColumnarEngine,
        session or frame.sparkSession,
        partitions=partitions,
        on_report=on_round,
        **options,
    )
    found = engine.components(edge, Predicate("least"), engine.read(frame))
    return engine.frame(found, width=2).selectExpr("arg0 AS node", "arg1 AS least")
