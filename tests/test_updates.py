"""Every update script of `tests/updates`, with every algorithm, and on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corollary.algorithms.maintain import ALGORITHMS
from corollary.cli import apply as cli_apply
from corollary.cli.main import main
from corollary.core.dictionary import Dictionary
from corollary.core.engine import Engine
from corollary.errors import Source
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.script import parse_script
from corollary.lang.syntax import Atom, is_auxiliary
from tests.algorithms.replay import states
from tests.engines.factories import ENGINES, marks
from tests.streams import Commit, Stream

FOLDER = Path(__file__).parent / "updates"
CASES = sorted(path.stem for path in FOLDER.glob("*.updates"))
RECURSIVE = {"proofs", "tutors", "closure", "components", "negation", "classes", "numbers"}
every_case = pytest.mark.parametrize("case", CASES)


def program(case: str) -> Program:
    return Program.load(FOLDER / f"{case}.dl")


def by_the_oracle(case: str) -> str:
    """What `corollary apply --quiet` must print."""
    start = program(case)
    script = parse_script(Source.read(FOLDER / f"{case}.updates"), start)
    commits = [
        Commit(frozenset(c.inserted), frozenset(c.deleted), c.added, c.removed) for c in script
    ]
    found = states(Stream(0, start, tuple(commits)))
    lines = []

    def written(atoms: frozenset[Atom]) -> list[str]:
        shown = (atom for atom in atoms if not is_auxiliary(atom.relation))
        return sorted(map(Printer(start.prefixes).atom, shown))

    for number in range(1, len(found)):
        before, after = found[number - 1].facts, found[number].facts
        lines.append(f"commit {number}")
        lines += [f"+ {fact}" for fact in written(after - before)]
        lines += [f"- {fact}" for fact in written(before - after)]
    return "".join(f"{line}\n" for line in lines)


@every_case
def test_the_oracle_expects_the_same(case: str) -> None:
    assert by_the_oracle(case) == (FOLDER / f"{case}.expected").read_text(encoding="utf-8")


def apply(case: str, *options: str) -> int:
    name = str(FOLDER / case)
    return main(["apply", f"{name}.dl", "--updates", f"{name}.updates", "--quiet", *options])


@every_case
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_prints_the_changes(case: str, algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ((), ("--coarse-strata",), ("--no-modules",)):
        status = apply(case, "--algorithm", algorithm, "--verify", *options)
        printed = capsys.readouterr()
        if algorithm == "counting" and case in RECURSIVE:
            assert status == 2
            assert "E309: counting cannot maintain recursive rules" in printed.err
            assert printed.out == ""
            continue
        assert status == 0
        assert printed.out == (FOLDER / f"{case}.expected").read_text(encoding="utf-8")


@every_case
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_in_tasks(
    case: str,
    algorithm: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The engine of Spark, with the tasks of its jobs as calls."""

    def make(name: str, dictionary: Dictionary, **options: Any) -> Engine[Any]:
        return ENGINES["inline"](dictionary)

    monkeypatch.setattr(cli_apply, "make_engine", make)
    if algorithm == "counting" and case in RECURSIVE:
        assert apply(case, "--algorithm", algorithm, "--engine", "spark") == 2
        return
    assert apply(case, "--algorithm", algorithm, "--engine", "spark", "--verify") == 0
    assert capsys.readouterr().out == (FOLDER / f"{case}.expected").read_text(encoding="utf-8")


SPARK = {"totals": "bf-c"}


@pytest.mark.parametrize("case", [pytest.param(case, marks=marks("spark")) for case in SPARK])
def test_on_spark(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(case, "--algorithm", SPARK[case], "--engine", "spark") == 0
    assert capsys.readouterr().out == (FOLDER / f"{case}.expected").read_text(encoding="utf-8")
