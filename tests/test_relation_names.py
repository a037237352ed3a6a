"""Any name that a program may give a relation works everywhere, or is refused when it is read."""

from __future__ import annotations

import keyword
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.errors import InvalidInput, InvalidProgram
from corollary.lang.program import Program
from corollary.lang.syntax import TRIPLE, Atom, Literal
from corollary.query.results import Solutions

SQL = "select from where order group table union all null true values index types nothing"
OWN = "terms facts rules changes cache chunks triple relation explicit deleted version arg0 id unit"
NAMES = st.one_of(
    st.sampled_from(f"{SQL} {OWN} con aux nul CON Select Triples TRIPLES".split()),
    st.sampled_from(keyword.kwlist),
    st.from_regex(r"[^\W\d]\w{0,30}", fullmatch=True),
)


def accepted(name: str) -> bool:
    try:
        Program.parse(f"{name}(1) .")
    except InvalidProgram:
        return False
    return True


@settings(max_examples=8)
@given(name=NAMES)
@example("triples")
@example("Triples")
@example("types")
@example("é" * 100)
@example("n" * 200)
def test_names(name: str) -> None:
    if not accepted(name):
        return
    other = name.swapcase() if name.swapcase() != name and accepted(name.swapcase()) else "other"
    rules = f"{other}(?y, ?x) :- {name}(?x, ?y) ."
    kb = KnowledgeBase(f"{rules} {name}(1, 2) . {name}(3, 4) .")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        kb.save(folder / "store")
        for cached in (True, False):
            if not cached:
                shutil.rmtree(folder / "store" / "cache")
            opened = KnowledgeBase.open(folder / "store")
            assert (opened.count(name), opened.count(other)) == (2, 2)
            answer = opened.query(f"{other}(?a, 1)")
            assert isinstance(answer, Solutions)
            assert len(answer) == 1
        with opened.transaction() as tx:
            tx.insert(f"{name}(5, 6) .")
        assert KnowledgeBase.open(folder / "store").count(other) == 3
        (folder / "p.dl").write_text(f"{rules} {name}(1, 2) .", "utf-8")
        for format_ in ("facts", "csv", "parquet", "arrow"):
            out = folder / format_
            arguments = ["run", str(folder / "p.dl"), "--out", str(out), "--quiet"]
            assert main([*arguments, "--format", format_]) == 0
            (folder / "again.dl").write_text(f"copy(?x) :- {name}(?x, ?y) .", "utf-8")
            assert (
                main(
                    ["run", str(folder / "again.dl"), "--facts", str(out), "--out", str(out / "o")]
                )
                == 0
            )
            assert (out / "o" / "copy.facts").read_text() == "1\n"


@pytest.mark.parametrize("name", ["triples", "n" * 201, "é" * 101])
def test_names_that_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidProgram) as caught:
        Program.parse(f"q(?x) :- {name}(?x) .")
    assert caught.value.code == "E511"
    (tmp_path / f"{name[:190]}.facts").write_text("1\n")
    kb = KnowledgeBase("q(?x) :- p(?x) .")
    with pytest.raises(InvalidInput) as refused, kb.transaction() as tx:
        tx.insert(pa.table({"x": [1]}), relation=name)
    assert refused.value.code == "E511"


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("triples", "facts"),
        ("triples", "csv"),
        ("a b", "facts"),
        ("a-b", "tsv.gz"),
        ("1a", "parquet"),
        ("FILTER", "arrow"),
        ("false", "csv"),
    ],
)
def test_files_with_names_that_are_refused(
    tmp_path: Path, name: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command, with the name of the file, and before the file is read."""
    store, folder = tmp_path / "s", tmp_path / "d"
    KnowledgeBase("p(1) .").save(store)
    folder.mkdir()
    path = folder / f"{name}.{suffix}"
    path.touch()
    commands = [
        ["build", str(tmp_path / "new"), str(path), "--engine", "columnar"],
        ["build", str(tmp_path / "new"), str(folder), "--engine", "columnar"],
        ["update", str(store), "--insert", str(path)],
        ["query", "p(?x)", "--data", str(path)],
    ]
    for arguments in commands:
        assert main([*arguments, "--quiet"]) == 2
        assert f"{path}: E511: '{name}'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert KnowledgeBase.open(store).version == 1
    with pytest.raises(InvalidInput) as refused, KnowledgeBase().transaction() as tx:
        tx.insert(pa.table({"x": [1]}), relation=name)
    assert refused.value.code in ("E341", "E511")
    with pytest.raises(InvalidProgram):
        Program.parse(f"{name}(1) .")


def test_a_relation_for_a_file_with_any_name(tmp_path: Path) -> None:
    (tmp_path / "a b.facts").write_text("1\t2\n")
    kb = KnowledgeBase()
    kb.load(tmp_path / "a b.facts", relation="edge")
    assert kb.count("edge") == 1
    with pytest.raises(InvalidInput) as refused:
        kb.load(tmp_path / "a b.facts", relation="a b")
    assert refused.value.code == "E341"


def test_values_and_files_with_reserved_names(tmp_path: Path) -> None:
    one = (Literal("1"),)
    with pytest.raises(InvalidProgram) as caught:
        Program.of([], [Atom("triples", one)])
    assert caught.value.code == "E511"
    (tmp_path / "triples.facts").write_text("1\t2\t3\n")
    with pytest.raises(InvalidInput) as refused:
        KnowledgeBase("q(?x) :- p(?x) .").load(tmp_path / "triples.facts")
    assert refused.value.code == "E511"
    assert TRIPLE == "[]"
