"""Pairs are selected by bits of their ends: the same facts and instances as by planned joins."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.algorithms.seminaive import Materialization, materialize
from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.core.tuning import UNLIMITED
from corollary.engines.columnar import relation, semijoin, sets
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.engines.columnar.kernels import Keys
from corollary.lang.program import Program
from corollary.testing import thresholds
from tests.dense import dense_programs
from tests.strategies import programs

SHAPES = [
    "h(?x) :- p(?x, ?y), g(?x) .",
    "h(?y) :- p(?x, ?y), g(?x) .",
    "h(?x) :- g(?x), p(?x, ?y), k(?y) .",
    "h(?y) :- g(?x), k(?x), p(?x, ?y), m(?x), k(?y) .",
    "h(?x, ?y) :- g(?x), p(?x, ?y) .",
    "h(?y, ?x) :- k(?y), p(?x, ?y), g(?x) .",
    "h(?x) :- p(?x, ?y), none(?y) .",
]
OTHERS = [
    "h(?x) :- p(?x, ?x), g(?x) .",
    "h(?x, ?x) :- p(?x, ?y), g(?x) .",
    "h(?x) :- p(?x, 3), g(?x) .",
    "h(?x) :- p(?x, ?y), g(?z) .",
    "h(1) :- p(?x, ?y), g(?x) .",
    "h(?x) :- p(?x, ?y), q(?x, ?y), g(?x) .",
]


def _materialized(
    program: Program, many: int, threads: int = 1
) -> tuple[set[object], dict[str, int]]:
    limits = {"semijoin_pairs_minimum": many}
    if many == 0:  # whatever the sizes are
        limits |= dict.fromkeys(("delta_scan_ratio", "first_scan_ratio"), UNLIMITED)
        limits |= {"parallel_work_minimum": 0}
    with thresholds(**limits), pytest.MonkeyPatch.context() as patch:
        if many == 0:
            patch.setattr(relation.Run, "bits", _bits)
        engine = ColumnarEngine(Dictionary(), threads=threads)
        explicit = engine.facts(encode(program.facts, engine.dictionary))
        done: Materialization[ColumnarFacts] = materialize(program, explicit, engine)
        return {*decode(done.facts, engine.dictionary)}, done.statistics.derivations


def _bits(run: relation.Run, probes: int) -> Keys | None:
    small = len(run) > 0 and int(run.keys[-1]) < 1 << 20  # pairs are no numbers of bits
    return sets.bitmap(run.keys) if small else None


@settings(max_examples=60)
@given(st.one_of(programs(), dense_programs()))
def test_differential(program: Program) -> None:
    assert _materialized(program, 0) == _materialized(program, 1 << 40)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rule", SHAPES + OTHERS)
def test_shapes(rule: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(rule)
    facts = [
        *(f"{name}({random.randrange(90)}) ." for name in "gkm" for _ in range(60)),
        *(f"p({random.randrange(100)}, {random.randrange(300)}) ." for _ in range(400)),
        *(f"q({random.randrange(100)}, {random.randrange(300)}) ." for _ in range(400)),
    ]
    program = Program.parse(" ".join([rule, "h(?x) :- k(?x) ." * ("h(?x)" in rule), *facts]))
    calls: list[int] = []
    select = sets.select_pairs

    def noted(pairs: Keys, subjects: Keys, objects: Keys) -> Keys:
        calls.append(len(pairs))
        return select(pairs, subjects, objects)

    with monkeypatch.context() as patch:
        patch.setattr(sets, "select_pairs", noted)
        found = _materialized(program, 0, threads)
    assert bool(calls) == (rule in SHAPES and "none" not in rule), "there are no facts of `none`"
    assert found == _materialized(program, 1 << 40)
    [compiled] = [compile_rule(r, Dictionary()) for r in program.rules if len(r.body) > 1]
    assert (semijoin.pair_atom(compiled) is not None) == (rule in SHAPES)
