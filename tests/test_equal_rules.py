"""Rule systems over the same work, from file to file: every system found derives the same."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks import dag, equal_rules
from benchmarks.equal_rules import compare
from benchmarks.equal_rules.work import Work, relation
from benchmarks.report import Options
from corollary.core.dictionary import Dictionary
from corollary.lang.program import Program


@pytest.mark.parametrize(
    "name", [m.name for m in pkgutil.iter_modules(equal_rules.__path__, "benchmarks.equal_rules.")]
)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_rule_systems_update_and_start_over(tmp_path: Path) -> None:
    """From file to file: every system found derives the same, also after changes."""
    edges = np.array([(n, n + 1) for n in range(30)] + [(3, 29)], np.uint32)
    folder = tmp_path / "work"
    folder.mkdir()
    names = relation("edge"), relation("path")
    Work.of(Program.parse(dag.LINEAR), Dictionary(), *names).write(folder, edges)
    assert compare.prepare(str(folder))["facts"] > len(edges)
    deletion = compare.updates(folder, tmp_path / "few", Options([], 1), deleted=4)
    removal = compare.updates(folder, tmp_path / "rules", Options([], 1), rule=1)
    for rows in (compare.rows(folder, Options([], 1)), deletion, removal):
        ours, *others = rows
        assert ours["correct"], ours
        for row in others:
            assert "skipped" in row or (row["correct"] and row["hash"] == ours["hash"]), row
    sizes = [len(np.load(tmp_path / name / "closure.npy")) for name in ("work", "few", "rules")]
    assert sizes[0] > sizes[1] > sizes[2] == len(edges)
    [souffle] = [row for row in others if row["engine"] == "souffle"]
    assert "-j1" in str(souffle.get("skipped", souffle.get("command")))


def test_commands_run_in_the_folder_of_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program on the path gets its files, and its output is compared."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "souffle"
    program.write_text(
        "#!/bin/sh\ngrep -q '.input r_edge' rules.souffle && cp path.txt r_path.csv\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "work"
    folder.mkdir()
    names = relation("edge"), relation("path")
    work = Work.of(Program.parse(dag.LINEAR), Dictionary(), *names)
    work.write(folder, np.array([(1, 2), (2, 3)], np.uint32))
    compare.prepare(str(folder))
    (folder / "path.txt").write_text("1\t2\n1\t3\n2\t3\n")
    [(_, row)] = compare.peers(folder, Options([], 1), ["souffle"])
    assert (row["correct"], row["command"]) == (True, "souffle -j1 -F. -D. rules.souffle")
    (folder / "path.txt").write_text("1\t2\n")
    [(_, row)] = compare.peers(folder, Options([], 1), ["souffle"])
    assert row["correct"] is False
