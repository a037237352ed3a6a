"""SPARQL on Spark SQL: the same translation over a table of triples and a table of terms.

Answers are DataFrames of texts; nothing is collected to the driver. Functions are Python UDFs over
texts, which are joined from the table of terms. Spark has no recursive queries over sets, so the
closures of `+` and `*` are computed before the query, round by round. The caller passes the
session; this module does not import Spark.

In hybrid mode, as in `hybrid`, each triple pattern is answered before the join, in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from corollary.core.dictionary import Ids
from corollary.core.partial import PartialDictionary
from corollary.core.terms import term_of, text_of
from corollary.errors import CorollaryError
from corollary.lang.builtins import AGGREGATES
from corollary.lang.operands import Fault, Value
from corollary.lang.syntax import TRIPLE_COLUMNS, Constant
from corollary.query.columns import RESULTS, require_bound
from corollary.query.dialect import (
    Dialect,
    HybridSparkDialect,
    SparkDialect,
    answers_name,
    source_table,
)
from corollary.query.engine import Planner
from corollary.query.graphs import Dataset
from corollary.query.hybrid import Pattern, answer_patterns, trees
from corollary.query.parse import Parsed
from corollary.query.plan import Call, Closure, Plan, Source
from corollary.query.translate import order_by, translate
from corollary.query.values import text

_CHECKPOINT_ROUNDS = 5  # rounds of a closure between two lineage cuts
Frame = Any  # a Spark DataFrame


class SparkQueries(Planner):
    """Answers SPARQL queries as Spark DataFrames."""

    def __init__(self, runner: SparkRunner, dictionary: PartialDictionary) -> None:
        super().__init__(runner, dictionary)
        self._runner = runner
        self._terms = dictionary

    def query(
        self,
        text: str,
        prefixes: Mapping[str, str],
        name: str = "<query>",
        dataset: Dataset | None = None,
    ) -> Frame | bool:
        """Answer a query: term texts, null where unbound; for ASK, whether there is a solution.

        The columns are the variables of SELECT, or subject, predicate and object.
        """
        return self.answer(self.plan(text, prefixes, name, dataset))

    def answer(self, plan: Plan) -> Frame | bool:
        """Run a plan."""
        plan.clock.start()
        runner = self._runner
        runner.prepare(plan)
        match plan.form:
            case "ASK":
                return not runner.ids(plan).isEmpty()
            case "SELECT":
                return runner.solutions(plan).toDF(*plan.variables)
            case "CONSTRUCT":
                return _construct(plan, runner.solutions(plan))
            case "DESCRIBE":
                ids = [self._terms.find(term) for term in plan.described]
                return runner.describe(plan, [term_id for term_id in ids if term_id is not None])

    def _translate(self, parsed: Parsed, number: int, dataset: Dataset | None = None) -> Plan:
        # Each lookup would be a Spark job, so collect all terms first and look them up in one.
        recorder = _TermRecorder()
        unread = self._runner.has_unread()
        translate(
            parsed, self._runner.dialect, recorder, number, dataset=dataset, has_unread=unread
        )
        self._terms.remember(recorder.terms)
        return super()._translate(parsed, number, dataset)


class _TermRecorder:
    """A dictionary that records which terms a translation looks up."""

    def __init__(self) -> None:
        self.terms: dict[Constant, None] = {}

    def __len__(self) -> int:
        return 0

    def find(self, term: Constant) -> int | None:
        self.terms[term] = None
        return None


class SparkRunner:
    """Runs plans over DataFrames: triples (s, p, o) of ids, and terms (id, term)."""

    def __init__(
        self,
        session: Any,
        triples: Frame,
        terms: Frame,
        graphs: Mapping[Source, Callable[[], Frame]] | None = None,
    ) -> None:
        """Views and functions are created in this session, which must own the frames.

        `graphs` returns the quads (s, p, o, g), and the triples of the pseudo-graphs.
        """
        self._session = session
        self._graphs = graphs or {}
        self._graph_ids: list[int] | None = None
        self._triples = triples
        self._all_terms = terms.select("id", "term")
        self._terms = self._all_terms

    def refresh(self) -> None:
        """Nothing to refresh: the frames are immutable."""

    @property
    def dialect(self) -> Dialect:
        """The Spark dialect."""
        return SparkDialect()

    def graphs(self) -> Sequence[int]:
        """The named graphs."""
        if self._graph_ids is None:
            rows = self._graphs["quads"]().select("g").distinct().collect() if self._graphs else []
            self._graph_ids = sorted(row[0] for row in rows)
        return self._graph_ids

    def has_unread(self) -> bool:
        """Whether there may be graphs that rules do not read."""
        return "unread" in self._graphs

    def prepare(self, plan: Plan) -> None:
        """Create the views and functions that a plan uses."""
        constants = [(number, text_of(term)) for term, number in plan.constants.items()]
        self._terms = self._all_terms
        if added := [*self._more_terms(), *constants]:
            rows = self._session.createDataFrame(added, "id bigint, term string")
            self._terms = self._terms.unionAll(rows)
        self._view("terms", self._terms)
        self._read(plan)
        for scan in plan.scans:
            if scan.source != "union":
                self._view(source_table(scan)[0], self._graphs[scan.source]())
        for table in plan.inline:
            rows = list(zip(*table.columns.values(), strict=True))
            schema = ", ".join(f"{name} bigint" for name in table.columns)
            self._view(table.name, self._session.createDataFrame(rows, schema))
        for call in plan.calls:
            self._define(call)
        for closure in plan.closures:
            self._close(closure)

    def ids(self, plan: Plan) -> Frame:
        """The ordered solutions of a prepared plan, as ids and texts."""
        return self._session.sql(plan.sql)

    def solutions(self, plan: Plan) -> Frame:
        """The ordered solutions as texts, in columns c0, c1, … per variable."""
        listed, joins = [], []
        for number, column in enumerate(plan.columns):
            if column.kind == "id":
                joins.append(f" LEFT JOIN terms AS t{number} ON t{number}.id = q.{column.name}")
                listed.append(f"t{number}.term AS c{number}")
            else:
                listed.append(f"q.{column.name} AS c{number}")
        chosen = ", ".join(listed)
        order = order_by(plan.order, "q")
        if not chosen:  # a solution may have no variables
            return self._session.sql(f"SELECT 1 AS unit FROM ({plan.body}) AS q").select()
        return self._session.sql(f"SELECT {chosen} FROM ({plan.body}) AS q{''.join(joins)}{order}")

    def describe(self, plan: Plan, subjects: Sequence[int]) -> Frame:
        """Describe resources: their triples, and transitively those of blank node objects."""
        rows = [(subject,) for subject in subjects]
        frontier = self._session.createDataFrame(rows, "id bigint")
        if plan.columns:
            self._view("resources", self.ids(plan))
            columns = [
                f"SELECT {column.name} AS id FROM resources"
                if column.kind == "id"
                else f"SELECT t.id FROM resources AS r JOIN terms AS t ON t.term = r.{column.name}"
                for column in plan.columns
            ]
            frontier = frontier.unionAll(self._session.sql(" UNION ALL ".join(columns)))
        frontier = frontier.where("id >= 0").distinct().localCheckpoint()
        visited = frontier
        parts: list[Frame] = []
        while not frontier.isEmpty():
            triples = self._triples_of(frontier).localCheckpoint()
            parts.append(triples)
            objects = triples.selectExpr("o AS id").distinct()
            blank = objects.join(self._terms, "id").where("term LIKE '\\_:%'").select("id")
            frontier = blank.join(visited, "id", "left_anti").localCheckpoint()
            visited = visited.unionAll(frontier)
        triples = parts[0] if parts else self._triples.limit(0)
        for part in parts[1:]:
            triples = triples.unionAll(part)
        self._view("described", triples)
        listed = ", ".join(f"t{at}.term AS {name}" for at, name in enumerate(TRIPLE_COLUMNS))
        joins = "".join(
            f" JOIN terms AS t{at} ON t{at}.id = q.{name}" for at, name in enumerate("spo")
        )
        return self._session.sql(f"SELECT DISTINCT {listed} FROM described AS q{joins}")

    def explain(self, plan: Plan) -> str:
        """Spark's physical plan."""
        self.prepare(plan)
        rows = self._session.sql(f"EXPLAIN FORMATTED {plan.sql}").collect()
        return str(rows[0][0])

    def forget(self, plan: Plan) -> None:
        """Nothing to drop: each run registers its functions again."""

    def _more_terms(self) -> list[tuple[int, str]]:
        """Ids and texts of terms that the table lacks."""
        return []

    def _read(self, plan: Plan) -> None:
        self._view("triples", self._triples)

    def _triples_of(self, subjects: Frame) -> Frame:
        """The triples of subjects, which are a column of ids."""
        chosen = subjects.withColumnRenamed("id", "s")
        return self._triples.join(chosen, "s").select("s", "p", "o")

    def _view(self, name: str, frame: Frame) -> None:
        frame.createOrReplaceTempView(name)

    def _define(self, call: Call) -> None:
        kind = "boolean" if call.result == "condition" else "string"
        function = _aggregate_udf(call) if call.result == "aggregate" else _scalar_udf(call)
        udf = self._session.udf.register(call.name, function, kind)
        if call.volatile:
            self._session.udf.register(call.name, udf.asNondeterministic())

    def _close(self, closure: Closure) -> None:
        """Compute a transitive closure semi-naively: each round extends only new pairs."""
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
            if rounds % _CHECKPOINT_ROUNDS == 0:
                total = total.localCheckpoint()
        total.createOrReplaceTempView(closure.name)


def _construct(plan: Plan, solutions: Frame) -> Frame:
    """Instantiate a CONSTRUCT template per solution and drop ill-formed triples.

    A blank node of the template is fresh per solution and shared by the triples of a solution.
    """
    places = {variable: f"c{number}" for number, variable in enumerate(plan.variables)}
    labels: dict[str, str] = {}

    def expression(term: str | Constant) -> str:
        if not isinstance(term, str):
            return _quote(text_of(term))
        if term.startswith("_:"):
            label = labels.setdefault(term, f"_:{'x' * (len(labels) + 1)}")
            return f"concat({_quote(label)}, CAST(row AS STRING))"
        return places[term]

    structs = ", ".join(
        "named_struct("
        + ", ".join(f"'{n}', {expression(t)}" for n, t in zip(TRIPLE_COLUMNS, triple, strict=True))
        + ")"
        for triple in plan.template
    )
    if not structs:
        empty = [f"CAST(NULL AS STRING) AS {name}" for name in TRIPLE_COLUMNS]
        return solutions.selectExpr(*empty).limit(0)
    numbered = solutions.selectExpr("*", "monotonically_increasing_id() AS row")
    triples = numbered.selectExpr(f"inline(array({structs}))")
    return triples.where(
        "subject NOT LIKE '\"%' AND predicate LIKE '<%' AND object IS NOT NULL"
    ).distinct()


def _quote(text: str) -> str:
    """A SQL string literal.

    >>> print(_quote("it's"))
    'it\\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _scalar_udf(call: Call) -> Callable[..., object]:
    """A UDF over the texts of a row; Spark ships it to executors, so its closure is small."""
    function = None if call.expression is None else call.expression.function
    result_kind, kinds = call.result, call.kinds

    def evaluate(*cells: Any) -> object:
        row: list[Value | None] = [
            term_of(cell) if cell is not None and kind == "text" else cell
            for cell, kind in zip(cells, kinds, strict=True)
        ]
        return RESULTS[result_kind](require_bound(row[0]) if function is None else function(row))

    return _null_for_faults(evaluate)


def _aggregate_udf(call: Call) -> Callable[..., object]:
    name, separator = call.aggregate, call.separator

    def aggregate(cells: Sequence[str | None]) -> str:
        values = [term_of(cell) for cell in cells if cell is not None]
        return text(AGGREGATES[name](values, separator))

    return _null_for_faults(aggregate)


def _null_for_faults(function: Callable[..., object]) -> Callable[..., object]:
    def call(*cells: object) -> object:
        try:
            return function(*cells)
        except (Fault, ArithmeticError):
            return None
        except CorollaryError as error:
            raise RuntimeError(error.render()) from None  # Spark passes on only the text

    return call


# -- hybrid mode -----------------------------------------------------------------------------------


class PatternAnswers(Protocol):
    """The answers to a triple pattern."""

    def frame(self) -> Frame:
        """The triples, as a DataFrame of ids: s, p, o."""

    def values(self, place: int) -> Ids | None:
        """The distinct ids at a position; None if there are too many to pass on."""


class SparkAnswers(Protocol):
    """Answers triple patterns on demand."""

    @property
    def most(self) -> int:
        """The largest number of admissible ids for a position."""

    def answer(self, pattern: Pattern, admissible: Mapping[int, Ids]) -> PatternAnswers:
        """The matching triples, restricted to admissible ids by position."""

    def nothing(self) -> PatternAnswers:
        """No triples."""

    def more_terms(self) -> list[tuple[int, str]]:
        """Ids and texts of terms that answers may have and the table lacks."""

    def tree(self, pattern: Pattern) -> str:
        """Explain how answers to a pattern are derived."""


class HybridSparkRunner(SparkRunner):
    """Runs plans in Spark over the answers to their patterns."""

    def __init__(
        self,
        session: Any,
        answers: SparkAnswers,
        terms: Frame,
        graphs: Mapping[Source, Callable[[], Frame]] | None = None,
    ) -> None:
        super().__init__(session, answers.nothing().frame(), terms, graphs)
        self._answers = answers

    @property
    def dialect(self) -> Dialect:
        """One view per pattern of each query."""
        return HybridSparkDialect()

    def explain(self, plan: Plan) -> str:
        """The proof tree of each pattern in evaluation order, then Spark's physical plan."""
        return "\n\n".join([*trees(plan, self._answers.tree), super().explain(plan)])

    def _more_terms(self) -> list[tuple[int, str]]:
        return self._answers.more_terms()

    def _read(self, plan: Plan) -> None:
        answers = self._answers
        answered = answer_patterns(
            plan, answers.answer, answers.nothing(), lambda answer, place: answer.values(place)
        )
        for scan, answer in answered:
            self._view(answers_name(plan, scan), answer.frame())

    def _triples_of(self, subjects: Frame) -> Frame:
        most = self._answers.most
        ids = [row[0] for row in subjects.limit(most + 1).collect()]
        admissible = {0: np.array(ids, np.uint32)} if len(ids) <= most else {}
        answers = self._answers.answer((None, None, None), admissible)
        frame = answers.frame()
        return frame.join(subjects.withColumnRenamed("id", "s"), "s").select("s", "p", "o")
