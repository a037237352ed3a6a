"""`corollary check`, and `corollary run` over RDF files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import call

PREFIXES = """
@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
CATS = PREFIXES + ":Cat owl:disjointWith :Dog . :Kitten rdfs:subClassOf :Cat . :tom a :Kitten ."
DOGS = PREFIXES + ":tom a :Dog ."
PROOF = """\
cax-dw is contradicted in 1 way
  false   by [cax-dw]
  ├─ [:Cat, owl:disjointWith, :Dog]   explicit
  ├─ [:tom, a, :Cat]   by [cax-sco]
  │  ├─ [:Kitten, rdfs:subClassOf, :Cat]   explicit
  │  └─ [:tom, a, :Kitten]   explicit
  └─ [:tom, a, :Dog]   explicit
"""
GOOD, BAD = "<urn:a> <urn:p> <urn:b> .\n", "<urn:a> <urn:p> .\n"


def corollary(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(*arguments, folder=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cats.ttl").write_text(CATS, "utf-8")
    (tmp_path / "dogs.ttl").write_text(DOGS, "utf-8")
    (tmp_path / "bad.nt").write_text(BAD + GOOD, "utf-8")
    return tmp_path


def test_consistent(folder: Path) -> None:
    done = corollary(folder, "check", "cats.ttl")
    assert (done.returncode, done.stdout) == (0, "consistent\n")
    assert " facts, seconds: load " in done.stderr


def test_inconsistent_with_its_proof(folder: Path) -> None:
    done = corollary(folder, "check", "*.ttl", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (1, PROOF, "")


@pytest.mark.parametrize("equality", ["rules", "rewrite"])
def test_equal_terms(folder: Path, equality: str) -> None:
    rex = PREFIXES + ":rex a :Dog ; owl:sameAs :tom ."
    (folder / "rex.ttl").write_text(rex, "utf-8")
    done = corollary(
        folder, "check", "cats.ttl", "rex.ttl", "--equality", equality, "--json", "--quiet"
    )
    assert done.returncode == 1
    assert "cax-dw" in [one["rule"] for one in json.loads(done.stdout)["inconsistencies"]]


def test_other_rules(folder: Path) -> None:
    assert corollary(folder, "check", "cats.ttl", "dogs.ttl", "--rules", "rdfs").returncode == 0
    (folder / "one.dl").write_text("[no-cats] false :- [?x, a, <http://example.org/Cat>] .")
    done = corollary(folder, "check", "cats.ttl", "--rules", "rhodf", "--rules", "one.dl", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert (report["consistent"], report["skipped"], report["samples"]) == (False, 0, [])
    [found] = report["inconsistencies"]
    assert (found["rule"], found["count"]) == ("no-cats", 1)
    [proof] = found["proofs"]
    assert (proof["fact"], proof["height"]) == ("false", 2)
    assert [premise["fact"] for premise in proof["premises"]] == ["[:tom, a, :Cat]"]


def test_programs_are_checked_by_their_own_rules(folder: Path) -> None:
    facts = "".join(f"p({number}) ." for number in range(5))
    (folder / "p.dl").write_text(f"false :- q(?x), NOT r(?x) . q(?x) :- p(?x) . {facts}")
    done = corollary(folder, "check", "p.dl", "--limit", "2", "--json")
    [found] = json.loads(done.stdout)["inconsistencies"]
    assert (found["rule"], found["count"], len(found["proofs"])) == (None, 5, 2)
    done = corollary(folder, "check", "p.dl", "--limit", "1", "--quiet")
    assert done.stdout.splitlines() == [
        "false :- q(?x), NOT r(?x) is contradicted in 5 ways",
        "  false   by false :- q(?x), NOT r(?x)",
        "  ├─ q(0)   by q(?x) :- p(?x)",
        "  │  └─ p(0)   explicit",
        "  └─ NOT r(0)   no such fact",
        "  …",
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["bad.nt"], "E320"),
        (["none.ttl"], "E301"),
        (["cats.ttl", "--rules", "owl-lr"], "E311"),
        (["cats.ttl", "--rules", "none.dl"], "E301"),
    ],
)
def test_bad_input(folder: Path, arguments: list[str], code: str) -> None:
    done = corollary(folder, "check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{code}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_statements_that_are_skipped(folder: Path) -> None:
    done = corollary(folder, "check", "bad.nt", "--on-error", "skip", "--quiet")
    assert (done.returncode, done.stdout) == (0, "consistent\n")
    assert done.stderr.splitlines()[0] == "skipped: 1 statement that cannot be read"
    assert done.stderr.splitlines()[1].startswith("  bad.nt:1:17: ")
    arguments = ["run", "--data", "bad.nt", "--on-error", "skip", "--json"]
    report = json.loads(corollary(folder, *arguments).stdout)
    assert (report["facts"], report["skipped"]) == (1, 1)
    assert (report["samples"][0]["file"], report["samples"][0]["line"]) == ("bad.nt", 1)


def test_run_over_rdf(folder: Path) -> None:
    arguments = ["run", "--rules", "rhodf", "--data", "cats.ttl", "dogs.ttl", "--out", "out"]
    done = corollary(folder, *arguments, "--quiet")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("warning: W103: 1 axiom is read by no rule: owl:disjointWith 1")
    lines = (folder / "out" / "triples.nt").read_text("utf-8").splitlines()
    assert lines == sorted(lines)
    assert len(lines) == 5
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    assert f"<http://example.org/tom> {a} <http://example.org/Cat> ." in lines
    again = corollary(folder, "run", "--data", "out", "--quiet")  # a folder, without rules
    assert len(again.stdout.splitlines()) == 5


@pytest.mark.parametrize("engine", ["columnar", "reference"])
def test_run_a_program_over_rdf(folder: Path, engine: str) -> None:
    program = "cat(?x, 1) :- [?x, a, <http://example.org/Cat>] ."
    (folder / "cat.dl").write_text(program)
    arguments = ["run", "cat.dl", "--rules", "rhodf", "--data", "cats.ttl", "--engine", engine]
    done = corollary(folder, *arguments, "--json")
    assert json.loads(done.stdout)["relations"] == {"cat": 1, "triples": 4}
    goal = ["--explain", "cat(<http://example.org/tom>, 1)", "--quiet"]
    if engine == "columnar":
        assert "explicit" in corollary(folder, *arguments, *goal).stdout


def test_nothing_to_run(folder: Path) -> None:
    done = corollary(folder, "run")
    assert done.returncode == 2
    assert "E303: there is nothing to run" in done.stderr


def test_help_tells_every_flag(folder: Path) -> None:
    found = corollary(folder, "check", "--help").stdout
    for flag in ("--rules", "--on-error", "--limit", "--json", "--quiet", "--threads"):
        assert flag in found
    found = corollary(folder, "run", "--help").stdout
    assert all(flag in found for flag in ("--rules", "--data", "--on-error"))
