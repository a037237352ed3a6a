"""Small programs in files, each with the facts that follow from it: all engines derive just these.

`programs/<area>/<case>.dl` (or `.srl`) is a program, `<case>.expected` beside it holds its derived
facts (those of the materialization that do not stand in the program), one a line, sorted. They were
worked out by hand, not by an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corollary.lang import reference
from corollary.lang.printer import Printer
from corollary.lang.program import PROGRAM_SUFFIXES, Program
from corollary.lang.syntax import Atom
from tests.effort import first
from tests.engines.conformance import materialized
from tests.engines.factories import ENGINES, marks

Materialize = Callable[[Program], set[Atom]]


def _on(engine: str) -> Any:
    return pytest.param(partial(materialized, ENGINES[engine]), id=engine, marks=marks(engine))


# What is tested with the same cases, here and in the other tests that take `materialize`. Spark,
# which takes some seconds for the smallest program if none of it is done by the driver, has the
# cases of this file only: all of them with tasks as calls, and one of each kind in jobs.
_EMBEDDED = [pytest.param(reference.materialize, id="reference"), _on("columnar")]
every_engine = pytest.mark.parametrize("materialize", _EMBEDDED)
every_engine_and_inline = pytest.mark.parametrize(
    "materialize", [*_EMBEDDED, _on("inline"), _on("inline-rounds")]
)
in_jobs = pytest.mark.parametrize("materialize", [_on("spark-large")])

# One of each kind, in jobs: what they have in common with calls is tested with calls.
ON_SPARK = {
    "aggregates/into_recursion",
    "filters/same_value",
    "joins/cross_product",
    "negation/existential",
    "rdf/variable_predicate",
    "recursion/mutual",
}

PROGRAMS = Path(__file__).parent / "programs"
FILES = [path for suffix in PROGRAM_SUFFIXES for path in PROGRAMS.rglob(f"*{suffix}")]
CASES = sorted(str(path.relative_to(PROGRAMS).with_suffix("")) for path in FILES)
every_program = pytest.mark.parametrize("case", CASES)


def load(case: str) -> Program:
    path = PROGRAMS / f"{case}.dl"
    return Program.load(path if path.exists() else path.with_suffix(".srl"))


def test_jobs_have_programs() -> None:
    assert {*CASES} >= ON_SPARK


def test_every_program_has_its_expected_facts() -> None:
    programs = {path.with_suffix("") for path in FILES}
    expected = {path.with_suffix("") for path in PROGRAMS.rglob("*.expected")}
    assert programs, f"no programs in {PROGRAMS}"
    assert programs - expected == set(), "programs without an .expected file"
    assert expected - programs == set(), ".expected files without a program"


@every_engine_and_inline
@every_program
def test_derives_exactly_the_expected_facts(case: str, materialize: Materialize) -> None:
    program = load(case)
    printer = Printer(program.prefixes)
    derived = materialize(program) - set(program.facts)
    # What `NOT` of several elements becomes in a .srl file has a name that nobody wrote.
    derived = {fact for fact in derived if not fact.relation.startswith("_not_")}
    expected = (PROGRAMS / f"{case}.expected").read_text("utf-8").splitlines()
    assert sorted(f"{printer.atom(fact)} ." for fact in derived) == expected


@in_jobs
@pytest.mark.parametrize("case", first(2, sorted(ON_SPARK)))
def test_derives_them_in_jobs(case: str, materialize: Materialize) -> None:
    test_derives_exactly_the_expected_facts(case, materialize)


@every_program
def test_prints_to_text_that_reads_back(case: str) -> None:
    program = load(case)
    again = Program.parse(str(program))
    assert again == program
    assert [rule.name for rule in again.rules] == [rule.name for rule in program.rules]
