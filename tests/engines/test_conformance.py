"""Every engine keeps the laws of `conformance`, for random programs and facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings

from corollary.core.compile import compile_rule
from corollary.core.dictionary import Dictionary
from corollary.core.tables import encode
from corollary.lang.program import Program
from tests.algorithms.replay import replay, states
from tests.dense import modular_program
from tests.effort import scaled
from tests.engines.conformance import LAWS, Law
from tests.engines.factories import LAWFUL, marks
from tests.streams import stream

every_engine = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=marks(name)) for name in LAWFUL]
)


def _cases() -> Iterator[Any]:
    """Each law on each engine; laws that Spark has time for rarely are long in jobs."""
    for law in LAWS:
        for engine in LAWFUL:
            jobs = pytest.mark.long if law.spark < 6 else None
            found = marks(engine, jobs=jobs)
            yield pytest.param(engine, law, marks=found, id=f"{engine}-{law.name}")


@pytest.mark.scaled
@pytest.mark.parametrize(("engine", "law"), [*_cases()])
def test_keeps(engine: str, law: Law) -> None:
    # Few facts are for the driver of Spark; `spark-large` has jobs for everything.
    number = {
        "toy": 12,
        "inline": 25,
        "inline-rounds": 12,
        "spark": 4,
        "spark-large": law.spark // 2,
    }
    examples = scaled(number[engine]) if engine in number else settings().max_examples

    @settings(max_examples=examples)
    @given(law.examples)
    def check(case: Any) -> None:
        law.check(LAWFUL[engine], case)

    for always in law.always:
        check = example(always)(check)
    check()


IN_TASKS = ("inline", "inline-rounds", "spark-large")

CHAIN = Program.parse(
    "path(?x, ?z, ?w) :- path(?x, ?y, ?w), edge(?y, ?z) . path(0, 1, 7) ."
    + "".join(f"edge({n}, {n + 1}) ." for n in range(1, 5))
)


@every_engine
def test_close_tells_of_every_round_and_can_be_stopped(engine: str) -> None:
    dictionary = Dictionary()
    made = LAWFUL[engine](dictionary)
    rules = [compile_rule(rule, dictionary) for rule in CHAIN.rules]
    facts = made.facts(encode(CHAIN.facts, dictionary))
    rounds: list[tuple[int, int]] = []

    def on_round(round_: int, derived: int) -> None:
        rounds.append((round_, derived))
        if len(rounds) == 8:
            raise KeyboardInterrupt

    closed = made.close(rules, facts, facts, on_round=on_round)
    assert len(closed.facts) == 4
    if engine in IN_TASKS:  # where a round of tasks does as much as it can
        assert closed.rounds == len(rounds) <= 5
        assert [round_ for round_, _ in rounds] == [*range(1, len(rounds) + 1)]
        assert rounds[-1] == (len(rounds), 4)
        rounds.extend([(0, 0)] * (7 - len(rounds)))
    else:
        assert rounds == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4)]
        assert closed.rounds == 5
        rounds.extend([(0, 0)] * 2)
    with pytest.raises(KeyboardInterrupt):
        made.close(rules, facts, facts, on_round=on_round)
    assert len(rounds) == 8


@pytest.mark.parametrize("algorithm", ["auto", "dred-c"])
def test_updates_run_on_the_least_engine(algorithm: str) -> None:
    case = stream(1, modular_program(1), 4)
    for _ in replay(LAWFUL["toy"], case, algorithm, states(case)):
        pass
