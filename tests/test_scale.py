"""`corollary bench scale`: it resumes, and bounds what it starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scale
from benchmarks.report import Options, Row

BUILT: dict[str, Any] = {
    "facts": 9,
    "explicit": 5,
    "seconds": {"read": 1, "materialize": 1, "commit": 1},
}
ANSWER: dict[str, Any] = {"results": {"bindings": [{}]}}


class Commands:
    """A store of nine facts, instead of commands; the second insertion fails while `fails`."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.new: set[str] = set()
        self.fails = True

    def __call__(self, arguments: list[str], timeout: float) -> tuple[Row, str]:
        self.called.append(arguments[0])
        told: dict[str, Any] = {"build": BUILT, "query": ANSWER}.get(arguments[0], {})
        if arguments[0] == "update":
            before, lines = self.new, {*Path(arguments[-1]).read_text().splitlines()}
            if self.fails and len(lines) > 1:
                return {"seconds": 1.0, "peak_bytes": 1, "ends with": "E406: no memory"}, ""
            self.new = before | lines if arguments[-2] == "--insert" else before - lines
            told = {"facts": 9 + len(self.new), "seconds": {"update": 1}}
            told |= {"inserted": len(self.new - before), "deleted": len(before - self.new)}
        return {"seconds": 1.0, "peak_bytes": 100}, json.dumps(told)


def test_a_run_that_ended_resumes_after_its_finished_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands()
    monkeypatch.setattr(scale, "WORK", tmp_path)
    monkeypatch.setattr(scale, "command", commands)
    first = list(scale.run(Options([1], timeout=1)))
    assert first[-1]["ends with"] == "E406: no memory"
    assert commands.called[:3] == ["build", "query", "query"]
    assert not list((tmp_path / "lubm-1" / "lubm").glob("*.nt"))  # the disk is for the store
    commands.called, commands.fails = [], False
    second = list(scale.run(Options([1], timeout=1)))
    assert commands.called == ["update"] * 3  # what may have been inserted is deleted first
    assert second[: len(first) - 2] == first[:-2]
    assert not any("ends with" in row or row.get("correct") is False for row in second)
    assert [row["case"] for row in second[-2:]] == ["insert 100", "delete 100"]
    assert not (tmp_path / "lubm-1").exists()


def test_needs_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "WORK", tmp_path)
    monkeypatch.setattr(scale, "BYTES", 1 << 60)
    [row] = scale.run(Options([1]))
    assert "GB of disk" in row["skipped"]
    assert not any(tmp_path.iterdir())
