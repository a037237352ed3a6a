"""The pipeline on a cluster of processes, one of which is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corollary.generate.lubm import DATASET
from corollary.generate.write import write
from tests.spark.data import embedded, stored

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds executors in /proc")
def test_a_build_goes_on_without_an_executor(tmp_path: Path) -> None:
    write(DATASET, tmp_path / "data", scale=1, seed=3)
    data = tmp_path / "data.nt"
    with data.open("wb") as out:
        out.write((tmp_path / "data" / "univ-bench.nt").read_bytes())
        lines = (tmp_path / "data" / "University0.nt").read_bytes().splitlines(keepends=True)
        out.writelines(lines[:20_000])
    path = os.pathsep.join(
        filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")])
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster", str(data), str(tmp_path / "store")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report["killed"]) == 1
    expected = embedded([data], "owl-rl")
    assert report["facts"] == len(expected)
    assert stored(tmp_path / "store") == expected
