"""Small programs in files, each with the facts that follow from it: all engines derive just these.

`programs/<area>/<case>.dl` is a program, `<case>.expected` beside it holds its derived facts (those
of the materialization that do not stand in the program), one a line, sorted. They were worked out
by hand, not by an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from corollary.lang import reference
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.syntax import Atom

Materialize = Callable[[Program], set[Atom]]

# What is tested with the same cases, here and in the other tests that take `materialize`.
ENGINES: list[tuple[str, Materialize]] = [("reference", reference.materialize)]
every_engine = pytest.mark.parametrize(
    "materialize", [engine for _, engine in ENGINES], ids=[name for name, _ in ENGINES]
)

PROGRAMS = Path(__file__).parent / "programs"
CASES = sorted(str(path.relative_to(PROGRAMS).with_suffix("")) for path in PROGRAMS.glob("*/*.dl"))
every_program = pytest.mark.parametrize("case", CASES)


def load(case: str) -> Program:
    return Program.load(PROGRAMS / f"{case}.dl")


def test_every_program_has_its_expected_facts() -> None:
    programs = {path.with_suffix("") for path in PROGRAMS.rglob("*.dl")}
    expected = {path.with_suffix("") for path in PROGRAMS.rglob("*.expected")}
    assert programs, f"no programs in {PROGRAMS}"
    assert programs - expected == set(), "programs without an .expected file"
    assert expected - programs == set(), ".expected files without a program"


@every_engine
@every_program
def test_derives_exactly_the_expected_facts(case: str, materialize: Materialize) -> None:
    program = load(case)
    printer = Printer(program.prefixes)
    derived = materialize(program) - set(program.facts)
    expected = (PROGRAMS / f"{case}.expected").read_text("utf-8").splitlines()
    assert sorted(f"{printer.atom(fact)} ." for fact in derived) == expected


@every_program
def test_prints_to_text_that_reads_back(case: str) -> None:
    program = load(case)
    again = Program.parse(str(program))
    assert again == program
    assert [rule.name for rule in again.rules] == [rule.name for rule in program.rules]
