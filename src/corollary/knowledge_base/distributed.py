"""Materialize a DataFrame of encoded facts on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from corollary.algorithms.reasoner import Reasoner
from corollary.core.dictionary import Dictionary
from corollary.core.statistics import Statistics
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import Atom
from corollary.reasoning.choose import choose_reasoner
from corollary.reasoning.templates import is_specializable, split

if TYPE_CHECKING:
    from corollary.engines.spark.engine import SparkEngine
    from corollary.engines.spark.facts import SparkFacts
    from corollary.engines.spark.frames import DataFrame
    from corollary.engines.spark.reports import RoundReport

    OnReport = Callable[[RoundReport], None]


@dataclass(frozen=True)
class Materialized:
    """The derived facts of a DataFrame, and a report."""

    engine: SparkEngine
    reasoner: Reasoner[SparkFacts]  # for updates
    explicit: SparkFacts
    derived: DataFrame  # the facts that are not explicit: relation, arg0, arg1, …
    count: int  # the number of derived facts
    rounds: list[RoundReport]

    @property
    def statistics(self) -> Statistics:
        """The number of shuffles, and the rule instances of all rounds."""
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
    mode: str = "materialized",
    equality: str = "rules",
    patterns: Sequence[Atom] = (),
    rows: int = 0,
    on_round: OnReport | None = None,
    **options: Any,
) -> Materialized:
    """Materialize encoded facts under a program.

    `frame` has the columns relation, arg0, arg1, …, like the facts table of a store: a triple has
    the relation `triples` and the arguments subject, property and object. In hybrid mode, only the
    answers to `patterns` and to those of schemas are materialized. `rows` estimates the number of
    rows, which determines the number of partitions unless `partitions` is given. Other `options`
    are those of `SparkEngine`.
    """
    engine = _engine(frame, dictionary, on_round, **options)
    engine.run.choose_partitions(rows)
    for relation in program.arities:
        engine.run.number(relation)  # numbered relations are read without collecting names
    explicit = engine.read(frame)
    rules = program.without_facts()
    reasoner = spark_reasoner(
        rules, explicit, engine, mode=mode, materialize=patterns, equality=equality
    )
    new = reasoner.facts.difference(explicit)
    return Materialized(
        engine, reasoner, explicit, engine.frame(new), len(new), list(engine.reports)
    )


def spark_reasoner(
    program: Program,
    explicit: SparkFacts,
    engine: SparkEngine,
    *,
    mode: str = "materialized",
    **options: Any,
) -> Reasoner[SparkFacts]:
    """Choose the reasoner for facts on Spark; the options are those of `choose_reasoner`.

    There are as few strata as negation allows, because each costs some jobs.
    """
    if mode == "hybrid" and is_specializable(program):
        # Fetch the terms of axioms in one job, rather than one job per rule.
        axioms = explicit.only(split(program).predicates)
        ids = [axioms.rows(predicate).ravel() for predicate in axioms.predicates()]
        engine.dictionary.terms(np.unique(np.concatenate(ids)).tolist() if ids else ())
    return choose_reasoner(program, explicit, engine, mode=mode, coarse=True, **options)


def components(
    frame: DataFrame,
    edge: Predicate,
    dictionary: Dictionary,
    *,
    on_round: OnReport | None = None,
    **options: Any,
) -> DataFrame:
    """Compute connected components of encoded facts: each `node` and its `least` connected node.

    `edge` is the relation or property of the undirected edges. The closure of a symmetric and
    transitive relation is quadratic in the size of a component; if it is too large to write, this
    table contains the same information.
    """
    engine = _engine(frame, dictionary, on_round, **options)
    found = engine.components(edge, Predicate("least"), engine.read(frame))
    return engine.frame(found, width=2).selectExpr("arg0 AS node", "arg1 AS least")


def _engine(
    frame: DataFrame, dictionary: Dictionary, on_report: OnReport | None, **options: Any
) -> SparkEngine:
    from corollary.engines.spark.engine import SparkEngine  # loads PySpark

    session = frame.sparkSession
    return SparkEngine(dictionary, ColumnarEngine, session, on_report=on_report, **options)
