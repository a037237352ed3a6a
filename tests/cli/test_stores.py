"""The commands about stores, as a user calls them."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corollary import KnowledgeBase
from corollary.cli.main import main
from corollary.store import Store

UPDATES = Path(__file__).parents[3] / "shared" / "data" / "updates"
PREFIXES = """\
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, status: int = 0) -> Any:
        """The JSON that a command prints, on stderr if it fails; else its text."""
        found = main(arguments)
        out, err = capsys.readouterr()
        assert found == status, err
        if "--json" not in arguments:
            return out if not status else out + err
        return json.loads(out if out else err.splitlines()[-1])

    return call


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "data.ttl").write_text(
        PREFIXES + ":Student rdfs:subClassOf :Person . :ann a :Student . :bob a :Person .", "utf-8"
    )
    (tmp_path / "carl.ttl").write_text(PREFIXES + ":carl a :Student .", "utf-8")
    (tmp_path / "bob.nt").write_text(
        "<http://example.org/bob> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
        " <http://example.org/Person> .\n",
        "utf-8",
    )
    (tmp_path / "knows.dl").write_text(
        "@prefix : <http://example.org/> .\n[?x, :sees, ?x] :- [?x, a, :Person] .\n", "utf-8"
    )
    return tmp_path


def build(run: Run, *more: str) -> Any:
    return run("build", "s", "data.ttl", "--engine", "columnar", "--rules", "rhodf", *more)


def test_build_update_info_log(run: Run, files: Path) -> None:
    report = build(run, "--json", "--message", "begin")
    assert {"version": 1, "explicit": 3, "facts": 4, "inserted": 4, "deleted": 0}.items() <= (
        report.items()
    )
    keys = {"rounds", "derivations", "seconds", "algorithm", "reason", "engine", "complete"}
    assert keys <= report.keys()
    report = run(
        *("update", "s", "--insert", "carl.ttl", "--delete", "bob.nt", "--add-rules", "knows.dl"),
        *("--message", "more", "--json", "--changes", "changes.parquet"),
    )
    assert {"version": 2, "explicit": 3, "facts": 7, "inserted": 4, "deleted": 1}.items() <= (
        report.items()
    )
    assert pq.read_table("changes.parquet").num_rows == 5
    info = run("info", "s", "--json")
    assert {"version": 2, "explicit": 3, "facts": 7, "mode": "materialized"}.items() <= info.items()
    assert info["relations"] == {"triples": 7}
    assert info["rules"] == 7
    assert info["terms"] > 5
    assert info["bytes"] > 1000
    assert run("info", "s", "--json", "--at-version", "1")["facts"] == 4
    log = run("log", "s", "--json")
    assert [(c["version"], c["message"], c["inserted"], c["deleted"]) for c in log] == [
        (2, "more", 4, 1),
        (1, "begin", 4, 0),
        (0, "empty store", 0, 0),
    ]
    assert log[0]["algorithm"] == "auto"
    assert log[0]["seconds"] > 0
    assert log[0]["time"] > log[1]["time"]
    assert len(run("log", "s", "--json", "--limit", "1")) == 1
    assert "begin" in run("log", "s")
    assert "7, " in run("info", "s") or "facts       7" in run("info", "s")


def test_diff_in_every_format(run: Run, files: Path) -> None:
    build(run, "--quiet")
    run("update", "s", "--insert", "carl.ttl", "--delete", "bob.nt", "--quiet")
    assert run("diff", "s", "1", "2").splitlines() == [
        "- [:bob, a, :Person]",
        "+ [:carl, a, :Person]   derived",
        "+ [:carl, a, :Student]",
    ]
    assert run("diff", "s", "2", "1", "--facts", "derived") == "- [:carl, a, :Person]   derived\n"
    counts = run("diff", "s", "1", "--json")
    assert (counts["from"], counts["to"], counts["inserted"], counts["deleted"]) == (1, 2, 2, 1)
    assert (counts["inserted_explicit"], counts["inserted_derived"]) == (1, 1)
    for suffix in ("arrow", "parquet"):
        run("diff", "s", "1", "2", "--format", suffix, "--out", f"d.{suffix}")
    with pa.OSFile("d.arrow") as file:
        table = pa.ipc.open_file(file).read_all()
    assert table.equals(pq.read_table("d.parquet"))
    assert set(table["change"].to_pylist()) == {"inserted", "deleted"}
    run("diff", "s", "1", "2", "--format", "nt", "--out", "d")
    names = ("inserted-explicit", "inserted-derived", "deleted-explicit", "deleted-derived")
    lines = [Path("d", f"{name}.nt").read_text().count("\n") for name in names]
    assert lines == [1, 1, 1, 0]
    run("diff", "s", "1", "2", "--format", "arrow", status=2)
    # A patch brings another store to the same state.
    run("diff", "s", "1", "2", "--format", "rdfp", "--out", "p.rdfp.gz")
    run("build", "t", "data.ttl", "--engine", "columnar", "--rules", "rhodf", "--quiet")
    run("update", "t", "--patch", "p.rdfp.gz", "--quiet")
    one, two = KnowledgeBase.open("s"), KnowledgeBase.open("t")
    assert (
        one.facts("[?s, ?p, ?o]")
        .sort_by("subject")
        .equals(two.facts("[?s, ?p, ?o]").sort_by("subject"))
    )
    feed = run("diff", "s", "0", "--format", "rdfp", "--each")
    assert feed.count("TX .") == feed.count("TC .") == 2
    Path("all.rdfp").write_text(feed)
    Path("empty.dl").write_text("p(?x) :- q(?x) .")
    run("build", "u", "empty.dl", "--engine", "columnar", "--rules", "rhodf", "--quiet")
    assert run("update", "u", "--patch", "all.rdfp", "--json")["explicit"] == 3


def test_explain_and_check(run: Run, files: Path) -> None:
    build(run, "--quiet")
    proof = run("explain", "s", "[:ann, a, :Person]", "--json")
    assert proof["explicit"] is False
    assert len(proof["premises"]) == 2
    run("update", "s", "--delete", "data.ttl", "--quiet")
    assert "E340" in run("explain", "s", "[:ann, a, :Person]", status=2)
    assert "[rdfs9]" in run("explain", "s", "[:ann, a, :Person]", "--at-version", "1")
    assert run("explain", "s", "[:ann, a, :Person]", "--at-version", "1", "--format", "dot")
    assert run("check", "s", "--json", "--quiet")["consistent"] is True
    assert "E313" in run("check", "s", "data.ttl", status=2)
    (files / "no.dl").write_text(
        "@prefix : <http://example.org/> .\n[no] false :- [?x, a, :Student] .\n"
    )
    run("update", "s", "--insert", "carl.ttl", "--add-rules", "no.dl", "--quiet")
    found = run("check", "s", "--json", "--quiet", status=1)
    assert found["consistent"] is False
    assert found["inconsistencies"][0]["rule"] == "no"


def test_verify_compact_vacuum(run: Run, files: Path) -> None:
    build(run, "--quiet")
    for name in ("carl.ttl", "bob.nt"):
        run("update", "s", "--insert", name, "--quiet")
        run("update", "s", "--delete", name, "--quiet")
    assert run("verify", "s", "--json")["right"] is True
    assert "all files are intact" in run("verify", "s", "--files-only")
    before = KnowledgeBase.open("s").count()
    assert run("compact", "s", "--full", "--json")["compacted"] is True
    assert run("compact", "s", "--json")["compacted"] is False
    assert run("vacuum", "s", "--keep", "1", "--dry-run", "--json")["removed"]
    removed = run("vacuum", "s", "--keep", "1", "--json")["removed"]
    assert all(name.startswith("facts/") for name in removed)
    assert run("verify", "s", "--json")["right"] is True
    assert KnowledgeBase.open("s").count() == before
    assert "E505" in run("info", "s", "--at-version", "1", status=2)
    path = next(Path("s", "terms").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-20])
    report = run("verify", "s", "--json", status=1)
    assert report["problems"][0]["file"] == str(path)


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (("build", "s", "missing.ttl", "--engine", "columnar"), "E301", 2),
        (("build", "s", "data.ttl", "--engine", "columnar", "--rules", "nope"), "E311", 2),
        (("build", "data.ttl", "data.ttl", "--engine", "columnar"), "E506", 2),
        (("info", "s"), "E500", 2),
        (("update", "s", "--insert", "carl.ttl"), "E500", 2),
        (("verify", "nothing"), "E500", 2),
    ],
)
def test_mistakes(
    run: Run, files: Path, arguments: tuple[str, ...], code: str, status: int
) -> None:
    assert run(*arguments, "--json", status=status)["error"]["code"] == code
    assert not (files / "s").exists()


def test_more_mistakes(run: Run, files: Path) -> None:
    build(run, "--quiet")
    assert run("build", "s", "data.ttl", "--json", status=2)["error"]["code"] == "E506"
    assert run("update", "s", "--json", status=2)["error"]["code"] == "E313"
    report = run("update", "s", "--remove-rules", "knows.dl", "--json", status=2)
    assert report["error"]["code"] == "E307"
    small = ("update", "s", "--insert", "carl.ttl", "--limit-memory", "1K", "--json")
    error = run(*small, status=1)["error"]
    assert error["code"] == "E406"
    assert "--engine spark" in error["hint"]
    Path("bad.rdfp").write_text("TX .\nA <a> <b> <c> .\nX what .\nTC .\n")
    error = run("update", "s", "--patch", "bad.rdfp", "--json", status=2)["error"]
    assert (error["code"], error["line"], error["file"]) == ("E508", 3, "bad.rdfp")
    for text in ("TX .\nA <a> <b> .\nTC .\n", "TX .\nTX .\n", "TC .\n", "TX .\nA <a> <b> <c> .\n"):
        Path("bad.rdfp").write_text(text)
        assert run("update", "s", "--patch", "bad.rdfp", "--json", status=2)["error"]["line"] in (
            1,
            2,
        )
    assert Store.open("s").latest() == 1
    assert run("diff", "s", "0", "7", "--json", status=2)["error"]["code"] == "E505"


@pytest.mark.skipif(not UPDATES.exists(), reason="needs the shared data")
def test_the_history_of_an_ontology(run: Run, tmp_path: Path) -> None:
    """Each commit of a real ontology is a version; counts and hashes are those of a peer."""
    name = "sequence-ontology"
    expected = {
        one["tx"]: one for one in json.loads((UPDATES / f"{name}.expected.json").read_text())
    }
    (tmp_path / "none.nt").write_text("")
    run("build", "s", "none.nt", "--engine", "columnar", "--rules", "rhodf", "--quiet")
    first = Store.open("s").latest()
    run("update", "s", "--patch", str(UPDATES / f"{name}.rdfp.gz"), "--quiet")
    store = Store.open("s")
    updates = [c for c in store.log() if c.kind == "update" and c.version > first][::-1]
    assert len(updates) == max(expected)
    for number, one in expected.items():
        commit = updates[number - 1]
        assert commit.statistics.explicit == one["explicit"]
        assert commit.statistics.facts == one["rhodf"]["closure"]
    with gzip.open(UPDATES / f"{name}.final.nt.gz", "rt", encoding="utf-8") as file:
        final = sorted(set(file.read().splitlines()))
    table = KnowledgeBase.open("s").facts("[?s, ?p, ?o]")
    own = table.filter(table["explicit"])
    columns = [own[column].to_pylist() for column in ("subject", "predicate", "object")]
    assert sorted(f"{s} {p} {o} ." for s, p, o in zip(*columns, strict=True)) == final
    columns = [table[column].to_pylist() for column in ("subject", "predicate", "object")]
    lines = sorted(f"{s} {p} {o} ." for s, p, o in zip(*columns, strict=True))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert digest == expected[max(expected)]["rhodf"]["sha256_sorted_nt"]
    assert run("verify", "s", "--json")["right"] is True


def test_patches_say_what_they_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A patch has triples only; changes of plain relations would be lost without a word."""
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text("p(?x) :- q(?x) . q(1) . q(2) .")
    Path("more.dl").write_text("q(3) .")
    Path("more.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    assert main(["build", "s", "p.dl", "--quiet"]) == 0
    capsys.readouterr()
    written = "omitted: {} of plain relations or named graphs, not of triples"
    update = ["update", "s", "--insert", "more.dl", "more.ttl", "--changes", "c.rdfp"]
    assert main(update) == 0
    assert written.format("2 changes are") in capsys.readouterr().err
    for flags, number in (
        (["1", "2", "--format", "rdfp"], "1 change is"),  # explicit ones
        (["1", "2", "--format", "rdfp", "--facts", "all"], "2 changes are"),
        (["1", "2", "--format", "nt", "--out", "d"], "2 changes are"),
        (["0", "--format", "rdfp", "--each"], "3 changes are"),
    ):
        assert main(["diff", "s", *flags]) == 0
        assert written.format(number) in capsys.readouterr().err
    for flags in (["--quiet", "--format", "rdfp"], [], ["--format", "arrow", "--out", "d.arrow"]):
        assert main(["diff", "s", "1", "2", *flags]) == 0
        assert "omitted" not in capsys.readouterr().err
