"""Queries by Spark SQL: the same translation over a table of triples and a table of terms.

Functions of terms are Python's there too, over texts that are joined from the table of terms. Spark
has no recursive queries over sets, so that the pairs of `+` and `*` are found before the query,
round by round. The session is given; nothing of Spark is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from corollary.core.terms import term_of, text_of
from corollary.lang.syntax import Constant
from corollary.query.aggregates import AGGREGATES
from corollary.query.columns import RESULTS, bound
from corollary.query.dialect import Dialect, SparkDialect
from corollary.query.plan import Call, Closure, Plan, Scan
from corollary.query.values import Fault, Value, text

_ROUNDS_KEPT = 5  # after so many rounds of a closure its plan is cut


class SparkTerms:
    """The ids of terms in a table."""

    def __init__(self, terms: Any) -> None:
        self._terms = terms
        self._known: dict[Constant, int | None] = {}
        self._count: int | None = None

    def __len__(self) -> int:
        if self._count is None:
            self._count = int(self._terms.count())
        return self._count

    def find(self, term: Constant) -> int | None:
        """The id of a term, None if the table lacks it."""
        if term not in self._known:
            column = self._terms["term"]
            found = self._terms.where(column == text_of(term)).select("id").collect()
            self._known[term] = int(found[0][0]) if found else None
        return self._known[term]


class SparkRunner:
    """Runs plans over DataFrames: triples (s, p, o) of ids, and terms (id, term)."""

    def __init__(self, session: Any, triples: Any, terms: Any) -> None:
        self._session = session
        self._triples = triples
        self._all_terms = terms
        self._terms = terms

    def refresh(self) -> None:
        """The tables are what they are."""

    @property
    def dialect(self) -> Dialect:
        """Spark's."""
        return SparkDialect()

    def run(self, plan: Plan) -> pa.Table:
        """The solutions of a plan: ids and texts, a column for each of its columns."""
        self._prepare(plan)
        return self._session.sql(plan.sql).toArrow()

    def explain(self, plan: Plan) -> str:
        """How Spark carries out a plan."""
        self._prepare(plan)
        found = self._session.sql(f"EXPLAIN FORMATTED {plan.sql}").collect()
        return str(found[0][0])

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids that a plan has given."""
        distinct = [(found,) for found in ids.unique().to_pylist() if found is not None]
        wanted = self._session.createDataFrame(distinct, "id bigint")
        rows = self._terms.join(wanted, "id").select("id", "term").collect()
        known = {row[0]: row[1] for row in rows}
        return pa.array(
            [None if found is None else known[found] for found in ids.to_pylist()],
            pa.large_string(),
        )

    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """All triples."""
        return [Scan(None, None, None)]

    def forget(self, plan: Plan) -> None:
        """Functions are made anew for each run."""

    def _prepare(self, plan: Plan) -> None:
        own = [(-1 - number, text_of(term)) for number, term in enumerate(plan.constants)]
        self._terms = self._all_terms.select("id", "term")
        if own:
            mine = self._session.createDataFrame(own, "id bigint, term string")
            self._terms = self._terms.unionAll(mine)
        self._terms.createOrReplaceTempView("terms")
        self._triples.createOrReplaceTempView("triples")
        for call in plan.calls:
            self._define(call)
        for closure in plan.closures:
            self._close(closure)

    def _define(self, call: Call) -> None:
        kind = "boolean" if call.wanted == "condition" else "string"
        function = _aggregating(call) if call.wanted == "aggregate" else _evaluating(call)
        made = self._session.udf.register(call.name, function, kind)
        if call.volatile:
            self._session.udf.register(call.name, made.asNondeterministic())

    def _close(self, closure: Closure) -> None:
        """Semi-naive: only pairs that are new are made longer."""
        edges = self._session.sql(closure.edges).select("s", "o").distinct().localCheckpoint()
        total = edges
        if closure.start is not None:
            start = self._session.sql(closure.start).toDF("s")
            total = edges.join(start, "s").select("s", "o").localCheckpoint()
        delta, rounds = total, 0
        while not delta.isEmpty():
            longer = delta.withColumnRenamed("o", "middle").join(
                edges.withColumnRenamed("s", "middle"), "middle"
            )
            delta = longer.select("s", "o").distinct().exceptAll(total).localCheckpoint()
            total = total.unionAll(delta)
            rounds += 1
            if rounds % _ROUNDS_KEPT == 0:
                total = total.localCheckpoint()
        total.createOrReplaceTempView(closure.name)


def _evaluating(call: Call) -> Callable[..., Any]:
    """A function of a row's texts; it travels to other machines, and so holds little."""
    function = None if call.expression is None else call.expression.function
    wanted, kinds = call.wanted, call.kinds

    def evaluate(*cells: Any) -> Any:
        row: list[Value | None] = [
            term_of(cell) if cell is not None and kind == "text" else cell
            for cell, kind in zip(cells, kinds, strict=True)
        ]
        try:
            return RESULTS[wanted](bound(row[0]) if function is None else function(row))
        except (Fault, ArithmeticError):
            return None

    return evaluate


def _aggregating(call: Call) -> Callable[..., Any]:
    name, separator = call.aggregate, call.separator

    def aggregate(cells: Any) -> Any:
        try:
            values = [term_of(cell) for cell in cells if cell is not None]
            return text(AGGREGATES[name](values, separator))
        except (Fault, ArithmeticError):
            return None

    return aggregate
