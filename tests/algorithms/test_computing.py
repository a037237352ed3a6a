"""Programs that compute values: every algorithm on every engine equals the oracle."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary import KnowledgeBase
from corollary.errors import CorollaryWarning
from corollary.lang.printer import Printer
from corollary.lang.program import Program
from corollary.lang.reference import materialize
from corollary.lang.syntax import Atom, Variable
from corollary.testing import thresholds
from tests.algorithms.replay import Player, replay, states
from tests.algorithms.test_explain import check_all
from tests.computing import computing_program
from tests.engines.factories import ENGINES, marks, spark_values
from tests.fuzz.streams import check
from tests.streams import Commit, Stream, stream

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Random programs may warn of values without a result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorollaryWarning)
        yield


def computing_stream(seed: int, commits: int) -> Stream:
    others = computing_program(seed + 1, 3)
    return stream(seed, computing_program(seed), commits, others.rules)


@settings(max_examples=5)
@given(SEEDS)
def test_streams(seed: int) -> None:
    check(computing_stream(seed, 5))


@settings(max_examples=5)
@given(SEEDS, st.sampled_from(("inline", "inline-rounds")))
def test_streams_in_rounds(seed: int, engine: str) -> None:
    """The plans and rounds of Spark, whose driver computes the values."""
    case = computing_stream(seed, 3)
    expected = states(case)
    for algorithm in ("auto", "counting", "dred", "dred-c", "bf"):
        for _ in replay(ENGINES[engine], case, algorithm, expected):
            pass


@settings(max_examples=5)
@given(SEEDS)
def test_streams_with_values_of_tasks(seed: int) -> None:
    case = computing_stream(seed, 2)
    expected = states(case)
    with thresholds(driver_values_limit=0, driver_terms_limit=0):
        for algorithm in ("auto", "counting", "dred"):
            for _ in replay(spark_values, case, algorithm, expected):
                pass


@settings(max_examples=10)
@given(SEEDS)
def test_knowledge_bases(seed: int) -> None:
    """Hybrid and specialized knowledge bases answer alike, and every derived fact has a proof."""
    program, printer = computing_program(seed), Printer()
    derived = sorted(materialize(program) - {*program.facts}, key=repr)
    kb = KnowledgeBase(program)
    patterns = [
        Atom(fact.relation, terms)
        for fact in derived[:4]
        if fact.terms
        for terms in (
            tuple(Variable(f"v{n}") for n in range(len(fact.terms))),
            (*fact.terms[:-1], Variable("v")),
            (Variable("v"), *fact.terms[1:]),
        )
    ]
    others = [
        KnowledgeBase(program, specialize=True),
        KnowledgeBase(program, mode="hybrid", specialize=False),
        KnowledgeBase(program, mode="hybrid"),
    ]
    for pattern in patterns:
        expected = rows(kb, pattern)
        assert all(rows(other, pattern) == expected for other in others)
    for fact in derived[:4]:
        proof = kb.explain(fact)
        assert proof.fact == fact
        assert others[2].explain(fact).fact == fact
        assert printer.atom(fact) in str(proof)


@settings(max_examples=6)
@given(SEEDS)
def test_proofs(seed: int) -> None:
    """Every step of a proof is an instance of its rule, with the values that it computes."""
    case = computing_stream(seed, 0)
    [state] = states(case)
    player = Player(ENGINES["columnar"], case.program, "auto")
    check_all(player, state, sorted(state.facts - state.explicit, key=repr)[:6])


def rows(kb: KnowledgeBase, pattern: Atom) -> list[str]:
    return sorted(str(row) for row in kb.facts(pattern).drop(["explicit"]).to_pylist())


PROGRAM = """
    total(?x, ?t), seen(?t) :- price(?x, ?p), tax(?r), BIND(?p * (1 + ?r) AS ?t), FILTER(?t < 100) .
    id(?x, ?b) :- total(?x, ?t), BIND(SKOLEM("offer", ?x, ?t) AS ?b) .
    step(?y) :- step(?x), BIND(?x + 1 AS ?y), FILTER(?y <= 5) .
    rare(?x) :- price(?x, ?p), BIND(?p - 1 AS ?q), NOT price(_, ?q) .
    named(?n, ?k) :- AGGREGATE(total(?x, _) BIND group_concat(DISTINCT ?x; SEPARATOR = "+") AS ?n
        BIND count(DISTINCT ?x) AS ?k) .
"""


@pytest.mark.parametrize(
    "engine", [pytest.param("spark-large", marks=[*marks("spark-large"), pytest.mark.long])]
)
def test_on_spark(engine: str) -> None:
    """Values and terms that no data has, by real tasks."""
    facts = " ".join(f"price(a{n}, {n}) ." for n in range(6)) + " tax(0.5) . step(0) ."
    program = Program.parse(PROGRAM + facts)
    commits = (
        Commit(
            inserted=frozenset(Program.parse("price(b, 9) . tax(0.25) .").facts),
            deleted=frozenset(Program.parse("price(a2, 2) . tax(0.5) .").facts),
        ),
    )
    case = Stream(0, program, commits)
    assert list(replay(ENGINES[engine], case, "auto", states(case)))


def test_the_proof_of_a_negated_value() -> None:
    """A proof shows the value that is absent."""
    kb = KnowledgeBase(PROGRAM + "price(a, 3) . price(b, 7) .")
    assert "NOT price(?_1, 6)" in str(kb.explain("rare(b)"))


def test_the_constraint_of_a_value() -> None:
    kb = KnowledgeBase(
        "[dear] false :- price(?x, ?p), BIND(?p * 2 AS ?d), NOT limit(?d) ."
        " price(a, 3) . price(b, 4) . limit(8) ."
    )
    [found] = kb.inconsistencies()
    assert found.count == 1
    assert "NOT limit(6)" in str(found)
