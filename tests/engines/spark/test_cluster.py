"""The same result on a cluster as in one process, also when a worker is lost on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corollary.lang import reference
from tests.engines.spark.cluster import PROGRAM

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[3]


def test_a_worker_is_killed_during_a_materialization(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.spark.cluster", str(tmp_path), "kill"],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected: dict[str, int] = {}
    for atom in reference.materialize(PROGRAM):
        expected[atom.relation] = expected.get(atom.relation, 0) + 1
    assert found["rows"] == expected
    assert found["executors"] == 2
    assert found["killed"], "a worker was killed after a round"
