"""Few facts are looked up at once: the same facts and instances as by planned joins."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from corollary.algorithms.seminaive import Materialization, materialize
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.program import Program
from corollary.testing import thresholds
from tests.strategies import programs


def _materialized(program: Program, few: int) -> tuple[set[object], dict[str, int]]:
    with thresholds(small_atom_facts_limit=few):
        engine = ColumnarEngine(Dictionary())
        explicit = engine.facts(encode(program.facts, engine.dictionary))
        done: Materialization[ColumnarFacts] = materialize(program, explicit, engine)
        return {*decode(done.facts, engine.dictionary)}, done.statistics.derivations


@settings(max_examples=60)
@given(programs())
def test_differential(program: Program) -> None:
    assert _materialized(program, 64) == _materialized(program, 0)


@pytest.mark.parametrize(
    "rule",
    [
        "h(?x, ?y) :- g(?x), p(?x, ?y) .",
        "h(?y, ?x) :- g(?y), p(?x, ?y) .",
        "h(?x) :- g(?x), p(?x, ?y) .",
        "h(?y) :- g(?x), p(?x, ?y) .",
        "h(?x, ?y) :- p(?x, ?y), q(?y, ?x) .",
        "h(?x) :- g(?x), k(?x) .",
        "h(1) :- g(?x), k(?x) .",
    ],
)
def test_shapes(rule: str) -> None:
    facts = "g(1) . g(2) . k(2) . p(1, 2) . p(1, 3) . p(3, 1) . p(2, 2) . q(2, 1) . q(2, 2) ."
    program = Program.parse(f"{rule} {facts}")
    found = _materialized(program, 64)
    assert found == _materialized(program, 0)
    assert sum(found[1].values()) > 0
