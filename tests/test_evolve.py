"""The benchmark evolve: its streams, protocol and adapters, on a few steps with real processes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.evolve import driver, record
from benchmarks.evolve.__main__ import main, parser
from benchmarks.evolve.benchmark import SYSTEMS, command_of, missing
from benchmarks.evolve.generated import GENERATORS, commits
from benchmarks.evolve.streams import RHODF, Commit, Stream, history, write
from benchmarks.evolve.systems import souffle_system
from benchmarks.report import DATA, ROOT

STEPS = 5


def small_stream(folder: Path, name: str = "policy") -> Stream:
    return write(folder / name, name, "generated", islice(commits(name), STEPS))


FIXED = {"reasonable", "owlrl"}  # their rules are built in
QUICK = [name for name, found in SYSTEMS.items() if not found.slow and name not in FIXED]


@pytest.mark.parametrize("system", QUICK)
def test_systems_reach_the_expected_states(tmp_path: Path, system: str) -> None:
    if reason := missing(system):
        pytest.skip(reason)
    row = driver.run(small_stream(tmp_path), command_of(system))
    assert row.get("correct"), row
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
    nowhere = driver.run(stream, [str(tmp_path / "nowhere")])["failed"]
    assert nowhere.endswith("cannot be started: No such file or directory")
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert "stopped after 0.2 s" in driver.run(stream, slow, timeout=0.2)["failed"]
    nonsense = [sys.executable, "-c", "for _ in open(0): print('ok many', flush=True)"]
    assert driver.run(stream, nonsense)["wrong"] == 0
    (stream.folder / stream.steps[1]["insert"]).unlink()
    failed = driver.run(stream, command_of("naive"))["failed"]
    assert failed.startswith("step 1: insert")
    assert "FileNotFoundError" in failed


def test_says_what_is_no_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["evolve", "run", str(tmp_path / "missing")])
    with pytest.raises(
        SystemExit, match=r"missing is not a stream: it has no readable stream\.json"
    ):
        main()


def test_the_commands_of_its_readme_are_accepted() -> None:
    """Every command line of the README has options that the parser knows."""
    text = (ROOT / "benchmarks" / "evolve" / "README.md").read_text("utf-8")
    commands = re.findall(r"^python -m benchmarks\.evolve (.+)$", text, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        assert parser().parse_args(shlex.split(command, comments=True)).command


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
    assert row.get("correct"), row
    assert row["checked"] >= 5


@pytest.mark.parametrize("system", sorted(FIXED))
def test_systems_with_fixed_rules_take_part_in_histories_only(tmp_path: Path, system: str) -> None:
    if reason := missing(system):
        pytest.skip(reason)
    triple = "<urn:a> <urn:p> <urn:b> ."
    steps = [Commit([triple], add_rules=RHODF, count=1, hash="0"), Commit(delete=[triple])]
    row = driver.run(write(tmp_path / "h", "h", "made", iter(steps)), command_of(system))
    assert (row["steps"], row["checked"], row["correct"]) == (2, 0, None), row
    refused = driver.run(small_stream(tmp_path), command_of(system))
    assert "built in" in refused["failed"]


def test_rules_as_souffle_writes_them(tmp_path: Path) -> None:
    system = souffle_system.Souffle()
    path = tmp_path / "rules"
    path.write_text("[?x, <urn:p>, ?z] :- [?x, <urn:q>, ?y], [?y, <urn:q>, ?z] .\n")
    system.add_rules(path)
    system.numbers = {}
    assert system.program().splitlines()[-1] == "t(vx, 0, vz) :- t(vx, 1, vy), t(vy, 1, vz)."


@pytest.mark.spark
@pytest.mark.long
def test_a_stream_on_spark(tmp_path: Path) -> None:
    stream = write(tmp_path / "policy", "policy", "generated", islice(commits("policy"), 3))
    row = driver.run(stream, command_of("corollary-spark"))
    assert row.get("correct"), row
    assert row["checked"] == 3


def test_records_the_history_of_a_repository(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    versions = (
        "@prefix : <urn:> . :a :p :b , [ :q 1 ] .",
        "@prefix : <urn:> . :a :p [ :q 1 ] ; :p",  # cannot be parsed
        "@prefix : <urn:> . :a :p :b , [ :q 1 ] .\n# the same",
        "@prefix : <urn:> . :a :p :c , [ :q 1 ] .",
    )
    git("init", "-q")
    for version in versions:
        (tmp_path / "o.ttl").write_text(version, encoding="utf-8")
        git("add", "o.ttl")
        git("commit", "-qm", "change")
    assert record.record(tmp_path, ["o.ttl"], tmp_path / "o.rdfp.gz") == 2
    first, second = history(tmp_path / "o.rdfp.gz")
    assert len(first.insert) == 3, "a blank node keeps its name"
    assert (second.delete, second.insert) == (
        ["<urn:a> <urn:p> <urn:b> ."],
        ["<urn:a> <urn:p> <urn:c> ."],
    )
    before = (tmp_path / "o.rdfp.gz").read_bytes()
    record.record(tmp_path, ["o.ttl"], tmp_path / "o.rdfp.gz")
    assert (tmp_path / "o.rdfp.gz").read_bytes() == before
