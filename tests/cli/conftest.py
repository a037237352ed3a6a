"""Fixtures of the tests of the command line."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print no progress, which a slow machine would add to stderr after a second."""
    monkeypatch.setattr("corollary.cli.progress.LINE_SECONDS", float("inf"))
