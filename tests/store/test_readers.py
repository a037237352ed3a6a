"""Others read the tables: DuckDB, Polars, and any reader of Delta or Parquet."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pytest
from deltalake import DeltaTable

from corollary import KnowledgeBase

PATHS = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
VIEW = """
CREATE VIEW current AS
SELECT * EXCLUDE (newest) FROM (
    SELECT *, row_number() OVER (
        PARTITION BY relation, arg0, arg1, arg2 ORDER BY version DESC
    ) AS newest FROM facts
) WHERE newest = 1 AND NOT deleted
"""
QUERY = """
SELECT s.term, o.term, explicit FROM current
JOIN terms s ON s.id = arg0 JOIN terms o ON o.id = arg1
WHERE relation = 'path' ORDER BY ALL
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    kb = KnowledgeBase(PATHS)
    with kb.transaction() as tx:
        tx.insert("edge(a, b) . edge(b, c) .")
    kb.save(tmp_path / "s")
    with kb.transaction() as tx:
        tx.delete("edge(a, b) .")
        tx.insert("edge(c, d) . path(b, c) .")
    return tmp_path / "s"


EXPECTED = [('"b"', '"c"', True), ('"b"', '"d"', False), ('"c"', '"d"', False)]


def test_duckdb_reads_the_files_of_a_version(store: Path) -> None:
    with duckdb.connect() as connection:
        for table in ("facts", "terms"):
            files = DeltaTable(str(store / table)).file_uris()
            connection.read_parquet(files).create_view(table)
        connection.execute(VIEW)
        assert connection.execute(QUERY).fetchall() == EXPECTED


def test_polars_reads_the_delta_tables(store: Path) -> None:
    facts = polars.scan_delta(str(store / "facts"))
    terms = polars.scan_delta(str(store / "terms"))
    key = ["relation", "arg0", "arg1", "arg2"]
    found = (
        facts.sort("version", descending=True)
        .unique(key, keep="first")
        .filter(~polars.col("deleted") & (polars.col("relation") == "path"))
        .join(terms, left_on="arg0", right_on="id")
        .join(terms, left_on="arg1", right_on="id", suffix="_object")
        .select("term", "term_object", "explicit")
        .sort("term", "term_object")
        .collect()
    )
    assert found.rows() == EXPECTED


def test_an_older_version_is_a_version_of_the_table(store: Path) -> None:
    rows = DeltaTable(str(store / "facts"), version=1).to_pyarrow_table()
    assert sorted(set(rows["version"].to_pylist())) == [1]
    assert rows.num_rows == 5
    changes = polars.read_delta(str(store / "changes")).filter(polars.col("version") == 2)
    counts = dict(changes.group_by("change").len().rows())
    assert counts == {"inserted": 3, "deleted": 3, "explicit": 1}
