"""The benchmark evolve: its streams, protocol and adapters, on a few steps with real processes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.evolve import driver
from benchmarks.evolve.benchmark import SYSTEMS, command_of, missing
from benchmarks.evolve.generated import GENERATORS, commits
from benchmarks.evolve.streams import Stream, history, write
from benchmarks.report import DATA

STEPS = 5


def small_stream(folder: Path, name: str = "policy") -> Stream:
    return write(folder / name, name, "generated", islice(commits(name), STEPS))


@pytest.mark.parametrize("system", SYSTEMS)
def test_systems_reach_the_expected_states(tmp_path: Path, system: str) -> None:
    if reason := missing(system):
        pytest.skip(reason)
    row = driver.run(small_stream(tmp_path), command_of(system))
    assert row["correct"], row
    assert (row["checked"], row["steps"], row["wrong"]) == (STEPS, STEPS, None)


def test_finds_a_wrong_state(tmp_path: Path) -> None:
    stream = small_stream(tmp_path)
    path = stream.folder / "stream.json"
    content = json.loads(path.read_text())
    content["steps"][2]["hash"] = "0" * 64
    path.write_text(json.dumps(content))
    row = driver.run(Stream.open(stream.folder), command_of("naive"))
    assert (row["correct"], row["wrong"]) == (False, 2)


def test_reports_failures(tmp_path: Path) -> None:
    stream = small_stream(tmp_path)
    silent = [sys.executable, "-c", "pass"]
    assert "the process has ended" in driver.run(stream, silent)["failed"]
    (stream.folder / stream.steps[1]["insert"]).unlink()
    failed = driver.run(stream, command_of("naive"))["failed"]
    assert failed.startswith("step 1: insert")
    assert "FileNotFoundError" in failed


@pytest.mark.parametrize("name", GENERATORS)
def test_generated_streams_are_reproducible(name: str) -> None:
    first, again = ([replace(c, hash=None) for c in commits(name)] for _ in range(2))
    assert first == again
    assert all(commit.count is not None for commit in first)
    rules = [rule for commit in first[1:] for rule in (*commit.add_rules, *commit.remove_rules)]
    assert rules
    assert [c.count for c in commits(name, seed=1)] == [None] * len(first)


def test_a_recorded_history(tmp_path: Path) -> None:
    patch = DATA / "updates" / "sequence-ontology.rdfp.gz"
    if not patch.exists():
        pytest.skip(f"no {patch}")
    stream = write(tmp_path, "history", patch.name, history(patch))
    row = driver.run(stream, command_of("corollary"))
    assert row["correct"], row
    assert row["checked"] >= 5
