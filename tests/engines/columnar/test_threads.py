"""Several threads derive what one derives, also where they would not be used: on few facts."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corollary.engines.columnar import linear, readings, sets, shared
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from tests.dense import compositions
from tests.engines.conformance import as_example, materialize_agrees_with_the_oracle
from tests.strategies import programs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(programs(aggregation=False), compositions()))
def test_oracle_threads(monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    for module in (linear, shared):
        monkeypatch.setattr(module, "_MANY", 0)
    monkeypatch.setattr(sets, "_LONG", -1)
    monkeypatch.setattr(readings, "_PART", 1)
    materialize_agrees_with_the_oracle(partial(ColumnarEngine, threads=2), as_example(program))
