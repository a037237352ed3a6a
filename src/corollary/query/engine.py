"""`QueryEngine`: text in, answer out; what was parsed and translated is kept (`Planner`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from corollary.query.dialect import Dialect
from corollary.query.graphs import constructed, described
from corollary.query.parse import Parsed, parse
from corollary.query.plan import Plan, Scan
from corollary.query.results import Solutions, TripleTable
from corollary.query.terms import Terms
from corollary.query.translate import translate

_KEPT = 256  # plans


class Planned(Protocol):
    """What plans are made for: DuckDB, or Spark."""

    def refresh(self) -> None:
        """See to it that the dictionary has what there are triples of."""
        ...

    @property
    def dialect(self) -> Dialect:
        """How it wants its SQL."""
        ...

    def explain(self, plan: Plan) -> str:
        """How a plan is carried out."""
        ...

    def forget(self, plan: Plan) -> None:
        """Drop what was made for a plan."""
        ...


class Runner(Planned, Protocol):
    """What runs plans in this process."""

    def run(self, plan: Plan) -> pa.Table:
        """The solutions of a plan: ids and texts, a column for each of its columns."""
        ...

    def texts(self, ids: pa.Array) -> pa.Array:
        """The texts of ids that the last plan has given."""
        ...

    def describing(self, subjects: Sequence[int]) -> Sequence[Scan]:
        """The patterns that find all triples of subjects."""
        ...


class Planner:
    """Parses and translates queries, once each."""

    def __init__(self, runner: Planned, dictionary: Terms) -> None:
        self._planned = runner
        self._dictionary = dictionary
        self._plans: OrderedDict[tuple[str, tuple[tuple[str, str], ...]], tuple[Plan, int]]
        self._plans = OrderedDict()
        self._made = 0

    def plan(self, text: str, prefixes: Mapping[str, str], name: str = "<query>") -> Plan:
        """The plan of a query, translated once."""
        self._planned.refresh()
        key = text, tuple(sorted(prefixes.items()))
        found = self._plans.get(key)
        if found is not None:
            self._plans.move_to_end(key)
            plan, terms = found
            # A constant that was unknown may be known by now, and would have another number.
            if not plan.constants or terms == len(self._dictionary):
                return plan
            self._planned.forget(plan)
        self._made += 1
        plan = self._translated(parse(text, prefixes, name), self._made)
        self._plans[key] = plan, len(self._dictionary)
        if len(self._plans) > _KEPT:
            _, (oldest, _) = self._plans.popitem(last=False)
            self._planned.forget(oldest)
        return plan

    def _translated(self, parsed: Parsed, number: int) -> Plan:
        return translate(parsed, self._planned.dialect, self._dictionary, number)

    def explain(self, text: str, prefixes: Mapping[str, str], name: str = "<query>") -> str:
        """The SQL of a query, and how it is carried out."""
        plan = self.plan(text, prefixes, name)
        return f"{plan.sql}\n\n{self._planned.explain(plan)}"


class QueryEngine(Planner):
    """Answers SPARQL queries over what a runner holds."""

    def __init__(self, runner: Runner, dictionary: Terms) -> None:
        super().__init__(runner, dictionary)
        self._runner = runner

    def query(
        self, text: str, prefixes: Mapping[str, str], name: str = "<query>"
    ) -> Solutions | TripleTable | bool:
        """The answer: a table, or for ASK whether there is a solution."""
        return self.answer(self.plan(text, prefixes, name))

    def answer(self, plan: Plan) -> Solutions | TripleTable | bool:
        """Run a plan."""
        plan.clock.start()
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
