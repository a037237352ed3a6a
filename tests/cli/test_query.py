"""`corollary query`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corollary.cli.main import main
from corollary.knowledge_base.base import KnowledgeBase

TURTLE = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Student rdfs:subClassOf :Person . :ann a :Student ; :age 21 . :bob a :Person ; :age 35 .
"""
PERSONS = "SELECT ?x ?n { ?x a :Person ; :age ?n } ORDER BY ?n"


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.ttl"
    path.write_text(TURTLE, encoding="utf-8")
    return str(path)


def test_a_table(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", PERSONS, "--data", data, "--rules", "rdfs"]) == 0
    out, err = capsys.readouterr()
    assert out == "x     n\n:ann  21\n:bob  35\n"
    assert "2 rows" in err


def test_flags_between_the_arguments(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store")
    asked = ["--rules", "rdfs", "--quiet", "--mode", "hybrid", "--engine", "columnar"]
    pattern = "[?x, <http://example.org/age>, ?n]"
    assert main(["build", store, data, *asked, "--materialize", pattern]) == 0
    for query in ("SELECT ?x { ?x a :Person } ORDER BY ?x", "[?x, a, :Person]"):
        assert main(["query", store, "--mode", "hybrid", query, "--quiet"]) == 0
        assert sorted(capsys.readouterr().out.split()) == [":ann", ":bob", "x"]
    assert main(["query", store, "[:ann, a, :Person]", "--explain-plan", "--quiet"]) == 0
    assert "unfolded" in capsys.readouterr().out
    assert main(["query", store, "ages(?x)", "--quiet"]) == 2
    assert "E344: there is no relation ages" in capsys.readouterr().err
    assert KnowledgeBase.open(store).count(pattern) == 2
    with pytest.raises(SystemExit):
        main(["query", store, "--mod", "--nothing", "ASK {}"])
    command = ["build", store + "2", data, "--engine", "columnar", "--quiet"]
    assert main([*command, "--materialize", pattern]) == 2
    assert "E582" in capsys.readouterr().err


def test_without_rules(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", PERSONS, "--data", data, "--quiet"]) == 0
    assert capsys.readouterr().out == "x     n\n:bob  35\n"


def test_formats(data: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    asked = ["query", "--data", data, "--rules", "rdfs", "--quiet"]
    assert main([*asked, PERSONS, "--json"]) == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert [row["n"]["value"] for row in found["results"]["bindings"]] == ["21", "35"]
    assert main([*asked, PERSONS, "--format", "csv"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"x,n\r\nhttp://example.org/ann,21\r\n")
    out = tmp_path / "made" / "answer.parquet"
    assert main([*asked, PERSONS, "--format", "parquet", "--out", str(out)]) == 0
    assert pq.read_table(out).num_rows == 2
    assert main([*asked, "DESCRIBE :bob"]) == 0
    assert b"a :Person , rdfs:Resource ." in capsysbinary.readouterr().out
    assert main([*asked, "ASK { :ann a :Person }"]) == 0
    assert capsysbinary.readouterr().out == b"yes\n"


def test_queries_from_files_and_stdin(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "persons.rq"
    path.write_text(PERSONS, encoding="utf-8")
    assert main(["query", str(path), "--data", data, "--quiet"]) == 0
    expected = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.StringIO(PERSONS))
    assert main(["query", "-", "--data", data, "--quiet"]) == 0
    assert capsys.readouterr().out == expected
    path.write_text("SELECT ?x\n{ ?x }", encoding="utf-8")
    assert main(["query", str(path), "--data", data, "--quiet"]) == 2
    assert f"{path}:2:6: E560" in capsys.readouterr().err


def test_the_plan(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", PERSONS, "--data", data, "--explain-plan", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("SELECT")
    assert "class_" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["query", "ASK {}"], "E564"),
        (["query", "store", "ASK {}", "--data", "x.ttl"], "E564"),
        (["query", "store", "ASK {}", "--rules", "rdfs"], "E564"),
        (["query", "ASK {}", "--data", "x.ttl", "--at-version", "1"], "E564"),
        (["query", "ASK {", "--data", "no-such-file.ttl"], "E560"),
        (["query", "missing.rq", "--data", "x.ttl"], "E301"),
    ],
)
def test_mistakes(arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert f"{code}: " in capsys.readouterr().err
    assert main([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == code


@pytest.mark.skipif(not hasattr(KnowledgeBase, "open"), reason="there are no stores")
def test_a_store(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "store")
    built = ["build", store, data, "--rules", "rdfs", "--engine", "columnar", "--quiet"]
    assert main(built) == 0
    more = tmp_path / "more.ttl"
    more.write_text("<http://example.org/cid> a <http://example.org/Student> .", encoding="utf-8")
    assert main(["update", store, "--insert", str(more), "--quiet"]) == 0
    capsys.readouterr()
    query = "PREFIX : <http://example.org/> SELECT (COUNT(*) AS ?n) { ?x a :Person }"
    assert main(["query", store, query, "--quiet"]) == 0
    assert capsys.readouterr().out == "n\n3\n"
    assert main(["query", store, query, "--quiet", "--at-version", "1"]) == 0
    assert capsys.readouterr().out == "n\n2\n"
