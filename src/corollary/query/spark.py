"""Queries by Spark SQL: the same translation over a table of triples and a table of terms.

Answers are DataFrames of texts: nothing is brought to the driver. Functions of terms are Python's
there too, over texts that are joined from the table of terms. Spark has no recursive queries over
sets, so that the pairs of `+` and `*` are found before the query, round by round. The session is
given; nothing of Spark is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corollary.core.partial import PartialDictionary
from corollary.core.terms import term_of, text_of
from corollary.errors import CorollaryError
from corollary.lang.syntax import Constant
from corollary.query.aggregates import AGGREGATES
from corollary.query.columns import RESULTS, bound
from corollary.query.dialect import Dialect, SparkDialect
from corollary.query.engine import Planner
from corollary.query.parse import Parsed
from corollary.query.plan import Call, Closure, Plan
from corollary.query.results import TRIPLE_COLUMNS
from corollary.query.translate import order_by, translate
from corollary.query.values import Fault, Value, text

_ROUNDS_KEPT = 5  # after so many rounds of a closure its plan is cut
Frame = Any  # a DataFrame of Spark


class SparkQueries(Planner):
    """Answers SPARQL queries over what a runner holds, as DataFrames."""

    def __init__(self, runner: SparkRunner, dictionary: PartialDictionary) -> None:
        super().__init__(runner, dictionary)
        self._runner = runner
        self._terms = dictionary

    def query(self, text: str, prefixes: Mapping[str, str], name: str = "<query>") -> Frame | bool:
        """The answer: texts of terms, null where unbound; for ASK whether there is a solution.

        The columns are the variables of SELECT, or subject, predicate and object.
        """
        return self.answer(self.plan(text, prefixes, name))

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
                return _constructed(plan, runner.solutions(plan))
            case "DESCRIBE":
                asked = [self._terms.find(term) for term in plan.described]
                return runner.described(plan, [found for found in asked if found is not None])

    def _translated(self, parsed: Parsed, number: int) -> Plan:
        # Looking up a term is a job: first it is noted which there are.
        noted = _Noted()
        translate(parsed, self._runner.dialect, noted, number)
        self._terms.remember(noted.terms)
        return super()._translated(parsed, number)


class _Noted:
    """Terms that a translation asks for."""

    def __init__(self) -> None:
        self.terms: dict[Constant, None] = {}

    def __len__(self) -> int:
        return 0

    def find(self, term: Constant) -> int | None:
        self.terms[term] = None
        return None


class SparkRunner:
    """Runs plans over DataFrames: triples (s, p, o) of ids, and terms (id, term)."""

    def __init__(self, session: Any, triples: Frame, terms: Frame) -> None:
        """The views and functions of queries are made in this session, that of the frames."""
        self._session = session
        self._triples = triples
        self._all_terms = terms.select("id", "term")
        self._terms = self._all_terms

    def refresh(self) -> None:
        """The tables are what they are."""

    @property
    def dialect(self) -> Dialect:
        """Spark's."""
        return SparkDialect()

    def prepare(self, plan: Plan) -> None:
        """Make the views and functions that a plan reads and calls."""
        own = [(-1 - number, text_of(term)) for number, term in enumerate(plan.constants)]
        self._terms = self._known_terms()
        if own:
            mine = self._session.createDataFrame(own, "id bigint, term string")
            self._terms = self._terms.unionAll(mine)
        self._view("terms", self._terms)
        self._read(plan)
        for table in plan.inline:
            rows = list(zip(*table.columns.values(), strict=True))
            schema = ", ".join(f"{name} bigint" for name in table.columns)
            self._view(table.name, self._session.createDataFrame(rows, schema))
        for call in plan.calls:
            self._define(call)
        for closure in plan.closures:
            self._close(closure)

    def ids(self, plan: Plan) -> Frame:
        """The solutions of a plan that was prepared, ids and texts, in their order."""
        return self._session.sql(plan.sql)

    def solutions(self, plan: Plan) -> Frame:
        """The solutions as texts, in their order: a column for each variable, c0, c1, …"""
        listed, joins = [], []
        for number, column in enumerate(plan.columns):
            if column.kind == "id":
                joins.append(f" LEFT JOIN terms AS t{number} ON t{number}.id = q.{column.name}")
                listed.append(f"t{number}.term AS c{number}")
            else:
                listed.append(f"q.{column.name} AS c{number}")
        chosen = ", ".join(listed)
        order = order_by(plan.order, "q")
        if not chosen:  # solutions without variables count too
            return self._session.sql(f"SELECT 1 AS unit FROM ({plan.body}) AS q").select()
        return self._session.sql(f"SELECT {chosen} FROM ({plan.body}) AS q{''.join(joins)}{order}")

    def described(self, plan: Plan, subjects: Sequence[int]) -> Frame:
        """What is said of resources: their triples, and those of the blank nodes in them."""
        named = [(subject,) for subject in subjects]
        wanted = self._session.createDataFrame(named, "id bigint")
        if plan.columns:
            self._view("asked", self.ids(plan))
            asked = [
                f"SELECT {column.name} AS id FROM asked"
                if column.kind == "id"
                else f"SELECT t.id FROM asked JOIN terms AS t ON t.term = asked.{column.name}"
                for column in plan.columns
            ]
            wanted = wanted.unionAll(self._session.sql(" UNION ALL ".join(asked)))
        wanted = wanted.where("id >= 0").distinct().localCheckpoint()
        seen = wanted
        parts: list[Frame] = []
        while not wanted.isEmpty():
            found = self._triples_of(wanted).localCheckpoint()
            parts.append(found)
            objects = found.selectExpr("o AS id").distinct()
            blank = objects.join(self._terms, "id").where("term LIKE '\\_:%'").select("id")
            wanted = blank.join(seen, "id", "left_anti").localCheckpoint()
            seen = seen.unionAll(wanted)
        found = parts[0] if parts else self._triples.limit(0)
        for part in parts[1:]:
            found = found.unionAll(part)
        self._view("described", found)
        listed = ", ".join(f"t{at}.term AS {name}" for at, name in enumerate(TRIPLE_COLUMNS))
        joins = "".join(
            f" JOIN terms AS t{at} ON t{at}.id = q.{name}" for at, name in enumerate("spo")
        )
        return self._session.sql(f"SELECT DISTINCT {listed} FROM described AS q{joins}")

    def explain(self, plan: Plan) -> str:
        """How Spark carries out a plan."""
        self.prepare(plan)
        found = self._session.sql(f"EXPLAIN FORMATTED {plan.sql}").collect()
        return str(found[0][0])

    def forget(self, plan: Plan) -> None:
        """Functions are made anew for each run."""

    def _known_terms(self) -> Frame:
        return self._all_terms

    def _read(self, plan: Plan) -> None:
        self._view("triples", self._triples)

    def _triples_of(self, subjects: Frame) -> Frame:
        """The triples of subjects, a column of ids."""
        chosen = subjects.withColumnRenamed("id", "s")
        return self._triples.join(chosen, "s").select("s", "p", "o")

    def _view(self, name: str, frame: Frame) -> None:
        frame.createOrReplaceTempView(name)

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


def _constructed(plan: Plan, solutions: Frame) -> Frame:
    """The triples of a template for each solution; those that are none are left out.

    A blank node of the template is another one for each solution, the same in all its triples.
    """
    places = {variable: f"c{number}" for number, variable in enumerate(plan.variables)}
    labels: dict[str, str] = {}

    def written(term: str | Constant) -> str:
        if not isinstance(term, str):
            return _quoted(text_of(term))
        if term.startswith("_:"):
            label = labels.setdefault(term, f"_:{'x' * (len(labels) + 1)}")
            return f"concat({_quoted(label)}, CAST(row AS STRING))"
        return places[term]

    structs = ", ".join(
        "named_struct("
        + ", ".join(f"'{n}', {written(t)}" for n, t in zip(TRIPLE_COLUMNS, triple, strict=True))
        + ")"
        for triple in plan.template
    )
    if not structs:
        nothing = [f"CAST(NULL AS STRING) AS {name}" for name in TRIPLE_COLUMNS]
        return solutions.selectExpr(*nothing).limit(0)
    numbered = solutions.selectExpr("*", "monotonically_increasing_id() AS row")
    made = numbered.selectExpr(f"inline(array({structs}))")
    return made.where(
        "subject NOT LIKE '\"%' AND predicate LIKE '<%' AND object IS NOT NULL"
    ).distinct()


def _quoted(found: str) -> str:
    """A text in SQL.

    >>> print(_quoted("it's"))
    'it\\'s'
    """
    escaped = found.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


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
        except CorollaryError as error:
            raise RuntimeError(error.render()) from None  # Spark passes on the text only

    return evaluate


def _aggregating(call: Call) -> Callable[..., Any]:
    name, separator = call.aggregate, call.separator

    def aggregate(cells: Any) -> Any:
        try:
            values = [term_of(cell) for cell in cells if cell is not None]
            return text(AGGREGATES[name](values, separator))
        except (Fault, ArithmeticError):
            return None
        except CorollaryError as error:
            raise RuntimeError(error.render()) from None

    return aggregate
