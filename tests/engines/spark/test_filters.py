"""Filters over several terms: tasks receive all terms, or join their texts with rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from corollary.algorithms.maintain import Maintainer
from corollary.algorithms.reasoner import Options
from corollary.algorithms.seminaive import materialize
from corollary.core.changes import Changes
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.spark import evaluate
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.testing import thresholds
from tests.effort import scaled
from tests.engines.factories import spark_values

RULES = """
less(?x, ?y) :- e(?x, ?y), FILTER(?x < ?y) .
near(?x, ?z) :- e(?x, ?y), f(?y, ?z), FILTER(?x < ?z && ?z < ?x + 3) .
far(?x, ?z) :- n(?x), n(?z), FILTER(?x + ?z > 20 || ?x = ?z) .
up(?x, ?y) :- less(?x, ?y) .
up(?x, ?z) :- up(?x, ?y), e(?y, ?z), FILTER(?x < ?z) .
apart(?x, ?y) :- e(?x, ?y), NOT up(?x, ?y), FILTER(?x != ?y && STRLEN(STR(?x)) = STRLEN(STR(?y))) .
named(?x, ?t) :- less(?x, ?y), BIND(CONCAT(STR(?x), STR(?y)) AS ?t), FILTER(STR(?x) < STR(?y)) .
"""
VALUES = ["1", "2", "3", '"03"', "10", "11", '"b"', "2.0", '"2"']


def facts(seed: int, count: int) -> str:
    random = Random(seed)
    pairs = [
        f"{random.choice('ef')}({random.choice(VALUES)}, {random.choice(VALUES)}) ."
        for _ in range(count)
    ]
    return " ".join([*pairs, *(f"n({value}) ." for value in VALUES)])


LIMITS = [
    {"broadcast_terms_limit": 0, "driver_values_limit": 0},
    {"broadcast_terms_limit": 0, "driver_values_limit": 1 << 30},
    {"broadcast_terms_limit": 1 << 30},
]


@pytest.mark.scaled
@pytest.mark.parametrize("limits", LIMITS)
def test_filters_over_several_terms(limits: dict[str, int]) -> None:
    for seed in range(scaled(4)):
        program, engine = Program.parse(RULES + facts(seed, 30)), spark_values(Dictionary())
        own = engine.facts(encode(program.facts, engine.dictionary))
        with thresholds(**limits):
            found = materialize(program, own, engine).facts
        assert set(decode(found, engine.dictionary)) == reference.materialize(program)


def test_many_terms_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With tasks that join texts, the driver reads neither compared columns nor their texts."""

    def collected(*_: Any) -> Any:
        raise AssertionError("the driver collected the terms of a column")

    monkeypatch.setattr(evaluate, "column_ids", collected)
    lines = " ".join(f"e({n}, {n * 7 % 50}) ." for n in range(50))
    text = "less(?x, ?y) :- e(?x, ?y), FILTER(?x < ?y) . " + lines
    program, engine = Program.parse(text), spark_values(Dictionary())
    own = engine.facts(encode(program.facts, engine.dictionary))
    with thresholds(**LIMITS[0]):
        found = materialize(program, own, engine).facts
        assert set(decode(found, engine.dictionary)) == reference.materialize(program)
    engine = spark_values(Dictionary())
    own = engine.facts(encode(program.facts, engine.dictionary))
    with pytest.raises(AssertionError, match="collected"), thresholds(**LIMITS[2]):
        materialize(program, own, engine)


@pytest.mark.parametrize("algorithm", ["dred", "bf", "fp", "dred-c"])
def test_updates_of_filtered_facts(algorithm: str) -> None:
    rules = Program.parse("\n".join(RULES.splitlines()[:-1]))
    first, second = (Program.parse(facts(seed, 24)).facts for seed in (7, 8))
    engine = spark_values(Dictionary())
    with thresholds(**LIMITS[0]):
        explicit = engine.facts(encode(first, engine.dictionary))
        maintainer = Maintainer(rules, explicit, engine, Options(algorithm=algorithm))
        new, gone = (
            engine.facts(encode([*{*own} - {*other}], engine.dictionary))
            for own, other in ((second, first), (first, second))
        )
        maintainer.update(Changes(new, gone))
        expected = reference.materialize(rules | Program.of((), second))
        assert set(decode(maintainer.facts, engine.dictionary)) == expected
