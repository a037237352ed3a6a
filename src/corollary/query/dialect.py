"""In what DuckDB's SQL and Spark's differ, all of it.

DuckDB runs in this process, so that its functions see ids and look terms up in the dictionary, and
every property is a table. Spark's run elsewhere: they see texts, which are joined from the table of
terms, and patterns are parts of one table of triples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from corollary.query.plan import Closure, Plan, Scan

TEXT_OF = "term_text"  # DuckDB's function from ids to texts


class Dialect(Protocol):
    """What the translation asks of a database."""

    sees_ids: bool  # whether functions take ids

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """The table of a pattern, and its columns by the place in the triple that they hold."""
        ...

    def texts(self, sql: str, columns: Sequence[str]) -> tuple[str, list[str]]:
        """A SELECT with texts for ids, to be named r, and how to refer to the texts."""
        ...

    def collected(self, column: str, *, distinct: bool) -> str:
        """All values of a group as a list."""
        ...

    def row_number(self) -> str:
        """A number that each row has alone."""
        ...

    def closure(self, plan: Plan, name: str, edges: str, start: str | None) -> str:
        """A SELECT of the pairs (s, o) that one or more edges connect."""
        ...


class DuckDBDialect:
    """DuckDB's."""

    sees_ids = True

    def __init__(self, type_id: int | None) -> None:
        self._type = type_id  # of rdf:type, if the data know it

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """A table of its own for each property and class."""
        name = table_name(scan, self._type)
        if scan.property is None:
            return name, {0: "s", 1: "p", 2: "o"}
        if scan.property == self._type and scan.object is not None:
            return name, {0: "s"}
        return name, {0: "s", 2: "o"}

    def texts(self, sql: str, columns: Sequence[str]) -> tuple[str, list[str]]:
        """A function does it."""
        return sql, [f"{TEXT_OF}(r.{column})" for column in columns]

    def collected(self, column: str, *, distinct: bool) -> str:
        """`list` keeps what is unbound."""
        return f"list({'DISTINCT ' if distinct else ''}{column})"

    def row_number(self) -> str:
        """By a window."""
        return "row_number() OVER ()"

    def closure(self, plan: Plan, name: str, edges: str, start: str | None) -> str:
        """A recursive query."""
        first = f"SELECT s, o FROM ({edges}) AS e"
        if start is not None:
            first += f" WHERE e.s IN ({start})"
        return (
            f"WITH RECURSIVE {name} AS ({first} UNION SELECT {name}.s, e.o FROM {name}"
            f" JOIN ({edges}) AS e ON {name}.o = e.s) SELECT s, o FROM {name}"
        )


class HybridDialect(DuckDBDialect):
    """DuckDB's where answers are derived when asked for: a table of its own for each pattern."""

    def __init__(self) -> None:
        super().__init__(None)

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """A table that holds the answers to this pattern of this query."""
        return answers_name(plan, scan), {0: "s", 1: "p", 2: "o"}


class SparkDialect:
    """Spark's, over the views `triples` (s, p, o) and `terms` (id, term)."""

    sees_ids = False

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """Part of the triples."""
        columns = {0: "s", 1: "p", 2: "o"}
        if scan.property is None:
            return "triples", columns
        return f"(SELECT s, o FROM triples WHERE p = {scan.property})", {0: "s", 2: "o"}

    def texts(self, sql: str, columns: Sequence[str]) -> tuple[str, list[str]]:
        """A join for each."""
        joins, names = [], []
        for number, column in enumerate(columns):
            names.append(f"{column}_text")
            joins.append(f" LEFT JOIN terms AS t{number} ON t{number}.id = q.{column}")
        added = "".join(f", t{n}.term AS {name}" for n, name in enumerate(names))
        return f"SELECT q.*{added} FROM ({sql}) AS q{''.join(joins)}", [f"r.{n}" for n in names]

    def collected(self, column: str, *, distinct: bool) -> str:
        """`collect_list` leaves out what is unbound."""
        return f"{'collect_set' if distinct else 'collect_list'}({column})"

    def row_number(self) -> str:
        """Without bringing the rows together."""
        return "monotonically_increasing_id()"

    def closure(self, plan: Plan, name: str, edges: str, start: str | None) -> str:
        """Computed round by round, before the query."""
        plan.closures.append(Closure(name, edges, start))
        return f"SELECT s, o FROM {name}"


class HybridSparkDialect(SparkDialect):
    """Spark's where answers are derived when asked for: a view for each pattern."""

    def scan(self, scan: Scan, plan: Plan) -> tuple[str, Mapping[int, str]]:
        """The answers to this pattern of this query."""
        return answers_name(plan, scan), {0: "s", 1: "p", 2: "o"}


def answers_name(plan: Plan, scan: Scan) -> str:
    """The table of a pattern's answers."""
    return f"answers_{plan.number}_{plan.scans.index(scan)}"


def table_name(scan: Scan, type_id: int | None) -> str:
    """DuckDB's table for a pattern."""
    if scan.property is None:
        return "triples"
    if scan.property < 0:
        return "nothing"
    if scan.property != type_id:
        return f"property_{scan.property}"
    if scan.object is None:
        return "types"
    return f"class_{scan.object}" if scan.object >= 0 else "nothing"
