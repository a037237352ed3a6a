"""Bit matrices give what rounds over keys give, also on few pairs."""

from __future__ import annotations

from hypothesis import given

from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang.program import Program
from corollary.testing import thresholds
from tests.dense import compositions
from tests.engines.conformance import (
    as_example,
    materialize_agrees_with_the_oracle,
)


@given(compositions())
def test_oracle_matrices(program: Program) -> None:
    with thresholds(bit_matrix_pairs_minimum=0):
        materialize_agrees_with_the_oracle(ColumnarEngine, as_example(program))
