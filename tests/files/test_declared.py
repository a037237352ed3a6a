"""Declared columns: matched by name, converted to their types, and written back."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from corollary import InvalidInput, KnowledgeBase, Program
from corollary.files import FORMATS
from corollary.files.facts import read_table
from corollary.files.shapes import MalformedRows, Shape
from corollary.files.tables import Table
from corollary.files.write import write_relation
from corollary.lang.declarations import COLUMN_TYPES, ColumnType, read_value
from corollary.lang.syntax import IRI, XSD, Atom, Constant, Literal
from corollary.lang.values import literal_of
from tests.cli.calls import call

EDGE = "@relation edge(from: string, to: string, weight: decimal) .\n"
PATHS = (
    EDGE + "@relation path(from: string, to: string) .\n"
    "path(?x, ?y) :- edge(?x, ?y, ?w) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z, ?w) .\n"
)


def load(path: Path, text: str, **options: object) -> KnowledgeBase:
    path.write_text(text)
    kb = KnowledgeBase(EDGE)
    kb.load(path, relation="edge", **options)  # type: ignore[arg-type]
    return kb


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("edge.csv", "weight,note,to,from\n2,?,7,a\n"),
        ("edge.csv", "a,7,2\n"),
        ("edge.csv", "\n\nto;x,weight,to,from\n?,2.0,7,a\n"),
        ("edge.tsv", "from\tto\tweight\na\t7\t2.00\n"),
        ("edge.facts", "a\t7\t2\n"),
        ("edge.facts", 'a\t"7"\t2\n'),
        ("edge.csv", "from\tto\tweight\na\t7\t2\n"),
        ("edge.csv", '\ufeff"from","to","weight"\n"a","7","2"\n'),
        ("edge.jsonl", '{"weight": 2, "to": "7", "from": "a"}\n\n'),
        ("edge.jsonl", '{"from": "a", "to": "7", "weight": "2.0", "other": null}\n'),
    ],
)
def test_columns_are_matched_by_name(tmp_path: Path, name: str, text: str) -> None:
    found = load(tmp_path / name, text).facts("edge")
    assert found.drop(["explicit"]).to_pylist() == [{"from": "a", "to": "7", "weight": Decimal(2)}]


@pytest.mark.parametrize(
    ("name", "text", "code", "line", "column", "message"),
    [
        ("e.csv", "from,to,weight\na,b,1\na,b,x\n", "E350", 3, 3, "a decimal in 'weight', found"),
        ("e.csv", 'to,weight,from\n"a\nb",1,c\n"d\n",,e\n', "E350", 4, 2, "found nothing"),
        ("e.csv", "a,b,1\n\na,b,1e3\n", "E350", 3, 3, "found '1e3'"),
        ("e.csv", "src,dst,cost\na,b,1\n", "E350", 1, 3, "found 'cost'"),
        ("e.csv", "from,to,weight\na,b\n", "E305", 2, 2, "expected 3 columns"),
        ("e.jsonl", '{"from":"a","to":"b","weight":1}\n{"from":1,"to":"b","weight":1}\n', "E350",
         2, 1, "expected a string in 'from', found 1"),
        ("e.jsonl", '{"from":"a","to":"b"}\n', "E351", None, None, "no column 'weight'"),
        ("e.jsonl", '{"from":"a","to":"b","weight":[1]}\n', "E305", 1, None, "found [1]"),
        ("e.jsonl", '{"from":"a",\n', "E305", 1, 1, "expected JSON"),
        ("e.jsonl", "[1]\n", "E305", 1, None, "expected an object"),
        ("e.jsonl", '{"from":"a","to":"b","weight":NaN}\n', "E305", 1, None, "invalid JSON"),
        ("e.jsonl", "[" * 100_000 + "\n", "E305", 1, None, "JSON"),
    ],
)  # fmt: skip
def test_malformed_cells_are_located(
    tmp_path: Path, name: str, text: str, code: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path / name, text)
    error = caught.value
    assert (error.code, error.line, error.column) == (code, line, column)
    assert message in error.message
    assert error.file == str(tmp_path / name)


def test_malformed_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "edge.csv"
    path.write_text("from,to,weight\na,b,1\na,b,x\nc,d,\ne,f,2.5\n")
    kb = KnowledgeBase(PATHS)
    changes = kb.load(path, on_error="skip")
    assert changes.skipped == 2
    assert [(row.line, row.column) for row in changes.samples] == [(3, 3), (4, 3)]
    assert kb.facts("path").column("from").to_pylist() == ["a", "e"]


FRAME = {"to": ["b", "7"], "weight": [1.5, 2.0], "from": ["a", "b"], "more": [1, 2]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames(make: type) -> None:
    kb = KnowledgeBase(PATHS)
    kb.load({"edge": make(FRAME)})
    assert kb.facts("edge").to_pydict() == {
        "from": ["a", "b"],
        "to": ["b", "7"],
        "weight": [Decimal("1.5"), Decimal("2.0")],
        "explicit": [True, True],
    }
    assert kb.count("path") == 3
    again = KnowledgeBase(PATHS)
    again.load(kb.facts("edge"), relation="edge")
    assert again.facts("edge").equals(kb.facts("edge"))
    with pytest.raises(InvalidInput, match="there is no column 'from'") as caught:
        kb.load({"edge": make({"form": ["a"], "to": ["b"], "weight": [1], "from_": ["b"]})})
    assert (caught.value.code, caught.value.hint) == ("E351", "did you mean from_?")
    with pytest.raises(InvalidInput, match="found 1") as caught:
        kb.load({"edge": make({"from": ["a", "b"], "to": [1, 2], "weight": [1, 2]})})
    assert caught.value.code == "E350"


def test_types_of_frames() -> None:
    day, moment = date(2026, 2, 28), datetime(2026, 2, 28, 12, 30, 0, 250_000)
    table = pa.table(
        {
            "s": ["1"], "i": [2], "d": [Decimal("3.50")], "f": [0.5], "b": [True], "day": [day],
            "time": [moment], "zone": [moment.replace(tzinfo=UTC)], "u": ["http://example.org/x"],
            "x": ["4"],
        }
    )  # fmt: skip
    names = ["s: string", "i: integer", "d: decimal", "f: double", "b: boolean", "day: date",
             "time: dateTime", "zone: dateTime", "u: iri", "x: any"]  # fmt: skip
    kb = KnowledgeBase(f"@relation all({', '.join(names)}) .")
    kb.load({"all": table})
    found = kb.facts("all").drop(["explicit"])
    assert found.to_pylist() == table.to_pylist()
    assert [str(field.type) for field in found.schema] == [
        "string", "int64", "decimal128(38, 1)", "double", "bool", "date32[day]", "timestamp[us]",
        "timestamp[us, tz=UTC]", "string", "string",
    ]  # fmt: skip
    assert kb.facts("all", native=False).column("time").to_pylist() == [
        f'"2026-02-28T12:30:00.25"^^<{XSD}dateTime>'
    ]
    undeclared = KnowledgeBase()
    undeclared.load(table, relation="all")
    assert undeclared.facts("all", native=True).column("arg5").to_pylist() == [day]


def test_a_result_of_another_type_is_an_error() -> None:
    kb = KnowledgeBase("@relation n(x: integer) . n(?x) :- m(?x) . m(1) .")
    assert kb.facts("n").column("x").to_pylist() == [1]
    with kb.transaction() as tx:
        tx.insert("m(two) .")
    with pytest.raises(InvalidInput, match="holds two in 'x'") as caught:
        kb.facts("n")
    assert caught.value.code == "E352"
    assert kb.facts("n", native=False).column("x").to_pylist() == ["1", "two"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "facts", "jsonl", "csv.gz", "parquet", "arrow"])
def test_a_result_of_another_type_is_not_written(tmp_path: Path, suffix: str) -> None:
    """Whatever the format: the file could not be read back as the columns that are declared."""
    (tmp_path / "rules.dl").write_text(
        f'@output node "node.{suffix}" . @output half "half.{suffix}" .'
        "@relation half(x: integer, y: integer) . @relation node(x: iri) ."
        "half(?x, ?y) :- n(?x), BIND(?x / 2 AS ?y) . n(1) . n(4) ."
        'node(<urn:a>) . node(?b) :- n(?x), BIND(SKOLEM("b", ?x) AS ?b) .'
    )
    done = call("run", str(tmp_path / "rules.dl"))
    assert done.returncode == 2
    assert "E352: 'half' holds 0.5 in 'y', which is declared as integer" in done.stderr
    assert not (tmp_path / f"half.{suffix}").exists()
    rules = (tmp_path / "rules.dl").read_text().replace("y: integer", "y: decimal")
    (tmp_path / "rules.dl").write_text(rules)
    assert call("run", str(tmp_path / "rules.dl")).returncode == 0
    assert (tmp_path / f"half.{suffix}").exists()


def test_stores_keep_declarations(tmp_path: Path) -> None:
    kb = KnowledgeBase(PATHS)
    kb.save(tmp_path / "store")
    kb.load({"edge": pa.table(FRAME)})
    kb.load({"road": pd.DataFrame({"arg0": [1]})})
    with kb.transaction() as tx:
        tx.add_rules("@relation road(km: integer) . far(?x) :- road(?x) .")
    opened = KnowledgeBase.open(tmp_path / "store")
    assert opened.facts("path").equals(kb.facts("path"))
    assert opened.facts("road").to_pydict() == {"km": [1], "explicit": [True]}
    assert opened.program.declarations == kb.program.declarations
    with pytest.raises(InvalidInput) as caught, kb.transaction() as tx:
        tx.add_rules('@input road "roads.csv" . far(?x) :- road(?x) .')
    assert caught.value.code == "E354"


# -- files named by programs -----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".facts", ".jsonl", ".parquet", ".arrow"])
@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
def test_inputs_and_outputs(tmp_path: Path, suffix: str, compression: str) -> None:
    if suffix in (".parquet", ".arrow") and compression:
        return  # these are compressed inside
    name = f"path{suffix}{compression}"
    (tmp_path / "edges.csv").write_text("to,from,weight\nb,a,1\n007,b,2.5\n")
    program = tmp_path / "p.dl"
    program.write_text(f'@input edge "edges.csv" header .\n@output path "out/{name}" .\n' + PATHS)
    done = call("run", program, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]
    again = tmp_path / "q.dl"
    again.write_text(f'@input path "out/{name}" .\n@relation path(from: string, to: string) .')
    found = KnowledgeBase(Program.load(again)).facts("path").drop(["explicit"]).to_pydict()
    assert found == {"from": ["a", "a", "b"], "to": ["b", "007", "007"]}


def test_written_text(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text('from,to,weight\na,"b, ""c""",1\n,"x\ny",2.5\n')
    program = tmp_path / "p.dl"
    outputs = "".join(
        f'@output edge "edge.{kind}" .\n' for kind in ("csv", "tsv", "facts", "jsonl")
    )
    program.write_text(f'@input edge "edges.csv" .\n{outputs}{EDGE}')
    assert call("run", program).returncode == 0
    written = {kind: (tmp_path / f"edge.{kind}").read_text() for kind in ("csv", "tsv", "jsonl")}
    assert written["csv"] == 'from,to,weight\n"","x\ny",2.5\na,"b, ""c""",1.0\n'
    assert written["tsv"] == 'from\tto\tweight\n""\t"x\\ny"\t2.5\na\tb, "c"\t1.0\n'
    assert written["jsonl"] == (
        '{"from": "", "to": "x\\ny", "weight": 2.5}\n'
        '{"from": "a", "to": "b, \\"c\\"", "weight": 1.0}\n'
    )
    for kind in ("csv", "tsv", "facts", "jsonl"):
        again = KnowledgeBase(EDGE)
        again.load(tmp_path / f"edge.{kind}")
        assert sorted(again.facts("edge").column("to").to_pylist()) == ['b, "c"', "x\ny"]


def test_output_chooses_relations(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PATHS + 'edge("a", "b", 1) . [<urn:a>, <urn:p>, <urn:b>] .')
    printed = call("run", program, "--quiet", "--output", "path").stdout
    assert printed == 'path("a", "b") .\n'
    printed = call("run", program, "--quiet", "--output", "triples", "path").stdout
    assert printed == '[<urn:a>, <urn:p>, <urn:b>] .\npath("a", "b") .\n'
    done = call("run", program, "--out", tmp_path / "out", "--output", "edge", "--format", "csv")
    assert done.returncode == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["edge.csv"]
    assert (tmp_path / "out" / "edge.csv").read_text() == "from,to,weight\na,b,1\n"
    done = call("run", program, "--output", "pth")
    assert done.returncode == 2
    assert "E344" in done.stderr
    assert "did you mean path?" in done.stderr
    program.write_text(f'@output path "p.csv" .\n@output edge "e.csv" .\n{program.read_text()}')
    done = call("run", program, "--quiet", "--output", "path", "triples")
    assert done.stdout == "[<urn:a>, <urn:p>, <urn:b>] .\n"
    assert {path.name for path in tmp_path.glob("*.csv")} == {"p.csv"}


@pytest.mark.parametrize("statement", ['@input edge "e.txt"', '@output edge "e.parquet.gz"'])
def test_unknown_formats(tmp_path: Path, statement: str) -> None:
    (tmp_path / "p.dl").write_text(f'{statement} .\n{EDGE} edge("a", "b", 1) .')
    done = call("run", tmp_path / "p.dl")
    assert done.returncode == 2
    assert "E353" in done.stderr


def test_skipped_rows_of_a_run(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "edge.csv.gz", "wt") as file:
        file.write("from,to,weight\na,b,1\na,b,x\n")
    (tmp_path / "p.dl").write_text(PATHS)
    done = call("run", tmp_path / "p.dl", "--facts", tmp_path)
    assert done.returncode == 2
    assert "edge.csv.gz:3:3: E350" in done.stderr
    done = call("run", tmp_path / "p.dl", "--facts", tmp_path, "--on-error", "skip")
    assert (done.returncode, done.stdout) == (0, 'edge("a", "b", 1.0) .\npath("a", "b") .\n')
    assert "skipped: 1 statement" in done.stderr
    assert "edge.csv.gz:3:3: expected a decimal" in done.stderr


def test_a_relation_that_nothing_defines(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("path(?x, ?y) :- egde(?x, ?y) . edge(1, 2) .")
    done = call("run", tmp_path / "p.dl")
    assert done.returncode == 0
    assert "W107" in done.stderr
    assert "egde (did you mean edge?)" in done.stderr
    (tmp_path / "facts").mkdir()
    done = call("run", tmp_path / "p.dl", "--facts", tmp_path / "facts")
    assert done.returncode == 2
    assert "did you mean edge? The program has rules, facts or a file for it." in done.stderr


def test_undeclared_numbers_keep_their_types(tmp_path: Path) -> None:
    program = Program.parse("n(1, 1.5e0, 01, a) . n(2, 2.0E0, 3, b) .")
    write_relation(tmp_path / "n.parquet", "n", [Table.of("n", program.facts)], program)
    kinds = [str(field.type) for field in parquet.read_schema(tmp_path / "n.parquet")]
    assert kinds == ["int64", "string", "string", "string"]
    read = read_table(tmp_path / "n.parquet", Shape("n", 4))
    assert {*read.atoms()} == {*program.facts}


# -- every value -----------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


def values(kind: ColumnType) -> st.SearchStrategy[Constant]:
    """Terms as reading a column of a type makes them."""
    texts: st.SearchStrategy[str] = {
        "integer": st.integers(-(2**63), 2**63 - 1).map(str),
        "decimal": st.decimals(-(10**9), 10**9, places=3).map(lambda value: format(value, "f")),
        "double": st.floats().map(lambda value: {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(
            repr(value), repr(value))),
        "boolean": st.sampled_from(["true", "false"]),
        "date": st.dates().map(date.isoformat),
        "dateTime": st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)).map(datetime.isoformat),
        "iri": st.sampled_from(["http://example.org/a%20b", "urn:x,y", "a:'b"]),
    }.get(kind, TEXTS)  # fmt: skip
    if kind == "any":
        return st.one_of(
            TEXTS.map(Literal), st.integers().map(literal_of), st.just(IRI("urn:a")),
            st.just(Literal("x", "urn:d")), st.booleans().map(literal_of),
        )  # fmt: skip
    found = texts.map(lambda text: read_value(text, kind))
    return found.filter(lambda term: term is not None)  # type: ignore[return-value]


@st.composite
def relations(draw: st.DrawFn) -> tuple[Program, list[Atom]]:
    kinds = draw(st.lists(st.sampled_from(COLUMN_TYPES), min_size=1, max_size=4))
    columns = ", ".join(f"c{place}: {kind}" for place, kind in enumerate(kinds))
    rows = draw(st.lists(st.tuples(*map(values, kinds)), max_size=5, unique=True))
    return Program.parse(f"@relation r({columns}) ."), [Atom("r", row) for row in rows]


@given(relations(), st.sampled_from(FORMATS))
def test_every_value_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[Program, list[Atom]], format_: str
) -> None:
    program, facts = case
    path = tmp_path_factory.getbasetemp() / f"r.{format_}"
    tables = [Table.of("r", facts)] if facts else []
    write_relation(path, "r", tables, program)
    declared = program.declarations.relations["r"]
    shape = Shape("r", len(declared.columns), declared)
    assert {*read_table(path, shape, rows=MalformedRows()).atoms()} == {*facts}


def test_native_answers_of_queries() -> None:
    kb = KnowledgeBase(
        "[<urn:a>, <urn:n>, 1] . [<urn:b>, <urn:n>, 2] . [<urn:a>, <urn:m>, 1] ."
        ' [<urn:b>, <urn:m>, "x"] .'
    )
    found = kb.query("SELECT ?s ?n ?m ?u { ?s <urn:n> ?n ; <urn:m> ?m } ORDER BY ?n")
    assert not isinstance(found, bool)
    one = f'"1"^^<{XSD}integer>'
    rows = found.to_pylist(native=True)
    assert rows == [
        {"s": "urn:a", "n": 1, "m": one, "u": None},
        {"s": "urn:b", "n": 2, "m": '"x"', "u": None},
    ]
    assert found.to_pandas(native=True)["n"].sum() == 3
    assert found.to_polars(native=True)["n"].to_list() == [1, 2]
    assert found.to_pylist()[0]["n"] == one
