"""Lines are in the order of their text, although only numbers of cells are compared."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.files.cells import write_cell
from corollary.files.tables import Column, Table
from corollary.files.write import write_relation
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, Constant, Literal

# Characters around the delimiters, and those that need quotes.
LEXICAL = st.text('\x01\t\n !",-09AZaz{}é\U0001f600', max_size=4)
TERMS: st.SearchStrategy[Constant] = LEXICAL.map(Literal) | LEXICAL.map(
    lambda text: Literal(text, "urn:t")
)
TERMS |= st.sampled_from(["urn:a", "urn:a-", "urn:a,"]).map(IRI)


@pytest.mark.parametrize("suffix", ["facts", "csv", "jsonl"])
@given(rows=st.lists(st.tuples(TERMS, TERMS), max_size=8))
def test_lines_are_sorted(suffix: str, rows: list[tuple[Constant, Constant]]) -> None:
    rows = list(dict.fromkeys(rows))
    # Terms that occur twice have two numbers.
    columns = [Column([row[place] for row in rows], np.arange(len(rows))) for place in (0, 1)]
    with TemporaryDirectory() as folder:
        path = Path(folder, f"p.{suffix}")
        tables = [Table("p", columns)] if rows else []
        write_relation(path, "p", tables, Program.parse("p(?x, ?y) :- p(?x, ?y) ."))
        text = path.read_bytes().decode()
    if suffix == "csv":
        assert len(list(csv.reader(text.splitlines(keepends=True)))) == len(rows)
        return  # a cell may have a line break
    lines = text.split("\n")[:-1]
    assert len(lines) == len(rows)
    assert lines == sorted(lines, key=str.encode)


def test_lines_of_too_many_cells_for_one_number_are_sorted(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    terms = [Literal(f"{number}") for number in range(100)]
    columns = [Column(terms, random.integers(0, 100, 300)) for _ in range(10)]
    variables = ", ".join(f"?x{place}" for place in range(10))
    program = Program.parse(f"p({variables}) :- p({variables}) .")
    write_relation(tmp_path / "p.tsv", "p", [Table("p", columns)], program)
    lines = (tmp_path / "p.tsv").read_text().splitlines()
    cells = [[write_cell(terms[number]) for number in column.indices] for column in columns]
    assert lines == sorted("\t".join(row) for row in zip(*cells, strict=True))
