"""The bar at the foot of a terminal, and the tour, which is where most people see it first."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

from corollary.cli import demo
from corollary.cli.bar import Bar, has_colors, is_terminal, painted
from corollary.cli.progress import Steps

TOUR = Path(__file__).with_name("tour.expected")


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_colors_are_for_terminals_that_want_them(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert painted("1", "x", terminal) == "\033[1mx\033[0m"
    assert painted("1", "x", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert is_terminal(terminal)
    assert not has_colors(terminal)
    monkeypatch.setenv("TERM", "dumb")
    assert not is_terminal(terminal)


@pytest.mark.parametrize("columns", [30, 80])
def test_lines_fit_the_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with contextlib.redirect_stderr(terminal), Bar(["parse", "encode"]) as bar:
        bar.tell("parse: 1,272,065 rows, 4.70 s, 268,000 rows/s, skew 3.3 and so on until the end")
        bar.tell("round 3, recursive: 12 facts derived, 34 exchanged, 0.50 s")
    text = re.sub(r"\033\[[0-9;]*m", "", terminal.getvalue())
    lines = [line for line in re.split(r"\n|\r\033\[K", text) if line]
    assert lines[0].startswith("  parse: 1,272,065 rows")
    assert any("encode (2" in line for line in lines[1:])
    assert max(map(len, lines)) < columns
    assert text.endswith("\r\033[K"), "the bar is gone at the end"


def test_a_share_is_shown_as_one(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with contextlib.redirect_stderr(terminal), Steps() as steps:
        steps("file 2 of 4, 10 facts", 0.25)
    assert "━" * 6 + "─" * 18 + " 0 s, file 2 of 4, 10 facts" in terminal.getvalue()


def test_no_bar_without_a_terminal_or_if_it_is_to_be_quiet(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corollary.cli.progress.LINE_SECONDS", 1.0)
    with contextlib.redirect_stderr(terminal), Steps(quiet=True) as steps:
        steps("parse: done")
    assert terminal.getvalue() == ""
    with contextlib.redirect_stderr(io.StringIO()) as pipe, Steps() as steps:
        steps.shown = -float("inf")
        steps("half of it")
    assert re.fullmatch(r"half of it, \d+\.\d s\n", pipe.getvalue())


@pytest.mark.slow
def test_the_tour_in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it but Spark, whose build other tests cover, into a pipe."""
    monkeypatch.setattr(demo, "ENGINE", "columnar")
    # A session that other tests leave in this process would decide.
    monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)
    assert demo.demo() == 0
    text = capsys.readouterr().out
    assert text == TOUR.read_text("utf-8").replace("--engine spark", "--engine columnar")


def test_each_step_of_the_tour_fits_a_screen() -> None:
    first, *steps = re.split(r"\n(?=\d+\. )", TOUR.read_text("utf-8"))
    assert first == ""
    assert [step.partition(".")[0] for step in steps] == [*map(str, range(1, len(steps) + 1))]
    for step in steps:
        lines = step.strip().splitlines()
        assert len(lines) <= 30, lines[0]
        assert max(map(len, lines)) <= 100, lines[0]
    hybrid, spark = steps[-2], steps[-1].partition("\nWhere to go")[0].rstrip()
    answer = steps[0].strip().partition("staff.rq --quiet\n")[2]
    assert answer.count("\n") == 5
    assert answer in hybrid, "a tie must not make two modes look different"
    assert answer in spark
