"""The rules that a change affects are found by predicate and constant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.algorithms.seminaive import materialize
from corollary.core.compile import Pattern, compile_rule, constant_id
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.engines.columnar.facts import ColumnarFacts
from corollary.engines.columnar.rule_index import RuleIndex, RuleIndexes
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.testing import thresholds
from tests.dense import dense_programs


@given(dense_programs(), st.data())
def test_finds_every_rule_that_a_fact_may_match(program: Program, data: st.DataObject) -> None:
    engine = ColumnarEngine(Dictionary())
    rules = [compile_rule(rule, engine.dictionary) for rule in program.rules]
    expected = sorted(reference.materialize(program, frozenset(program.facts)), key=repr)
    if not expected:
        return
    subset = st.lists(st.sampled_from(expected), unique=True)
    chosen, dropped = data.draw(subset), data.draw(subset)
    changed, removed = (engine.facts(encode(f, engine.dictionary)) for f in (chosen, dropped))
    limit = data.draw(st.sampled_from((0, 1, 1000)))
    with thresholds(rows_of_constant_limit=limit):
        index = RuleIndex(rules)
        reading, deriving = index.reading(changed, removed), index.deriving(changed)
        positive = index.reading(changed)

    def matches(pattern: Pattern, facts: ColumnarFacts) -> bool:
        rows = facts.relation(pattern)
        if not pattern.arguments:
            return len(rows) > 0
        columns = engine.space.packing.unpack(rows.keys(), len(pattern.arguments))
        return any(
            all(a >= 0 or constant_id(a) == v for a, v in zip(pattern.arguments, row, strict=True))
            for row in zip(*(column.tolist() for column in columns), strict=True)
        )

    for rule in rules:
        if any(matches(p, changed) for p in rule.body):
            assert rule in positive
            assert rule in reading
        if any(matches(p, removed) for p in rule.negated):
            assert rule in reading
        if matches(rule.head, changed):
            assert rule in deriving
        if limit == 1000:  # by all constants: no other rules
            wide = any(p.wide for p in rule.body)
            assert (rule in positive) == (wide or any(matches(p, changed) for p in rule.body))
            assert (rule in deriving) == (rule.head.wide or matches(rule.head, changed))
    assert list(reading) == [rule for rule in rules if rule in reading], "in their order"


def test_selects_rules_by_all_constants() -> None:
    engine = ColumnarEngine(Dictionary())
    program = Program.parse(
        "".join(
            f"p(7, ?x, {n + 1}) :- p(7, ?x, {n}) . p({n}, 7, ?x) :- p({n + 1}, 7, ?x) . "
            f"p({n}, {n}, 1) :- p({n}, 1, {n}), q({n}, 7) . "
            for n in range(9)
        )
    )
    rules = [compile_rule(rule, engine.dictionary) for rule in program.rules]
    facts = Program.parse("p(7, 7, 3) . p(4, 1, 4) . p(4, 1, 5) . q(2, 7) . q(7, 2) .").facts
    changed = engine.facts(encode(facts, engine.dictionary))
    index = RuleIndex(rules)
    assert [rules.index(rule) for rule in index.reading(changed)] == [8, 9, 14, 19]
    assert [rules.index(rule) for rule in index.deriving(changed)] == [6, 22]


def test_selects_rules_by_constant() -> None:
    engine = ColumnarEngine(Dictionary())
    program = Program.parse(
        "".join(f"p({n + 1}) :- p({n}) . q(?x, {n}) :- q({n}, ?x), r(?x, {n}) . " for n in range(9))
    )
    rules = [compile_rule(rule, engine.dictionary) for rule in program.rules]
    facts = Program.parse("p(3) . q(4, 8) . q(7, 7) . r(0, 2) .").facts
    changed = engine.facts(encode(facts, engine.dictionary))
    index = RuleIndex(rules)
    assert [rules.index(rule) for rule in index.reading(changed)] == [5, 6, 9, 15]
    assert [rules.index(rule) for rule in index.deriving(changed)] == [4, 15, 17]
    with thresholds(rows_of_constant_limit=0):
        more = engine.facts(encode([*facts] * 2, engine.dictionary))
        assert len(index.reading(more)) == 4, "as many facts as atoms, or fewer"


@pytest.mark.parametrize(
    "atom", ["p({0})", "p({0}, ?x)", "p(?x, {0}, ?x)", "p(7, {0})", "p(7, ?x, {0})"]
)
def test_long_chain_over_one_relation_takes_linear_time(atom: str) -> None:
    """A round costs what it derives, not the number of rules: 0.45 s a round once."""
    length = 1500
    chain = "".join(f"{atom.format(n + 1)} :- {atom.format(n)} .\n" for n in range(length))
    start = atom.format(0).replace("?x", "7")
    program = Program.parse(f"{chain} {start} .")
    evaluations = 0

    class CountingEngine(ColumnarEngine):
        def _evaluate(self, *arguments: Any, **named: Any) -> None:
            nonlocal evaluations
            evaluations += 1
            super()._evaluate(*arguments, **named)

    engine = CountingEngine(Dictionary())
    explicit = engine.facts(encode(program.facts, engine.dictionary))
    assert len(materialize(program, explicit, engine).facts) == length + 1
    assert evaluations <= 3 * length


def test_indexes_are_kept_for_sequences_that_cannot_change() -> None:
    rules = tuple(
        compile_rule(rule, Dictionary())
        for rule in Program.parse("p(?x) :- q(?x) . q(?x) :- p(?x) .").rules
    )
    indexes = RuleIndexes()
    with thresholds(scanned_rules_limit=2):
        assert indexes.of(rules) is None
    with thresholds(scanned_rules_limit=1):
        assert indexes.of(rules) is indexes.of(rules)
        assert indexes.of([*rules]) is not indexes.of([*rules])
