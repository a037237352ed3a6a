"""Named graphs on Spark: explicit facts of a build, and tables of graphs for queries.

See `corollary.knowledge_base.graphs`: the relations are the same, computed by joins of DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from corollary.core.graphs import DEFAULTS, QUAD, REASON_OVER
from corollary.engines.spark.stored import DataFrame
from corollary.lang.syntax import TRIPLE, TRIPLES_NAME, Atom, Constant
from corollary.query.plan import Source
from corollary.store.commits import Count

_TRIPLE = ["arg0", "arg1", "arg2"]


def explicit_rows(
    facts: DataFrame, default: int | None, graphs: Collection[int] | None
) -> DataFrame:
    """The explicit facts of statements in graphs: rows of triples, quads and other relations.

    `default` is the id of the default graph if rules read chosen graphs, and `graphs` are the ids
    of these; None stands for all graphs.
    """
    triples = _rows(facts, TRIPLES_NAME).select(*_TRIPLE)
    quads = _rows(facts, QUAD.relation)
    is_read = graphs is None or default in graphs
    if graphs is not None:
        ids = [graph for graph in graphs if graph != default]
        quads = quads.where(quads["arg3"].isin(ids))
    named = quads.select(*_TRIPLE).distinct()
    explicit, defaults = named, triples
    if is_read:
        explicit, defaults = triples.unionAll(named), triples.join(named, _TRIPLE, "left_semi")
    others = facts.where(f"relation <> '{TRIPLES_NAME}'")
    missing = [f"CAST(NULL AS BIGINT) AS {name}" for name in facts.columns[4:]]
    for relation, rows in ((TRIPLES_NAME, explicit), (DEFAULTS.relation, defaults)):
        others = others.unionAll(rows.selectExpr(f"'{relation}' AS relation", *_TRIPLE, *missing))
    return others


def axiom_rows(
    facts: DataFrame, axioms: Iterable[Atom], constants: Mapping[Constant, int]
) -> DataFrame:
    """The axioms of a program that are triples, in the columns of facts; they always hold."""
    width = len(facts.columns) - 1
    rows = [
        (TRIPLES_NAME, *(constants[term] for term in axiom.constants()), *(None,) * (width - 3))
        for axiom in axioms
        if axiom.relation == TRIPLE
    ]
    return facts.sparkSession.createDataFrame(rows, facts.schema)


def graph_frames(
    facts: DataFrame,
    relations: Mapping[str, Count],
    default_id: int | None,
    axioms: Callable[[], DataFrame] | None = None,
    derived: Callable[[], DataFrame] | None = None,
) -> Mapping[Source, Callable[[], DataFrame]]:
    """The tables of graphs for queries over the facts of a version.

    `default_id` is the id of `DEFAULT`; `axioms` returns the triples that only the program
    states, and `derived` the derived triples of a hybrid store.
    """
    names = [f"arg{at} AS {name}" for at, name in enumerate("spo")]

    def explicit() -> DataFrame:
        return _rows(facts, TRIPLES_NAME).where("explicit").selectExpr(*names)

    def quads() -> DataFrame:
        if QUAD.relation not in relations:
            return explicit().selectExpr("*", "CAST(NULL AS BIGINT) AS g").limit(0)
        return _rows(facts, QUAD.relation).selectExpr(*names, "arg3 AS g")

    def default() -> DataFrame:
        found = with_axioms()
        return found if axioms is None else found.join(axioms(), ["s", "p", "o"], "left_anti")

    def with_axioms() -> DataFrame:
        if QUAD.relation not in relations and DEFAULTS.relation not in relations:
            return explicit()
        recorded = _rows(facts, DEFAULTS.relation).selectExpr(*names)
        named = _rows(facts, QUAD.relation).where("explicit").selectExpr(*names, "arg3 AS g")
        chosen = relations.get(REASON_OVER.relation)
        if chosen is not None and chosen.facts:
            read = _rows(facts, REASON_OVER.relation).selectExpr("arg0 AS g")
            named = named.join(read, "g", "left_semi")
            if default_id is None or read.where(read["g"] == default_id).isEmpty():
                return recorded
        alone = explicit().join(named.select("s", "p", "o"), ["s", "p", "o"], "left_anti")
        return alone.unionAll(recorded).distinct()

    def own_derived() -> DataFrame:
        return _rows(facts, TRIPLES_NAME).where("NOT explicit").selectExpr(*names)

    def unread() -> DataFrame:
        recorded = _rows(facts, DEFAULTS.relation).selectExpr(*names)
        every = quads().select("s", "p", "o").unionAll(recorded).distinct()
        return every.join(explicit(), ["s", "p", "o"], "left_anti")

    frames: dict[Source, Callable[[], DataFrame]] = {
        "quads": quads,
        "default": default,
        "explicit": explicit,
        "derived": derived or own_derived,
    }
    count = relations.get(REASON_OVER.relation)
    return {**frames, "unread": unread} if count is not None and count.facts else frames


def _rows(facts: DataFrame, relation: str) -> DataFrame:
    return facts.where(facts["relation"] == relation)
