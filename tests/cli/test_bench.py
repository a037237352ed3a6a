"""`corollary bench` runs the benchmarks of the checkout."""

from __future__ import annotations

import json

import pytest

from corollary.cli.main import main
from corollary.errors import OperationFailed


def test_help_lists_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "--help"])
    assert stopped.value.code == 0
    assert "modular" in capsys.readouterr().out


def test_a_benchmark_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "one_fact", "--scale", "1k", "--repeat", "1", "--json"])
    assert stopped.value.code == 0
    assert json.loads(capsys.readouterr().out)["name"] == "one_fact"


def test_without_a_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["bench"]) == OperationFailed("E403", "").exit_status
    assert "checkout" in capsys.readouterr().err
