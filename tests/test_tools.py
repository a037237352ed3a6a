"""The commit check and the code map."""

from __future__ import annotations

import doctest
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tools import check_commits, code_map, try_dist

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("tool", [check_commits, try_dist])
def test_examples_in_docstrings(tool: ModuleType) -> None:
    assert doctest.testmod(tool).failed == 0


# --- commit subjects ---


@pytest.mark.parametrize(
    "subject",
    [
        "columnar: evaluate semi-joins with bitmaps",
        "engines/spark: pass terms to tasks",
        "docs: re-encode the figures",
        "core: process rows",
        f"core: name {'x' * 61}",
    ],
)
def test_accepts_subject(subject: str) -> None:
    assert check_commits.problems(subject) == []


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("format", "form"),
        ("Docs: rewrite the guide", "form"),
        ("docs and results: rewrite the guide", "form"),
        ("docs: Rewrite the guide", "form"),
        ("docs: the page of measurements", "imperative"),
        ("docs: reading of scaling", "imperative"),
        ("core: places that threads change", "imperative"),
        ("core: fixed a leak", "imperative"),
        ("core: fix a leak; format", "topics"),
        (f"core: name {'x' * 62}", "73 characters"),
    ],
)
def test_rejects_subject(subject: str, problem: str) -> None:
    [message] = check_commits.problems(subject)
    assert problem in message


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("lang: report every unsafe variable\n\nThis; and that.\n", 0),
        ("# a comment\n\nriddles\n", 1),
        ("Merge branch 'main' into x\n", 0),
        ("fixup! riddles\n", 0),
        ("# an aborted commit\n", 0),
    ],
)
def test_checks_message(message: str, status: int, tmp_path: Path) -> None:
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(message, "utf-8")
    assert check_commits.main(["--message", str(path)]) == status


class Repository:
    """A git repository without the configuration of its user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.folder.mkdir(exist_ok=True)
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments: str) -> str:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        command = ["git", *identity, *arguments]
        process = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=True
        )
        return process.stdout.strip()

    def commit(self, subject: str) -> str:
        self("commit", "-q", "--allow-empty", "-m", subject)
        return self("rev-parse", "HEAD")

    def subjects(self) -> list[str]:
        history = check_commits.commits(self.folder)
        assert not isinstance(history, str), history
        return [subject for _, subject in history]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # a hook that runs the tests sets these
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return Repository(tmp_path / "repository")


def test_checks_commits_since_origin_main(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit("an old riddle")
    repository("update-ref", "refs/remotes/origin/main", "HEAD")
    repository("switch", "-q", "-c", "side")
    repository.commit("core: name tombstones")
    repository("switch", "-q", "main")
    repository.commit("riddles")
    repository("merge", "-q", "side", "-m", "Merge branch 'side'")
    assert sorted(repository.subjects()) == ["core: name tombstones", "riddles"]
    monkeypatch.setattr(check_commits, "ROOT", repository.folder)
    assert check_commits.main([]) == 1
    output = capsys.readouterr().out
    assert "riddles\n  does not have the form" in output
    assert "tombstones" not in output


def test_checks_commits_since_the_convention(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = repository.commit("an old riddle")
    repository.commit("core: name tombstones")
    monkeypatch.setattr(check_commits, "CONVENTION_START", start)
    assert repository.subjects() == ["core: name tombstones"]


def test_skips_the_check_without_a_base(
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    start = repository.commit("an old riddle")
    repository.commit("another riddle")
    shallow = tmp_path / "shallow"
    repository("clone", "-q", "--depth", "1", repository.folder.as_uri(), str(shallow))
    subprocess.run(["git", "remote", "remove", "origin"], cwd=shallow, check=True)
    monkeypatch.setattr(check_commits, "CONVENTION_START", start)
    (repository.folder / "unpacked").mkdir()
    for folder in (shallow, tmp_path, repository.folder / "unpacked"):
        monkeypatch.setattr(check_commits, "ROOT", folder.resolve())
        assert check_commits.main([]) == 0
        assert "Commit subjects not checked" in capsys.readouterr().out
    monkeypatch.setenv("PATH", str(tmp_path))  # no git
    assert check_commits.main([]) == 0


def test_hook_rejects_commit(repository: Repository) -> None:
    for name in (".githooks/commit-msg", "tools/check_commits.py"):
        target = repository.folder / name
        target.parent.mkdir()
        shutil.copy(ROOT / name, target)
    repository("config", "core.hooksPath", ".githooks")
    repository.commit("core: name tombstones")
    with pytest.raises(subprocess.CalledProcessError):
        repository.commit("riddles")


# --- code map ---


def test_code_map_is_current() -> None:
    current = code_map.PAGE.read_text("utf-8") == code_map.page(ROOT)
    assert current, "run: make code-map"


def test_code_map_lists_modules_by_package(tmp_path: Path) -> None:
    files = {
        "src/thing/__init__.py": '"""The thing."""',
        "src/thing/part.py": '"""One | two.\n\nMore."""',
        "src/thing/inner/bare.py": "",
        "src/thing/data/rules.dl": "",
        "benchmarks/__init__.py": "",
        "benchmarks/one.py": '"""Measure."""',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    lines = code_map.page(tmp_path).splitlines()
    assert [line for line in lines if line.startswith("## ")] == [
        "## `thing`",
        "## `thing/inner`",
        "## `benchmarks`",
    ]
    assert "The thing." in lines
    assert r"| `part` | One \| two. |" in lines
    assert "| `bare` |  |" in lines
    assert "| `one` | Measure. |" in lines


# --- trying a distribution ---


def test_every_example_of_the_readme_is_tried() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len([*try_dist.examples(readme)]) == readme.count("```\n```\n")


@pytest.mark.parametrize(("prints", "status"), [("true", 1), ("echo corollary 7", 0)])
def test_a_distribution_that_behaves_otherwise_fails(
    prints: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "README.md").write_text("No examples.", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('version = "7"\n', encoding="utf-8")
    monkeypatch.setattr(try_dist, "ROOT", tmp_path)
    command = tmp_path / "bin" / "corollary"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{prints}\n", encoding="utf-8")
    command.chmod(0o700)
    assert try_dist.main([str(tmp_path)]) == status
    assert f"{1 - status} of 1 examples" in capsys.readouterr().out
