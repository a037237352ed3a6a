"""Facts files: what cells mean, what is read, what is refused."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from pyarrow import feather, parquet

from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.core.terms import text_of
from corollary.errors import InvalidInput, OperationFailed
from corollary.files import FORMATS
from corollary.files.cells import read_cell, write_cell
from corollary.files.facts import read_facts, read_table
from corollary.files.shapes import Shape
from corollary.files.tables import Table
from corollary.files.write import write_facts
from corollary.knowledge_base.folders import read_folder
from corollary.lang.program import Program
from corollary.lang.syntax import IRI, TRIPLE, XSD, Atom, BlankNode, Constant, Literal
from tests.strategies import programs, wild_constants

EDGE = Program.parse("path(?x, ?y) :- edge(?x, ?y) .")


def read(folder: Path, program: Program = EDGE) -> set[Atom]:
    return {fact for table in read_facts(folder, program) for fact in table.atoms()}


def tables(facts: Iterable[Atom]) -> list[Table]:
    by_relation: dict[str, list[Atom]] = {}
    for fact in facts:
        by_relation.setdefault(fact.relation, []).append(fact)
    return [Table.of(relation, found) for relation, found in by_relation.items()]


@given(wild_constants)
def test_cells_read_back(term: Constant) -> None:
    assert read_cell(write_cell(term)) == term


@pytest.mark.parametrize(
    ("cell", "term"),
    [
        ("7", Literal("7", XSD + "integer")),
        ("-7.50", Literal("-7.50", XSD + "decimal")),
        ("1e9", Literal("1e9", XSD + "double")),
        ("true", Literal("true", XSD + "boolean")),
        ("<http://example.org/a>", IRI("http://example.org/a")),
        ("_:b0", BlankNode("b0")),
        ('"7"', Literal("7")),
        ('"7"^^<http://www.w3.org/2001/XMLSchema#byte>', Literal("7", XSD + "byte")),
        ('say "hi"', Literal('say "hi"')),
        ('"half', Literal('"half')),
        ("a b ", Literal("a b ")),
        ("<a b>", Literal("<a b>")),
        ("", Literal("")),
        ("٣", Literal("٣")),
    ],
)
def test_cells(cell: str, term: Constant) -> None:
    assert read_cell(cell) == term


@given(programs())
def test_facts_read_back(tmp_path_factory: pytest.TempPathFactory, program: Program) -> None:
    folder = tmp_path_factory.mktemp("facts")
    plain = {fact for fact in program.facts if fact.relation != TRIPLE}
    for format_ in FORMATS:
        write_facts(folder, program, tables(plain), format_=format_)
        assert read(folder, program) == plain
        for path in folder.iterdir():
            path.unlink()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("edge.facts", "1\ta b\n2\tc"),
        ("edge.tsv", "1\ta b\r\n2\tc\r\n"),
        ("edge.csv", '1,"a b"\n2,c\n'),
        ("edge.CSV", '1,"a b"\n2,c\n'),
        ("edge.csv", "1\ta b\n2\tc\n"),
        ("edge.facts", "1,a b\n2,c\n"),
        ("edge.facts", "\ufeff1\ta b\n\n2\tc\n"),
    ],
)
def test_ways_to_write_a_table(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    one, two = Literal("1", XSD + "integer"), Literal("2", XSD + "integer")
    expected = {Atom("edge", (one, Literal("a b"))), Atom("edge", (two, Literal("c")))}
    assert read(tmp_path) == expected
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    (tmp_path / name).unlink()
    assert read(tmp_path) == expected


def test_several_files_of_a_relation_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n")
    (tmp_path / "edge.csv").write_text("2,3\n1,2\n")
    (tmp_path / "path.facts").write_text("9\t9\n")
    (tmp_path / "unrelated.facts").write_text("what ever\n")
    assert len(read(tmp_path)) == 3


def test_relations_without_arguments(tmp_path: Path) -> None:
    program = Program.parse("wet() :- rain() .")
    (tmp_path / "rain.facts").write_text("")
    assert read(tmp_path, program) == set()
    (tmp_path / "rain.facts").write_text("()\n")
    assert read(tmp_path, program) == {Atom("rain", ())}
    (tmp_path / "rain.facts").write_text("()\nyes\n")
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, program)
    assert caught.value.render().endswith(
        "rain.facts:2:1: E305: expected (), the only fact of a relation without arguments"
    )


def test_triples_are_read_by_folder(tmp_path: Path) -> None:
    """Blank nodes keep their labels, so that those of a program are the same."""
    program = Program.parse("@prefix ex: <http://example.org/> . [?x, a, ex:C] :- [?x, ex:p, ?y] .")
    lines = [
        '<http://example.org/s> <http://example.org/p> "a\\tb" .',
        f'<http://example.org/s> <http://example.org/p> "1"^^<{XSD}integer> .',
        '_:b <http://example.org/p> "x"@en .',
    ]
    (tmp_path / "data.nt").write_text("# comment\n\n" + "\n".join(lines) + " # end\n")
    assert read(tmp_path, program) == set()
    found = {fact for table in read_folder(tmp_path, program) for fact in table.atoms()}
    assert {" ".join(map(text_of, fact.constants())) + " ." for fact in found} == set(lines)
    assert read_folder(tmp_path, Program.parse("p(?x) :- p(?x) .")) == []


def message(folder: Path, program: Program = EDGE) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(folder, program)
    assert caught.value.exit_status == 2
    return caught.value.render().replace(str(folder), "FOLDER")


def test_missing_folder(tmp_path: Path) -> None:
    assert message(tmp_path / "none") == (
        "FOLDER: E301: cannot read the folder FOLDER: No such file or directory"
    )


def test_compressed_parquet_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "edge.parquet.gz").write_bytes(gzip.compress(b"anything"))
    assert message(tmp_path).startswith("FOLDER: E304: no facts file for edge in FOLDER")


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("1,2\n")
    text = message(tmp_path)
    assert text.startswith("FOLDER: E304: no facts file for edge in FOLDER")
    assert "There is edges.csv" in text


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        (
            "edge.facts",
            b"1\t2\n\n3\n",
            "edge.facts:3:1: E305: expected 2 columns separated by tabs, found 1",
        ),
        (
            "edge.csv",
            b"1,2\n3,4,5\n",
            "edge.csv:2:3: E305: expected 2 columns separated by commas, found 3",
        ),
        ("edge.facts", b"1\t2\n\xff\t3\n", "edge.facts:2:1: E305: expected UTF-8 text"),
        ("edge.csv.gz", b"1,2\n", "E306: FOLDER/edge.csv.gz is damaged: it cannot be decompressed"),
        ("edge.csv.gz", b"", "edge.csv.gz is damaged"),
        ("edge.csv.gz", gzip.compress(b"1,2\n" * 1000, mtime=0)[:-20], "edge.csv.gz is damaged"),
    ],
)
def test_malformed_rows(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert expected in message(tmp_path)


def test_malformed_triples(tmp_path: Path) -> None:
    program = Program.parse("[?x, a, <http://example.org/C>] :- [?x, <http://example.org/p>, ?y] .")
    (tmp_path / "data.nt").write_text("<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> ex:o .\n")
    with pytest.raises(InvalidInput) as caught:
        read_folder(tmp_path, program)
    assert caught.value.exit_status == 2
    assert "data.nt:2:17: E320" in caught.value.render()


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationFailed) as caught:
        write_facts(tmp_path / "file" / "out", EDGE, [])
    assert caught.value.code == "E401"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_typed_files(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, 2], pa.int16()), "y": ["a", "7"]})
    parquet.write_table(table, tmp_path / "edge.parquet")
    one, two = Literal("1", XSD + "integer"), Literal("2", XSD + "integer")
    seven = Literal("7", XSD + "integer")
    assert read(tmp_path) == {Atom("edge", (one, Literal("a"))), Atom("edge", (two, seven))}
    feather.write_feather(pa.table({"x": [True], "y": [1.5]}), str(tmp_path / "edge.arrow"))
    true, double = Literal("true", XSD + "boolean"), Literal("1.5E0", XSD + "double")
    assert Atom("edge", (true, double)) in read(tmp_path)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"x": [1]}, "expected 2 columns, found 1"),
        ({"x": [1], "y": [None]}, "expected texts, numbers or booleans in 'y', found null"),
        ({"x": [1, 2], "y": ["a", None]}, "expected a value in every row of 'y'"),
        ({"x": [[1]], "y": [1]}, "expected texts, numbers or booleans in 'x', found list"),
    ],
)
def test_unreadable_typed_files(
    tmp_path: Path, columns: dict[str, list[object]], expected: str
) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "edge.parquet")
    assert expected in message(tmp_path)


@pytest.mark.parametrize("name", ["s3:y", "file:y", "http:z", "outs3:x", "gs:", "a%20b"])
@pytest.mark.parametrize("format_", FORMATS)
def test_folders_named_like_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, format_: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text("path(?x, ?y) :- edge(?x, ?y) . edge(1, 2) .")
    assert main(["run", "p.dl", "--out", name, "--format", format_]) == 0
    assert {path.name for path in Path(name).iterdir()} == {f"edge.{format_}", f"path.{format_}"}
    Path("q.dl").write_text("copy(?x) :- edge(?x, ?y) .")
    assert main(["run", "q.dl", "--facts", name, "--out", "out"]) == 0
    assert Path("out/copy.facts").read_text() == "1\n"
    Path(f"{name}/edge.{format_}").rename(f"{name}.{format_}")
    kb = KnowledgeBase()
    kb.load(f"{name}.{format_}", relation="edge")
    assert kb.count("edge") == 1


def test_damaged_parquet(tmp_path: Path) -> None:
    (tmp_path / "edge.parquet").write_bytes(b"PAR1 and nothing else")
    assert "E301: cannot read FOLDER/edge.parquet" in message(tmp_path)


def test_parquet_whose_texts_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    texts = pa.array(["<urn:a>", "<urn:zz>"])
    parquet.write_table(pa.table({"a": texts}), path, compression="none", write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"urn:zz", b"urn:z\xd5"))
    with pytest.raises(InvalidInput) as caught:
        read_table(path, Shape("p", 1))
    assert (caught.value.code, caught.value.file) == ("E301", str(path))
