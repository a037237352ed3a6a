"""`corollary apply`: what it prints, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corollary.algorithms.maintain import ALGORITHMS
from corollary.cli.main import main

PROGRAM = """\
@prefix : <http://example.org/> .
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .
[?x, a, :Node] :- edge(?x, ?y) .
edge(1, 2) .
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.dl").write_text(PROGRAM)
    return tmp_path


def apply(script: str, *options: str) -> int:
    Path("s.updates").write_text(script)
    return main(["apply", "p.dl", "--updates", "s.updates", *options])


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_changes_and_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    assert apply("insert edge(2, 3) ; commit ; delete edge(1, 2) ; commit ;") == 0
    printed = capsys.readouterr()
    assert printed.out == (
        "commit 1\n+ [2, a, :Node]\n+ edge(2, 3)\n+ path(1, 3)\n+ path(2, 3)\n"
        "commit 2\n- [1, a, :Node]\n- edge(1, 2)\n- path(1, 2)\n- path(1, 3)\n"
    )
    first, second = printed.err.splitlines()
    assert first.startswith("auto: +4 -0 facts in ")
    assert "insertion 2, transitive path 3 (" in first
    assert "modules in 1 stratum)" in second


def test_facts_from_files(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "facts").mkdir()
    (folder / "facts" / "edge.facts").write_text("2\t3\n")
    assert apply("delete edge(2, 3) ; commit ;", "--facts", "facts", "--quiet") == 0
    printed = capsys.readouterr()
    assert printed.out == ("commit 1\n- [2, a, :Node]\n- edge(2, 3)\n- path(1, 3)\n- path(2, 3)\n")
    assert printed.err == ""


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert apply("delete edge(1, 2), edge(7, 7) ; commit ; commit ;", "--json") == 0
    first, second = objects(capsys.readouterr().out)
    assert (first["commit"], second["commit"]) == (1, 2)
    assert first["deleted"] == ["[1, a, :Node]", "edge(1, 2)", "path(1, 2)"]
    statistics = first["statistics"]
    assert statistics["algorithm"] == "auto"
    assert (statistics["explicit_deleted"], statistics["explicit"]) == (1, 0)
    assert (statistics["deleted"], statistics["facts"]) == (3, 0)
    assert statistics["derivations"]["overdeletion"] == 1
    assert statistics["derivations"]["transitive path"] >= 1
    assert second["inserted"] == second["deleted"] == []


def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    script = "insert edge(2, 1), edge(2, 3) ; commit ; delete edge(1, 2) ; commit ;"
    assert apply(script, "--compare", "--coarse-strata", "--verify") == 0
    printed = capsys.readouterr()
    title, *rows = printed.out.splitlines()
    assert title.split()[:2] == ["commit", "algorithm"]
    assert "DR2  DR4  DR5" in title
    able = [name for name in ALGORITHMS if name != "counting"]
    assert [row.split()[:2] for row in rows] == [[n, name] for n in "12" for name in able]
    assert "counting: counting cannot maintain recursive rules" in printed.err
    assert apply(script, "--compare", "--json", "--no-modules") == 0
    second = objects(capsys.readouterr().out)[1]
    assert set(second["algorithms"]) == set(able)
    assert second["algorithms"]["dred"]["considered"]["overdeleted"] >= 3


def test_compare_fails_where_algorithms_differ(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corollary.algorithms.dred.rederive", lambda step, gone: forget(step, gone))

    def forget(step: Any, gone: Any) -> Any:
        from corollary.algorithms.stratum import Removal

        return Removal(gone, step.nothing)

    script = "insert edge(2, 1) ; commit ; delete edge(1, 2), edge(2, 1) ; insert edge(1, 3) ;"
    options = ("--compare", "--no-modules")
    status = apply(script + " commit ;", *options, "--coarse-strata")
    assert status == 0, "nothing was to be rederived"
    assert apply("insert path(1, 2) ; commit ; delete edge(1, 2) ; commit ;", *options) == 1
    assert "E407: dred and auto differ after commit 2" in capsys.readouterr().err


def test_all_mistakes_of_a_script_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    script = """\
insert edge(1) ;
insert edge(?x, 2) ;
drop edge(1, 2) ;
add rule path(?x, ?w) :- edge(?x, ?y) . ;
add rule edge(3, 4) . ;
remove rule path(?x, ?y) :- edge(?x, ?y) . commit ;
insert [:a, :b, unknown:c] ;
"""
    assert apply(script) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    for message in (
        "s.updates:1:8: E203: 'edge' has 1 argument here, but 2 arguments at its first use",
        "s.updates:2:13: E208: a fact has constants only",
        "s.updates:3:1: E101: expected insert, delete, add rule, remove rule or commit, found",
        "s.updates:4:19: E202: ?w stands in the head",
        "s.updates:5:1: E101: expected a rule with a body, found a fact",
        "s.updates:7:1: E310: this change is not committed",
        "s.updates:7:17: E201: the prefix 'unknown:' is not declared",
    ):
        assert message in printed.err
    assert "7 errors" in printed.err


def test_a_rule_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    script = "insert edge(2, 3) ; commit ;\nremove rule path(?x, ?y) :- path(?y, ?x) . ; commit ;"
    assert apply(script, "--quiet") == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("commit 1\n")
    assert "s.updates:2:13: E307: the program has no rule path(?x, ?y) :- path(?y, ?x) ." in (
        printed.err
    )


def test_rules_that_cannot_be_stratified_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert apply("add rule edge(?x, ?x) :- edge(?x, ?y), NOT path(?x, ?x) . ; commit ;") == 2
    assert "E205" in capsys.readouterr().err


def test_missing_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "p.dl", "--updates", "none.updates"]) == 2
    assert "none.updates: E301: cannot read none.updates" in capsys.readouterr().err
    assert main(["apply", "p.dl", "--updates", "none.updates", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "E301"


def test_help_names_every_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["apply", "--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in ALGORITHMS)
    assert "commit ;" in text
