"""Soufflé's own tests, as far as they are plain Datalog, read from a folder beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary.lang import reference
from tests import souffle
from tests.test_programs import Materialize, every_engine

FOLDER = Path(__file__).parents[1] / "../shared/data/datalog/souffle-pure"

if not FOLDER.is_dir():
    pytest.skip("no Soufflé cases in ../shared/data/datalog/souffle-pure", allow_module_level=True)

CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())

_PAIRS = "joins 1,000 with 1,000 facts in {} rules, which takes the nested loops of the oracle {} s"
SLOW_ON_REFERENCE = {
    "example-po2": _PAIRS.format(18, 80),
    "example-po3": _PAIRS.format(15, 53),
    "example-po4": _PAIRS.format(9, 35),
    "example-po5": _PAIRS.format(15, 55),
    "example-ranpo": _PAIRS.format(9, 35),
}


@every_engine
@pytest.mark.parametrize("name", CASES)
def test_has_the_outputs_of_souffle(name: str, materialize: Materialize) -> None:
    if materialize is reference.materialize and name in SLOW_ON_REFERENCE:
        pytest.skip(SLOW_ON_REFERENCE[name])
    case = souffle.load(FOLDER / name)
    facts = materialize(case.program)
    assert {fact for fact in facts if fact.relation in case.outputs} == case.expected
