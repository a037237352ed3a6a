"""LUBM(1) under L and LE: the facts that an unrelated engine found, to the last one."""

from __future__ import annotations

import pytest

from benchmarks import lubm_one
from benchmarks.report import DATA

reason = lubm_one.missing(DATA)
if reason is not None:
    pytest.skip(f"LUBM(1) is not here: {reason}", allow_module_level=True)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rules", "facts"), [("L", 137_931), ("LE", 251_651)])
def test_the_closure_is_the_expected_set(rules: str, facts: int, threads: int) -> None:
    row = lubm_one.check(str(DATA), rules, threads)
    assert row["facts"] == row["expected"] == facts
    assert row["correct"], "the counts of predicates or the hash of the facts differ"
