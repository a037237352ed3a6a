"""Bit matrices give what rounds over keys give, also where they would not be used: on few pairs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from corollary.engines.columnar import linear
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.testing import thresholds
from tests.dense import compositions
from tests.engines.conformance import (
    as_example,
    materialize_agrees_with_the_oracle,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(compositions())
def test_oracle_matrices(monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    monkeypatch.setattr(linear, "finish", lambda *arguments: None)
    with thresholds(bit_matrix_pairs_minimum=0):
        materialize_agrees_with_the_oracle(ColumnarEngine, as_example(program))
