"""DuckDB: semi-naive evaluation in SQL over one table of triples; starts over at each commit."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import duckdb
import pyarrow as pa

from benchmarks.evolve.systems.protocol import serve
from benchmarks.evolve.systems.restart import Restart, Rule, Triple

_COLUMNS = ("s", "p", "o")


class DuckDB(Restart):
    """The tables `facts`, `delta` (new in the last round) and `derived` hold numbers of terms."""

    def commit(self) -> None:
        """Evaluate all rules, round by round, until nothing is new."""
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")
        self.numbers: dict[str, int] = {}
        columns = list(zip(*self.explicit, strict=True)) or [(), (), ()]
        encoded = pa.table(
            {
                name: pa.array([self._number(term) for term in column], pa.int64())
                for name, column in zip(_COLUMNS, columns, strict=True)
            }
        )
        self.connection.register("explicit", encoded)
        self.connection.execute("CREATE TABLE facts AS SELECT * FROM explicit")
        self.connection.execute("CREATE TABLE delta AS SELECT * FROM explicit")
        queries = [query for rule in self.rules.values() for query in self._queries(rule)]
        union = " UNION ALL ".join(queries)
        while union and self._size("delta"):
            self.connection.execute(
                f"CREATE OR REPLACE TABLE derived AS (SELECT DISTINCT * FROM ({union}))"
                " EXCEPT SELECT * FROM facts"
            )
            self.connection.execute("INSERT INTO facts SELECT * FROM derived")
            self.connection.execute("CREATE OR REPLACE TABLE delta AS SELECT * FROM derived")

    def triples(self) -> Collection[Triple]:
        """Decode all triples."""
        texts = list(self.numbers)
        rows = self.connection.execute("SELECT s, p, o FROM facts").fetchall()
        return [(texts[s], texts[p], texts[o]) for s, p, o in rows]

    def count(self) -> int:
        """Count the triples without decoding them."""
        return self._size("facts")

    def _size(self, table: str) -> int:
        row = self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert row is not None, "an aggregate has one row"
        return int(row[0])

    def _number(self, term: str) -> int:
        return self.numbers.setdefault(term, len(self.numbers))

    def _queries(self, rule: Rule) -> Iterator[str]:
        """One query for each atom of the body that reads the delta."""
        places = rule.variables()
        conditions = []
        for number, atom in enumerate(rule.body):
            for position, term in enumerate(atom):
                column = f"a{number}.{_COLUMNS[position]}"
                if not term.startswith("?"):
                    conditions.append(f"{column} = {self._number(term)}")
                elif places[term] != (number, position):
                    first, at = places[term]
                    conditions.append(f"{column} = a{first}.{_COLUMNS[at]}")
        where = " WHERE " + " AND ".join(conditions) if conditions else ""
        head = ", ".join(
            (
                f"a{places[term][0]}.{_COLUMNS[places[term][1]]}"
                if term in places
                else str(self._number(term))
            )
            + f" AS {column}"
            for term, column in zip(rule.head, _COLUMNS, strict=True)
        )
        for fresh in range(len(rule.body)):
            tables = ", ".join(
                f"{'delta' if number == fresh else 'facts'} AS a{number}"
                for number in range(len(rule.body))
            )
            yield f"SELECT {head} FROM {tables}{where}"


if __name__ == "__main__":
    serve(DuckDB())
