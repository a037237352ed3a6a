"""`QueryEngine` answers SPARQL queries; its `Planner` caches their plans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.terms import term_of, text_of
from corollary.lang.syntax import TRIPLE_COLUMNS, Constant
from corollary.query.dialect import Dialect
from corollary.query.expressions import Clock
from corollary.query.graphs import Dataset
from corollary.query.parse import Parsed, parse
from corollary.query.plan import Column, Plan
from corollary.query.relations import Terms
from corollary.query.results import Solutions, TripleTable
from corollary.query.syntax.algebra import Node
from corollary.query.translate import translate

if TYPE_CHECKING:
    from corollary.query.database import AnswerSource, DuckDBRunner

_PLAN_CACHE_SIZE = 256  # plans


class PlanTarget(Protocol):
    """A database that plans are translated for: DuckDB or Spark."""

    def refresh(self) -> None:
        """Make sure that the dictionary has every property and class of the triples."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect."""

    def graphs(self) -> Sequence[int]:
        """The named graphs."""

    def has_unread(self) -> bool:
        """Whether there may be graphs that rules do not read."""

    def explain(self, plan: Plan) -> str:
        """The physical plan of the database."""

    def forget(self, plan: Plan) -> None:
        """Drop the functions and tables of a plan."""


class Planner:
    """Parses and translates queries, with a cache of plans."""

    def __init__(self, runner: PlanTarget, dictionary: Terms) -> None:
        self._target = runner
        self._dictionary = dictionary
        self._plans: OrderedDict[Hashable, tuple[Plan, int]]
        self._plans = OrderedDict()
        self._plan_count = 0

    def plan(
        self,
        text: str,
        prefixes: Mapping[str, str],
        name: str = "<query>",
        dataset: Dataset | None = None,
    ) -> Plan:
        """The plan of a query, from the cache if possible."""
        self._target.refresh()
        key = text, tuple(sorted(prefixes.items())), dataset, self._target.has_unread()
        cached = self._plans.get(key)
        if cached is not None:
            self._plans.move_to_end(key)
            plan, terms = cached
            # A constant that the data lacked may have an id by now.
            is_known = not plan.constants or terms == len(self._dictionary)
            if is_known and (plan.graphs is None or plan.graphs == tuple(self._target.graphs())):
                return plan
            self._target.forget(plan)
        self._plan_count += 1
        plan = self._translate(parse(text, prefixes, name), self._plan_count, dataset)
        self._plans[key] = plan, len(self._dictionary)
        if len(self._plans) > _PLAN_CACHE_SIZE:
            _, (oldest, _) = self._plans.popitem(last=False)
            self._target.forget(oldest)
        return plan

    def _translate(self, parsed: Parsed, number: int, dataset: Dataset | None = None) -> Plan:
        return translate(
            parsed,
            self._target.dialect,
            self._dictionary,
            number,
            dataset=dataset,
            graphs=self._target.graphs,
            has_unread=self._target.has_unread(),
        )

    def explain(
        self,
        text: str,
        prefixes: Mapping[str, str],
        name: str = "<query>",
        dataset: Dataset | None = None,
    ) -> str:
        """The SQL of a query and the physical plan of the database."""
        plan = self.plan(text, prefixes, name, dataset)
        return f"{plan.sql}\n\n{self._target.explain(plan)}"


class QueryEngine(Planner):
    """Answers SPARQL queries over the triples of a runner."""

    def __init__(self, runner: DuckDBRunner[AnswerSource], dictionary: Terms) -> None:
        super().__init__(runner, dictionary)
        self._runner = runner

    def query(
        self,
        text: str,
        prefixes: Mapping[str, str],
        name: str = "<query>",
        limit_rows: int | None = None,
        dataset: Dataset | None = None,
    ) -> Solutions | TripleTable | bool:
        """Answer a query: a table, or for ASK, whether there is a solution."""
        plan = self.plan(text, prefixes, name, dataset)
        self._runner.limit_rows = limit_rows
        try:
            return self.answer(plan)
        finally:
            self._runner.limit_rows = None

    def solutions(
        self,
        parsed: Parsed,
        pattern: Node,
        variables: Sequence[str],
        dataset: Dataset | None = None,
    ) -> Solutions:
        """The solutions of a pattern of an update, which is translated anew each time."""
        self._target.refresh()
        self._plan_count += 1
        algebra = Node("SELECT", p=pattern, variables=list(variables), dataset=None)
        plan = self._translate(replace(parsed, algebra=algebra), self._plan_count, dataset)
        try:
            found = self.answer(plan)
        finally:
            self._target.forget(plan)
        assert isinstance(found, Solutions), "SELECT has solutions"
        return found

    def answer(self, plan: Plan) -> Solutions | TripleTable | bool:
        """Run a plan."""
        plan.clock.start()
        result = self._runner.run(plan)
        if plan.form == "ASK":
            return bool(result.num_rows > 0)
        columns = {}
        for variable, column, plan_column in zip(
            plan.variables, result.columns, plan.columns, strict=False
        ):
            array = column.combine_chunks()
            if plan_column.kind == "id":
                array = self._runner.texts(array)
            columns[variable] = array.cast(pa.large_string())
        if plan.form == "SELECT":
            # A solution may have no variables.
            return Solutions(pa.table(columns) if columns else result.select([]))
        if plan.form == "CONSTRUCT":
            return construct(plan.template, columns, result.num_rows)
        return describe(self._runner, self._dictionary, plan, columns)


# -- triples from solutions ------------------------------------------------------------------------

_SCHEMA = pa.schema([(name, pa.large_string()) for name in TRIPLE_COLUMNS])


def construct(
    template: Sequence[Sequence[str | Constant]],
    columns: Mapping[str, pa.Array],
    rows: int,
    scope: str = "",
) -> TripleTable:
    """Instantiate a CONSTRUCT template per solution and drop ill-formed triples.

    A blank node of the template is fresh per solution; its label begins with `scope`.

    >>> from corollary.lang.syntax import IRI
    >>> name = pa.array(['"a"', None], pa.large_string())
    >>> triples = construct([("_:x", IRI("p"), "n")], {"n": name}, 2)
    >>> triples.to_pylist()
    [{'subject': '_:x0', 'predicate': '<p>', 'object': '"a"'}]
    """
    parts = [
        pa.table(places, schema=_SCHEMA) for places in instances(template, columns, rows, scope)
    ]
    table = pa.concat_tables([_SCHEMA.empty_table(), *parts])
    return TripleTable(_distinct(_valid(table)))


def instances(
    template: Sequence[Sequence[str | Constant]],
    columns: Mapping[str, pa.Array],
    rows: int,
    scope: str = "",
) -> Iterator[list[pa.Array]]:
    """The terms of each row of a template, per solution."""
    numbers = pc.cast(pa.array(np.arange(rows)), pa.large_string())
    labels: dict[str, str] = {}
    for row in template:
        places: list[pa.Array] = []
        for term in row:
            if not isinstance(term, str):
                places.append(pa.repeat(pa.scalar(text_of(term), pa.large_string()), rows))
            elif term.startswith("_:"):
                label = labels.setdefault(term, f"_:{scope}{'x' * (len(labels) + 1)}")
                prefix = pa.scalar(label, pa.large_string())
                places.append(
                    pc.binary_join_element_wise(prefix, numbers, pa.scalar("", pa.large_string()))
                )
            else:
                places.append(columns[term])
        yield places


def describe(
    runner: DuckDBRunner[AnswerSource],
    dictionary: Terms,
    plan: Plan,
    columns: Mapping[str, pa.Array],
) -> TripleTable:
    """Describe resources: their triples, and transitively those of blank node objects."""
    resources: dict[Constant, None] = dict.fromkeys(plan.described)
    for column in columns.values():
        resources.update((term_of(text), None) for text in column.unique().to_pylist() if text)
    frontier = [term_id for term in resources if (term_id := dictionary.find(term)) is not None]
    visited: set[int] = set()
    parts = [_SCHEMA.empty_table()]
    while frontier:
        visited.update(frontier)
        table = _triples_of(runner, frontier)
        parts.append(table)
        objects = table["object"].unique().to_pylist()
        blank = [dictionary.find(term_of(text)) for text in objects if text.startswith("_:")]
        frontier = [term_id for term_id in blank if term_id is not None and term_id not in visited]
    return TripleTable(_distinct(pa.concat_tables(parts)))


def _triples_of(runner: DuckDBRunner[AnswerSource], subjects: Sequence[int]) -> pa.Table:
    plan = Plan(
        "SELECT",
        Clock(),
        variables=TRIPLE_COLUMNS,
        columns=tuple(Column(name) for name in TRIPLE_COLUMNS),
    )
    parts = []
    # One scan per subject lets hybrid mode answer it without deriving everything.
    for scan in runner.describing(subjects):
        plan.scans.append(scan)
        table, places = runner.dialect.scan(scan, plan)
        listed = ", ".join(places[place] for place in range(3))
        chosen = ", ".join(map(str, subjects if scan.subject is None else [scan.subject]))
        parts.append(f"SELECT {listed} FROM {table} AS t WHERE {places[0]} IN ({chosen})")
    plan.sql = " UNION ALL ".join(parts)
    result = runner.run(plan)
    texts = [runner.texts(column.combine_chunks()) for column in result.columns]
    return pa.table([text.cast(pa.large_string()) for text in texts], schema=_SCHEMA)


def _valid(table: pa.Table) -> pa.Table:
    table = table.drop_null()
    literal = pc.starts_with(table["subject"], '"')
    iri = pc.starts_with(table["predicate"], "<")
    return table.filter(pc.and_(pc.invert(literal), iri))


def _distinct(table: pa.Table) -> pa.Table:
    if not len(table):
        return table
    return (
        table.group_by(list(TRIPLE_COLUMNS), use_threads=False)
        .aggregate([])
        .select(list(TRIPLE_COLUMNS))
    )
