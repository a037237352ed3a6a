"""DuckDB as a peer: the same semi-naive rounds in SQL, and its recursive queries.

A predicate is a table; in a recursive stratum it is two: the facts before the last round, and those
of the last round (Δ). Only positive rules with constant predicates are supported.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from corollary.core.compile import CompiledRule, compile_rule, constant_id
from corollary.core.dictionary import Dictionary, Ids
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate, Stratum
from corollary.lang.syntax import Rule

if TYPE_CHECKING:
    import duckdb

# One answer for each pair of connected nodes; UNION removes what is known in every round.
CLOSURE = """
    WITH RECURSIVE path(c0, c1) AS (
        SELECT c0, c1 FROM edge
        UNION
        SELECT path.c0, edge.c1 FROM path JOIN edge ON path.c1 = edge.c0
    )
    SELECT count(*) FROM path
"""


def missing() -> str | None:
    """Why the peer cannot be measured, None if it can."""
    found = importlib.util.find_spec("duckdb")
    return None if found else "duckdb is not installed (pip install 'corollary[bench]')"


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A database in memory."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET threads = {threads}")
    connection.execute("SET preserve_insertion_order = false")
    return connection


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Ids) -> None:
    """Put rows into a table with the columns c0, c1, …"""
    columns = pa.table({f"c{place}": rows[:, place].copy() for place in range(rows.shape[1])})
    connection.register("arrow_rows", columns)
    connection.execute(f"INSERT INTO {table} FROM arrow_rows")
    connection.unregister("arrow_rows")


class SemiNaive:
    """The facts of a program in a database, and its semi-naive rounds."""

    def __init__(self, program: Program, explicit: Mapping[Predicate, Ids], threads: int) -> None:
        self.connection = connect(threads)
        self.strata = program.strata
        self.dictionary = Dictionary()
        self.rules = {rule: compile_rule(rule, self.dictionary) for rule in program.rules}
        self.arity: dict[Predicate, int] = {}
        for rule in self.rules.values():
            if rule.negated or rule.conditions or rule.groupings:
                raise ValueError(f"only positive rules are put into SQL, not {rule.source}")
            for pattern in (rule.head, *rule.body):
                if pattern.wide:
                    raise ValueError(f"a variable predicate cannot be put into SQL: {rule.source}")
                self.arity[pattern.predicate] = len(pattern.arguments)
        for predicate, rows in explicit.items():
            self.arity[predicate] = rows.shape[1]
        self.created = 0
        self.known = {predicate: self.create(predicate) for predicate in self.arity}
        self.delta: dict[Predicate, str] = {}
        for predicate, rows in explicit.items():
            insert(self.connection, self.known[predicate], rows)

    def create(self, predicate: Predicate, query: str | None = None) -> str:
        """A new table for facts of the predicate, with the answers of a query."""
        self.created += 1
        columns = ", ".join(f"c{place} UINTEGER" for place in range(self.arity[predicate]))
        contents = f"({columns})" if query is None else f"AS {query}"
        self.connection.execute(f"CREATE TABLE t{self.created} {contents}")
        return f"t{self.created}"

    def materialize(self) -> None:
        """Add all derived facts."""
        for stratum in self.strata:
            derived = self.derive(
                [(rule, ["known"] * len(rule.body)) for rule in self.compiled(stratum.nonrecursive)]
            )
            for predicate, table in derived.items():
                self.move(table, self.known[predicate])
            if stratum.recursive:
                self.close(stratum)

    def close(self, stratum: Stratum) -> None:
        """Apply the recursive rules until nothing new is derived."""
        for predicate in stratum.predicates:
            self.delta[predicate] = self.known[predicate]
            self.known[predicate] = self.create(predicate)
        # Atoms before the delta atom read old facts, later ones all facts: each instance once.
        plans = [
            (rule, ["known"] * place + ["delta"] + ["all"] * (len(rule.body) - place - 1))
            for rule in self.compiled(stratum.recursive)
            for place, pattern in enumerate(rule.body)
            if pattern.predicate in stratum.predicates
        ]
        while self.delta:
            derived = self.derive(plans)
            for predicate, table in self.delta.items():
                self.move(table, self.known[predicate])
            self.delta = {p: table for p, table in derived.items() if self.count(table)}

    def compiled(self, rules: Sequence[Rule]) -> list[CompiledRule]:
        return [self.rules[rule] for rule in rules]

    def derive(self, plans: Sequence[tuple[CompiledRule, Sequence[str]]]) -> dict[Predicate, str]:
        """A table with the new facts of each predicate."""
        queries: dict[Predicate, list[str]] = {}
        for rule, readings in plans:
            atoms = zip(rule.body, readings, strict=True)
            if all(atom.predicate in self.delta for atom, reading in atoms if reading == "delta"):
                queries.setdefault(rule.head.predicate, []).append(self.select(rule, readings))
        return {p: self.create(p, self.new(p, selects)) for p, selects in queries.items()}

    def new(self, predicate: Predicate, selects: Sequence[str]) -> str:
        """A query for the new rows."""
        columns = [f"c{place}" for place in range(self.arity[predicate])]
        same = " AND ".join(f"q.{column} = k.{column}" for column in columns)
        return (
            f"SELECT DISTINCT {', '.join(f'q.{column}' for column in columns)}"
            f" FROM ({' UNION ALL '.join(selects)}) q"
            f" ANTI JOIN {self.source(predicate, 'all')} k ON {same}"
        )

    def select(self, rule: CompiledRule, readings: Sequence[str]) -> str:
        """A query for the heads of a rule's instances, with a source for each atom."""
        sources, conditions = [], []
        where: dict[int, str] = {}
        for number, (pattern, reading) in enumerate(zip(rule.body, readings, strict=True)):
            sources.append(f"{self.source(pattern.predicate, reading)} b{number}")
            for place, argument in enumerate(pattern.arguments):
                column = f"b{number}.c{place}"
                if argument < 0:
                    conditions.append(f"{column} = {constant_id(argument)}")
                elif where.setdefault(argument, column) != column:
                    conditions.append(f"{column} = {where[argument]}")
        heads = [
            f"{where[argument] if argument >= 0 else constant_id(argument)}::UINTEGER AS c{place}"
            for place, argument in enumerate(rule.head.arguments)
        ]
        filters = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(heads)} FROM {', '.join(sources)}{filters}"

    def source(self, predicate: Predicate, reading: str) -> str:
        """The source of an atom: the known facts, Δ, or both."""
        known, delta = self.known[predicate], self.delta.get(predicate)
        if reading == "known" or delta is None:
            return known
        return delta if reading == "delta" else f"(FROM {known} UNION ALL FROM {delta})"

    def move(self, table: str, target: str) -> None:
        self.connection.execute(f"INSERT INTO {target} FROM {table}")
        self.connection.execute(f"DROP TABLE {table}")

    def count(self, table: str) -> int:
        answer = self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(answer[0]) if answer else 0

    def counts(self) -> dict[Predicate, int]:
        """The number of facts of each predicate that has any."""
        counts = {predicate: self.count(table) for predicate, table in self.known.items()}
        return {predicate: count for predicate, count in counts.items() if count}
