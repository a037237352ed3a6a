"""Values that the driver computes for tasks."""

from __future__ import annotations

import pytest

from corollary.algorithms.seminaive import materialize
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.spark import evaluate
from corollary.errors import OperationFailed
from corollary.lang.program import Program
from tests.engines.factories import spark_rounds

PROGRAM = "double(?x, ?y) :- n(?x), BIND(?x * 2 AS ?y) . " + " ".join(f"n({n}) ." for n in range(9))


def test_more_values_than_the_driver_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    program, engine = Program.parse(PROGRAM), spark_rounds(Dictionary())
    facts = engine.facts(encode(program.facts, engine.dictionary))
    monkeypatch.setattr(evaluate, "MOST_COMPUTED", 8)
    with pytest.raises(OperationFailed, match="up to 9 combinations") as caught:
        materialize(program, facts, engine)
    assert caught.value.code == "E595"
    monkeypatch.setattr(evaluate, "MOST_COMPUTED", 9)
    assert len(materialize(program, facts, engine).facts) == 18
