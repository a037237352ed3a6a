"""SQL dialects: every difference between DuckDB's SQL and Spark's.

DuckDB runs in this process: its functions take ids and look terms up in the dictionary, and every
property is a table. Spark functions run on executors: they take texts, which are joined from the
table of terms, and patterns select from one table of triples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from corollary.query.plan import Closure, Plan, Scan

TEXT_OF = "term_text"  # the DuckDB function that maps ids to texts


class Dialect(Protocol):
    """The parts of SQL that depend on the database."""

    sees_ids: bool  # whether functions take ids
    has_all_triples: bool  # whether a table of them exists anyway; else each pattern is answered

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """The table of a pattern, and its columns by position in the triple."""

    def texts(self, sql: str, columns: Sequence[str], alias: str) -> tuple[str, list[str]]:
        """Add the texts of id columns to a SELECT; returns it and, by its alias, the texts."""

    def collect(self, column: str, *, distinct: bool) -> str:
        """Aggregate the values of a group to a list."""

    def row_number(self) -> str:
        """A unique number per row."""

    def closure(self, plan: Plan, name: str, edges: str, start: str | None) -> str:
        """A SELECT of the transitive closure (s, o) of edges."""


class DuckDBDialect:
    """DuckDB SQL over tables per property and class."""

    sees_ids = True
    has_all_triples = True

    def __init__(self, type_id: int | None = None) -> None:
        self._type = type_id  # id of rdf:type; None if the data lack it

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """One table per property and class."""
        if scan.source != "union":
            return source_table(scan)
        name = table_name(scan, self._type)
        if scan.property is None:
            return name, {0: "s", 1: "p", 2: "o"}
        if scan.property == self._type and scan.object is not None:
            return name, {0: "s"}
        return name, {0: "s", 2: "o"}

    def texts(self, sql: str, columns: Sequence[str], alias: str) -> tuple[str, list[str]]:
        """Call a function."""
        return sql, [f"{TEXT_OF}({alias}.{column})" for column in columns]

    def collect(self, column: str, *, distinct: bool) -> str:
        """`list` keeps NULL."""
        return f"list({'DISTINCT ' if distinct else ''}{column})"

    def row_number(self) -> str:
        """A window function."""
        return "row_number() OVER ()"

    def closure(self, plan: Plan, name: str, edges: str, start: str | None) -> str:
        """A recursive common table expression."""
        first = f"SELECT s, o FROM ({edges}) AS e"
        if start is not None:
            first += f" WHERE e.s IN ({start})"
        return (
            f"WITH RECURSIVE {name} AS ({first} UNION SELECT {name}.s, e.o FROM {name}"
            f" JOIN ({edges}) AS e ON {name}.o = e.s) SELECT s, o FROM {name}"
        )


class SparkDialect:
    """Spark SQL over the views `triples` (s, p, o) and `terms` (id, term)."""

    sees_ids = False
    has_all_triples = True

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """Select the triples of a property."""
        if scan.source != "union":
            return source_table(scan)
        columns = {0: "s", 1: "p", 2: "o"}
        if scan.property is None:
            return "triples", columns
        return f"(SELECT s, o FROM triples WHERE p = {scan.property})", {0: "s", 2: "o"}

    def texts(self, sql: str, columns: Sequence[str], alias: str) -> tuple[str, list[str]]:
        """Join the table of terms once per column."""
        added = "".join(f", t{n}.term AS {column}_text" for n, column in enumerate(columns))
        joins = "".join(
            f" LEFT JOIN terms AS t{n} ON t{n}.id = q.{column}" for n, column in enumerate(columns)
        )
        texts = [f"{alias}.{column}_text" for column in columns]
        return f"SELECT q.*{added} FROM ({sql}) AS q{joins}", texts

    def collect(self, column: str, *, distinct: bool) -> str:
        """`collect_list` ignores NULL."""
        return f"{'collect_set' if distinct else 'collect_list'}({column})"

    def row_number(self) -> str:
        """Unique without a shuffle, but not consecutive."""
        return "monotonically_increasing_id()"

    def closure(self, plan: Plan, name: str, edges: str, start: str | None) -> str:
        """Register a closure that is computed before the query."""
        plan.closures.append(Closure(name, edges, start))
        return f"SELECT s, o FROM {name}"


class _AnswerTables:
    """Hybrid mode: one table of answers per pattern."""

    has_all_triples = False

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        if scan.source != "union":
            return source_table(scan)
        return answers_name(plan, scan), {0: "s", 1: "p", 2: "o"}


class HybridDialect(_AnswerTables, DuckDBDialect):
    """DuckDB SQL in hybrid mode."""


class HybridSparkDialect(_AnswerTables, SparkDialect):
    """Spark SQL in hybrid mode."""


def source_table(scan: Scan) -> tuple[str, Mapping[int, str]]:
    """The table of quads, or of a pseudo-graph, and its columns."""
    columns = {0: "s", 1: "p", 2: "o"}
    return f"graph_{scan.source}", {**columns, 3: "g"} if scan.source == "quads" else columns


def answers_name(plan: Plan, scan: Scan) -> str:
    """The table of answers to a pattern of a plan."""
    return f"answers_{plan.number}_{plan.scans.index(scan)}"


def table_name(scan: Scan, type_id: int | None) -> str:
    """The DuckDB table that a pattern reads."""
    if scan.property is None:
        return "triples"
    if scan.property < 0:
        return "nothing"
    if scan.property != type_id:
        return f"property_{scan.property}"
    if scan.object is None:
        return "types"
    return f"class_{scan.object}" if scan.object >= 0 else "nothing"
