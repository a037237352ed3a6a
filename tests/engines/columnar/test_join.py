"""Joins find the same heads whichever atom comes next, and if one instance of a head suffices."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.lang.program import Program
from corollary.lang.stratify import Predicate
from corollary.lang.syntax import XSD, Literal
from corollary.testing import thresholds

E, F, M = (Predicate(name) for name in "efm")
_LIMITS = ("all_instances_limit", "sampled_rows_minimum", "merged_rows_minimum")
BODIES = [
    "h(?x, ?z) :- e(?x, ?y), f(?y, ?z) .",
    "h(?x, ?z) :- e(?y, ?x), f(?y, ?w), e(?w, ?z) .",
    "h(?x, ?z) :- e(?y, ?x), f(?y, ?w), e(?z, ?w), NOT f(?w, ?x) .",
    "h(?x, ?z) :- e(?y, ?x), e(?z, ?y), f(?y, ?w), m(?w) .",
    "h(?x, ?x) :- e(?x, ?y), f(?y, ?z), e(?z, ?w), m(?w) .",
    "h(?x, 3) :- e(?y, ?x), f(?z, ?y), FILTER(?y != ?z) .",
    "h(?x, ?z) :- e(?x, ?y), f(?v, ?w), e(?w, ?z), FILTER(?y = ?v) .",
    "h(?x, ?z) :- e(?x, ?y), f(?y, ?v), e(?v, ?w), f(?w, ?u), e(?u, ?t), m(?t), f(?t, ?s),"
    " e(?s, ?r), f(?r, ?q), e(?q, ?z) .",
    "h(?x, ?z) :- e(?x, ?y), e(?z, ?w) .",
    "h(?x, ?x) :- e(?x, ?y), f(?x, ?w), m(?y), m(?w), f(?x, ?v), m(?v) .",
    "h(?x, ?z) :- t(?y, ?x, ?w), t(?w, ?z, ?v), t(?v, 3, ?u) .",
]


def relations(engine: ColumnarEngine, random: Random, ids: list[int]) -> ColumnarFacts:
    """Random facts with hubs, in several runs with tombstones."""

    def rows(number: int, arity: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
        some = [
            [random.choice(ids[: random.choice((2, len(ids)))]) for _ in range(arity)]
            for _ in range(number)
        ]
        return np.array(some, np.uint32).reshape(number, arity)

    arities = {E: 2, F: 2, M: 1, Predicate("t"): 3}
    facts = engine.facts({p: rows(60, arity) for p, arity in arities.items()})
    for _ in range(2):
        facts = facts.union(engine.facts({p: rows(12, arity) for p, arity in arities.items()}))
        facts = facts.difference(engine.facts({p: rows(6, arity) for p, arity in arities.items()}))
    return facts


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("body", BODIES)
def test_finds_the_heads_that_have_an_instance(body: str, first: int) -> None:
    program = Program.parse(body)
    for seed in range(6):
        random = Random(seed)
        dictionary = Dictionary()
        engine = ColumnarEngine(dictionary)
        rules = [compile_rule(rule, dictionary) for rule in program.rules]
        ids = [dictionary.id(Literal(str(n), XSD + "integer")) for n in range(12)]
        facts = relations(engine, random, ids)
        every = [[x, z] for x in ids for z in ids]
        heads = engine.facts({Predicate("h"): np.array(every, np.uint32)})
        expected = {*decode(engine.derive(rules, facts).facts, dictionary)}
        limits = dict.fromkeys(_LIMITS, 0)
        if seed % 2:
            limits["transposed_pairs_limit"] = 0
        merged = random.choice((0, 2048))
        with thresholds(**limits, first_instances=first, short_run_keys_limit=merged):
            found = engine.derive(rules, facts, heads=heads)
            small = engine.derive(rules, facts, counted=True)
        assert {*decode(found.facts, dictionary)} == expected
        assert found.instances >= len(expected)
        usual = engine.derive(rules, facts, counted=True)
        assert usual.counts is not None
        assert small.counts is not None
        assert {*decode(small.facts, dictionary)} == expected
        assert small.instances == usual.instances
        assert all((small.counts[p] == usual.counts[p]).all() for p in usual.counts)


def test_stops_at_the_first_instances() -> None:
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    [rule] = Program.parse("h(?x, ?z) :- e(?x, ?y), f(?y, ?z) .").rules
    square = np.stack(np.meshgrid(np.arange(1, 201), np.arange(1, 201)), -1).reshape(-1, 2)
    facts = engine.facts({E: square.astype(np.uint32), F: square.astype(np.uint32)})
    heads = engine.facts({Predicate("h"): square[:1000].astype(np.uint32)})
    found = engine.derive([compile_rule(rule, dictionary)], facts, heads=heads)
    assert len(found.facts) == 1000
    assert found.instances < 20_000  # of 200,000


def test_hubs_are_not_multiplied() -> None:
    """Each of 300 tags of one item, three times: 27 million instances, and one head."""
    dictionary = Dictionary()
    engine = ColumnarEngine(dictionary)
    text = "h(?x, ?x) :- e(?x, ?u), e(?x, ?v), e(?x, ?w), m(?u), m(?v), m(?w) ."
    [rule] = Program.parse(text).rules
    tags = np.arange(1, 301, dtype=np.uint32).reshape(-1, 1)
    facts = engine.facts({E: np.hstack([np.zeros_like(tags), tags]), M: tags})
    with thresholds(merged_rows_minimum=1):
        found = engine.derive([compile_rule(rule, dictionary)], facts)
    assert (len(found.facts), found.instances) == (1, 300**3)
