"""`corollary warm` calls every loop with all types of arguments, so that work compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corollary.cli.warm_work import WORK, documents


def corollary(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "corollary.cli.main", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_a_process_that_fails_ends_the_command(tmp_path: Path) -> None:
    """As on a full disk, in the process that compiles."""
    (tmp_path / "numba.py").write_text("raise OSError('No space left on device')")
    done = corollary("warm", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("E410: compiling the loops of")
    assert "OSError: No space left on device" in done.stderr


def test_the_work_runs() -> None:
    documents()


@pytest.mark.long
def test_nothing_is_compiled_afterwards(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    warmed = corollary("warm", "--json", **cache)
    assert warmed.returncode == 0, warmed.stderr
    assert json.loads(warmed.stdout)["seconds"].keys() == WORK.keys()
    edges = "".join(f"{n}\t{n + 1 if n % 9 else n // 2}\n" for n in range(30_000))
    (tmp_path / "edge.facts").write_text(edges)
    program = tmp_path / "path.dl"
    program.write_text(
        "path(?x, ?y) :- edge(?x, ?y) .\npath(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
    )
    done = corollary("run", str(program), "--facts", str(tmp_path), "--json", **cache)
    assert done.returncode == 0, done.stderr
    assert "compiling" not in done.stderr
    data = tmp_path / "data.nt"
    data.write_text("".join(f"<urn:x{n}> <urn:p> <urn:c{n % 7}> .\n" for n in range(30_000)))
    store = str(tmp_path / "store")
    for command in (
        ("build", store, str(data), "--engine", "columnar"),
        ("query", store, "SELECT (COUNT(*) AS ?n) { ?x <urn:p> ?y }"),
    ):
        done = corollary(*command, **cache)
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr
