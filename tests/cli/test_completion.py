"""What a shell completes: commands, options, rule sets and stores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corollary import KnowledgeBase
from corollary.cli.completion import completable, rules, stores


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    KnowledgeBase("p(1) .").save(tmp_path / "pets.store")
    (tmp_path / "data").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "own.dl").write_text("q(?x) :- p(?x) .", "utf-8")
    (tmp_path / "pets.ttl").write_text("", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_of_rules_and_stores(folder: Path) -> None:
    assert rules("owl-rl") == ["owl-rl", "owl-rl+skos"]
    assert rules("o") == ["owl-horst", "owl-rl", "owl-rl+skos", "own.dl"]
    assert stores("") == ["data/", "pets.store"]
    assert stores(f"{folder}/pe") == [f"{folder}/pets.store"]
    assert stores("none/") == []


def test_only_the_command_of_the_line_is_loaded() -> None:
    [commands] = (a for a in completable("corollary query 'a")._actions if a.choices)
    sizes = {name: len(one._actions) for name, one in commands.choices.items()}  # type: ignore[union-attr]
    assert [name for name, size in sizes.items() if size > 1] == ["query"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("corollary check --rules owl-h", {"owl-horst"}),
        ("corollary info pe", {"pets.store"}),
    ],
)
def test_a_shell_asks(line: str, expected: set[str], folder: Path) -> None:
    pytest.importorskip("argcomplete")
    answer = folder / "answer"
    asked = {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9",
    }  # fmt: skip
    command = [sys.executable, "-m", "corollary.cli.main"]
    subprocess.run(command, env=os.environ | asked, check=False, timeout=60)
    assert {text.strip() for text in answer.read_text("utf-8").split("\v")} == expected
