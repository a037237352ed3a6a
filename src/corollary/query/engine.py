"""`QueryEngine`: text in, answer out; what was parsed and translated is kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa

from corollary.query.dialect import Dialect
from corollary.query.graphs import constructed, described
from corollary.query.parse import parse
from corollary.query.plan import Plan, Scan
from corollary.query.results import Solutions, TripleTable
from corollary.query.terms import Terms
from corollary.query.translate import translate

_KEPT = 256  # plans


class Runner(Protocol):
    """What runs plans: DuckDB, or Spark."""

    def refresh(self) -> None:
        """See to it that the dictionary has what there are triples of."""
        ...

    @property
    def dialect(self) -> Dialect:
        """How it wants its SQL."""
        ...

    def run(self, plan: Plan) -> pa.Table:
        """The solutions of a plan: ids and texts, a column for each of its columns."""
        ...

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids that the last plan has given."""
        ...

    def explain(self, plan: Plan) -> str:
        """How a plan is carried out."""
        ...

    def forget(self, plan: Plan) -> None:
        """Drop what was made for a plan."""
        ...

    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """The patterns that find all triples of subjects."""
        ...


class QueryEngine:
    """Answers SPARQL queries over what a runner holds."""

    def __init__(self, runner: Runner, dictionary: Terms) -> None:
        self._runner = runner
        self._dictionary = dictionary
        self._plans: OrderedDict[tuple[str, tuple[tuple[str, str], ...]], tuple[Plan, int]]
        self._plans = OrderedDict()
        self._made = 0

    def query(
        self, text: str, prefixes: Mapping[str, str], name: str = "<query>"
    ) -> Solutions | TripleTable | bool:
        """The answer: a table, or for ASK whether there is a solution."""
        return self.answer(self.plan(text, prefixes, name))

    def plan(self, text: str, prefixes: Mapping[str, str], name: str = "<query>") -> Plan:
        """The plan of a query, translated once."""
        self._runner.refresh()
        key = text, tuple(sorted(prefixes.items()))
        found = self._plans.get(key)
        if found is not None:
            self._plans.move_to_end(key)
            plan, terms = found
            # A constant that was unknown may be known by now, and would have another number.
            if not plan.constants or terms == len(self._dictionary):
                return plan
            self._runner.forget(plan)
        self._made += 1
        parsed = parse(text, prefixes, name)
        plan = translate(parsed, self._runner.dialect, self._dictionary, self._made)
        self._plans[key] = plan, len(self._dictionary)
        if len(self._plans) > _KEPT:
            _, (oldest, _) = self._plans.popitem(last=False)
            self._runner.forget(oldest)
        return plan

    def answer(self, plan: Plan) -> Solutions | TripleTable | bool:
        """Run a plan."""
        plan.clock.now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        found = self._runner.run(plan)
        if plan.form == "ASK":
            return bool(found.num_rows > 0)
        columns = {}
        for variable, column, kept in zip(
            plan.variables, found.columns, plan.columns, strict=False
        ):
            array = column.combine_chunks()
            if kept.kind == "id":
                array = self._runner.texts(array)
            columns[variable] = array.cast(pa.large_string())
        if plan.form == "SELECT":
            # Solutions without variables count too.
            return Solutions(pa.table(columns) if columns else found.select([]))
        if plan.form == "CONSTRUCT":
            return constructed(plan.template, columns, found.num_rows)
        return described(self._runner, self._dictionary, plan, columns)

    def explain(self, text: str, prefixes: Mapping[str, str], name: str = "<query>") -> str:
        """The SQL of a query, and how it is carried out."""
        plan = self.plan(text, prefixes, name)
        return f"{plan.sql}\n\n{self._runner.explain(plan)}"
