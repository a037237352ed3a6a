"""Constraints: kept apart from rules, and contradicted where the oracle says so."""

from __future__ import annotations

import pytest
from hypothesis import given

from corollary.algorithms import seminaive
from corollary.algorithms.constraints import inconsistencies, violations
from corollary.core.dictionary import Dictionary
from corollary.core.tables import decode, encode
from corollary.engines.columnar.engine import ColumnarEngine
from corollary.lang import reference
from corollary.lang.program import Program
from corollary.lang.syntax import FALSE, Atom, Rule
from tests.engines.conformance import MakeEngine
from tests.engines.factories import ENGINES, marks
from tests.strategies import programs

RULE = "[up] p(?x) :- q(?x) ."
LIMIT = "[limit] false :- p(?x), FILTER(?x > 1) ."
FACTS = "q(1) . q(2) . q(3) ."


def test_constraints_are_no_rules() -> None:
    program = Program.parse(RULE + LIMIT + FACTS)
    assert [rule.name for rule in program.rules] == ["up"]
    assert [rule.name for rule in program.constraints] == ["limit"]
    assert len(program) == 5
    assert len(program.strata) == 1
    assert reference.materialize(program) == reference.materialize(Program.parse(RULE + FACTS))


def test_programs_with_constraints_are_values() -> None:
    whole, plain = Program.parse(RULE + LIMIT), Program.parse(RULE)
    [limit] = whole.constraints
    assert whole != plain
    assert limit in whole
    assert limit not in plain
    assert plain.added(limit) == whole == Program.parse(LIMIT) | plain
    assert whole.removed(limit) == plain == whole - Program.parse(LIMIT)
    assert Program.parse(str(whole)) == whole
    assert Program.of([*whole.rules, limit]) == whole
    assert Program.parse(RULE + LIMIT + FACTS).without_facts() == whole


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=marks(name, jobs=pytest.mark.long))
        for name, make in ENGINES.items()
    ],
)
def test_each_way_is_found(make: MakeEngine) -> None:
    program = Program.parse(RULE + LIMIT + "[never] false :- p(?x), NOT q(?x) ." + FACTS)
    engine = make(Dictionary())
    done = seminaive.materialize(
        program, engine.facts(encode(program.facts, engine.dictionary)), engine
    )
    [found] = inconsistencies(program, done.facts, engine, examples=1)
    assert (found.rule.name, found.count, len(found.examples)) == ("limit", 2, 1)
    ways = {way.facts for way in violations(program, done.facts, engine)}
    assert ways == {(atom,) for atom in Program.parse("p(2) . p(3) .").facts}


def test_a_constraint_without_variables() -> None:
    program = Program.parse("[dry] false :- rain(), NOT umbrella() . rain() .")
    engine = ColumnarEngine(Dictionary())
    facts = engine.facts(encode(program.facts, engine.dictionary))
    [way] = violations(program, facts, engine)
    assert (way.rule.name, way.substitution) == ("dry", {})


@given(programs())
def test_oracle_violations(program: Program) -> None:
    """The bodies of random rules as constraints."""
    constraints = [Rule(Atom(FALSE, ()), rule.body) for rule in program.rules]
    whole = program.added(*constraints)
    assert Program.parse(str(whole)) == whole
    engine = ColumnarEngine(Dictionary())
    explicit = engine.facts(encode(whole.facts, engine.dictionary))
    done = seminaive.materialize(whole, explicit, engine)
    known = reference.materialize(program)
    assert set(decode(done.facts, engine.dictionary)) == known
    found = {
        (way.rule, frozenset(way.substitution.items()))
        for way in violations(whole, done.facts, engine)
    }
    expected = {(rule, frozenset(s.items())) for rule, s in reference.violations(whole, known)}
    assert found == expected
