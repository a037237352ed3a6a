"""The pipeline on a cluster of processes, one of which is killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corollary.generate.lubm import DATASET
from corollary.generate.write import write
from tests.spark.data import embedded, stored

ROOT = Path(__file__).resolve().parents[2]


pytestmark = [pytest.mark.spark, pytest.mark.long]


def run(module: str, *arguments: str) -> dict[str, Any]:
    """The last line that a script prints, as JSON."""
    path = os.pathsep.join(
        filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")])
    )
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds executors in /proc")
def test_a_build_goes_on_without_an_executor(tmp_path: Path) -> None:
    write(DATASET, tmp_path / "data", scale=1, seed=3)
    data = tmp_path / "data.nt"
    with data.open("wb") as out:
        out.write((tmp_path / "data" / "univ-bench.nt").read_bytes())
        lines = (tmp_path / "data" / "University0.nt").read_bytes().splitlines(keepends=True)
        out.writelines(lines[:20_000])
    report = run("tests.spark.cluster", str(data), str(tmp_path / "store"))
    assert len(report["killed"]) == 1
    expected = embedded([data], "owl-rl")
    assert report["facts"] == len(expected)
    assert stored(tmp_path / "store") == expected


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds executors in /proc")
def test_faults_while_tasks_work(tmp_path: Path) -> None:
    """An executor is lost in a round, a write and an update; Python workers are killed or throw."""
    data, more = tmp_path / "data.dl", tmp_path / "more.dl"
    facts = "".join(f"p({n}, {n + 1}) . q({n}, {n + 1}) .\n" for n in range(60))
    data.write_text(
        "p(?x, ?z) :- p(?x, ?y), q(?y, ?z) . q(?x, ?z) :- q(?x, ?y), p(?y, ?z) ." + facts
    )
    more.write_text("p(70, 0) . q(30, 71) .")
    killed = run("tests.spark.faulty", str(tmp_path))
    assert killed == {"rounds": 1, "write": 1, "worker": 1, "update": 1, "never": "E406"}
    assert not (tmp_path / "never").exists()
    expected = embedded([data], "none")
    assert stored(tmp_path / "rounds", 1) == expected
    assert stored(tmp_path / "rounds") == embedded([data, more], "none")
    for name in ("write", "worker", "throws", "dies"):
        assert stored(tmp_path / name) == expected


def can_mount() -> bool:
    return shutil.which("unshare") is not None and (
        subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.skipif(not can_mount(), reason="needs a mount namespace")
def test_executors_that_do_not_see_the_store_make_no_version(tmp_path: Path) -> None:
    report = run("tests.spark.unseen", str(tmp_path), "all")
    assert report["code"] == "E549"
    assert "does not see" in report["message"]
    assert report["left"] == []


@pytest.mark.skipif(not can_mount(), reason="needs a mount namespace")
@pytest.mark.parametrize(("fault", "code"), [("one", "E549"), ("spill", "E542")])
def test_one_bad_disk_makes_no_version(tmp_path: Path, fault: str, code: str) -> None:
    """One of two executors does not see the store, or has no space for what Spark spills."""
    report = run("tests.spark.unseen", str(tmp_path), fault)
    assert report["code"] == code, report["message"]
    assert report["left"] == []
    assert report["again"] == 199, "the same build without the fault"
